"""The contest with rivals runs, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.report import table
from bench.rivals import suite
from bench.rivals.contest import rate_of
from bench.rivals.contestants import CONTESTANTS
from bench.rivals.environment import CONSTRAINTS, NoRival, pinned
from bench.rivals.programs.marks import Mark
from bench.rivals.suite import RIVALS

MEASURED = ("drain_per_s", "start_ms_p50", "start_ms_p99", "submit_ms_p50", "version", "keeps", "settings")


def _contest(names: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["rivals", "--json", "--tiny", "--only", names]) == 0
    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    return figures


@pytest.mark.slow
def test_a_rival_and_tidewheel_are_measured_alike(capsys: pytest.CaptureFixture[str]) -> None:
    figures = _contest("tidewheel_sqlite,huey_sqlite", capsys)

    if reason := figures["unmeasured"].get("huey_sqlite", "").partition("it cannot be installed: ")[2]:
        pytest.skip(f"no registry: {reason}")
    assert figures["unmeasured"] == {}
    for name in ("tidewheel_sqlite", "huey_sqlite"):
        assert [each for each in MEASURED if f"{name}_{each}" not in figures] == []
        assert figures[f"{name}_drain_per_s"] > 0
    assert figures["huey_sqlite_version"] == pinned("huey")
    assert "Huey, SQLite, jobs/s" in table(figures, RIVALS.rows)


def test_rivals_that_cannot_be_had_are_told_of_with_the_reason(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise NoRival("it cannot be installed: no route to host")

    monkeypatch.setattr(suite, "interpreter", refuse)

    figures = _contest("huey_sqlite,rq_redis", capsys)

    assert figures["unmeasured"] == dict.fromkeys(
        ["huey_sqlite", "rq_redis"], "it cannot be installed: no route to host"
    )
    assert not [name for name in figures if name.endswith("_drain_per_s")]


def test_a_rate_is_counted_from_when_all_processes_work() -> None:
    alone = [Mark(at, number, "one") for number, at in enumerate(range(100))]
    together = [Mark(100 + number / 10, number, "two" if number % 2 == 0 else "one") for number in range(201)]

    assert rate_of([*alone, *together]) == pytest.approx(10)


def test_the_first_tenth_is_left_out_of_a_rate() -> None:
    slow = [Mark(at, number, "one") for number, at in enumerate(range(10))]
    fast = [Mark(10 + number / 5, number, "one") for number in range(91)]

    assert rate_of([*slow, *fast]) == pytest.approx(5)


def test_every_rival_has_exactly_one_pinned_version() -> None:
    pins = [line.partition("==")[0] for line in CONSTRAINTS.read_text().splitlines() if not line.startswith("#")]

    assert [rival.package for rival in CONTESTANTS.values() if rival.package and pins.count(rival.package) != 1] == []
