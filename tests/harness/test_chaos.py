"""A chaos run says plainly what came of it: clean, broken, or not worth anything."""

from pathlib import Path

import msgspec
import pytest

from harness.chaos import BROKEN, CLEAN, INVALID, Plan, Report, judge, main, page
from harness.checker import History
from harness.checker.records import Cancel, Final, Kill, Record, Submit, Witness
from harness.journal import Journal

PLAN = Plan(store="sqlite", seconds=60, seed=7)


def _job(name: str, t: float, token: int = 1, *, ended: bool = True) -> list[Record]:
    run = f"{name}-{token}"
    start = Witness(t=t, event="start", job=name, token=token, run=run, pid=token, alone=True)
    end = Witness(t=t + 1, event="end", job=name, token=token, run=run, pid=token, ok=True)
    return [start, end] if ended else [start]


def _story() -> list[Record]:
    """A job that was killed once and then succeeded, and one that was cancelled."""
    return [
        *(Submit(t=0.0, phase="ok", key=name, job=name) for name in ("a", "b")),
        Cancel(t=0.5, phase="ok", job="b", state="cancelled"),
        *_job("a", 1.0, ended=False),
        Kill(t=1.5, pid=1, role="runner"),
        *_job("a", 3.0, token=2),
        Final(job="a", key="a", state="succeeded", token=2, due=0.9, finished=4.5, losses=1, attempts=2),
        Final(job="b", key="b", state="cancelled", token=0, due=0.9, finished=0.4),
    ]


def test_a_run_with_faults_and_without_violations_is_clean() -> None:
    report = judge(PLAN, History(_story()))

    assert report.exit_code == CLEAN
    assert page(report).splitlines()[0] == "chaos on sqlite, 60 s, seed 7"
    assert page(report).splitlines()[-1] == "clean"
    assert "  kills         1" in page(report)
    assert "  reclaims      1" in page(report)


def test_a_run_in_which_nothing_was_killed_is_invalid() -> None:
    report = judge(PLAN, History([record for record in _story() if not isinstance(record, Kill)]))

    assert report.exit_code == INVALID
    assert page(report).endswith("invalid: kills was 0, at least 1 needed")


def test_a_broken_promise_is_named() -> None:
    report = judge(PLAN, History(_story()[:-2]))

    assert report.exit_code == BROKEN
    assert "LOST_ROW a: acknowledged under key a, and gone" in page(report)
    assert page(report).endswith("2 violations")


def test_records_of_an_earlier_run_are_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = Journal(tmp_path)
    journal.add(*_story())
    journal.close()
    written = tmp_path / "report.json"

    code = main(["--again", str(tmp_path), "--report", str(written), "--json"])

    printed = msgspec.json.decode(capsys.readouterr().out, type=Report)
    assert code == CLEAN
    assert printed == msgspec.json.decode(written.read_bytes(), type=Report)
    assert (printed.figures.reclaims, printed.figures.cancelled) == (1, 1)
