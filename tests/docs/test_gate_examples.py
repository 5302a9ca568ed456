"""The programs in the pages about gates and reasons do what the pages say."""

from pathlib import Path
from typing import get_args

from tests.docs.test_sdk_examples import run, save
from tidewheel.model.why import Reason


def test_the_program_about_gates_does_what_it_says(tmp_path: Path) -> None:
    (incident,) = save(tmp_path, "docs/how-to/gates.md")

    assert run(tmp_path, incident).splitlines() == [
        "hold the mail server is down ann",
        "[(<GateMode.SLOW: 'slow'>, 1.6666666666666667)]",
        "()",
    ]


def test_the_program_that_asks_why_gets_all_reasons(tmp_path: Path) -> None:
    (why,) = save(tmp_path, "docs/how-to/why-is-it-not-running.md")

    gate, due, worker = run(tmp_path, why).splitlines()
    assert gate.startswith("BehindGate - Gate ")
    assert gate.endswith(" on kind mail holds it: the mail server is down (by ann).")
    assert due.startswith("NotDue - It may not start before 20")
    assert worker == "NoWorker - No worker is alive."


def test_every_reason_is_explained() -> None:
    page = (Path(__file__).parents[2] / "docs/how-to/why-is-it-not-running.md").read_text()
    assert [reason.__name__ for reason in get_args(Reason) if f"| `{reason.__name__}` |" not in page] == []
