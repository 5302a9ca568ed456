"""A failure is forgiven only if it is one of few and does not come again, and never in silence."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from harness.unsteady import pass_alone

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("failed", [1, 3])
def test_each_of_a_few_must_pass_three_times(failed: int) -> None:
    tests = [f"test_{number}" for number in range(failed)]
    repeated = Counter[str]()

    def passes(test: str) -> bool:
        repeated[test] += 1
        return True

    assert pass_alone(tests, passes)
    assert repeated == dict.fromkeys(tests, 3)


def test_one_failure_among_the_repeats_is_enough() -> None:
    answers = iter([True, True, True, True, True, False])

    assert not pass_alone(["test_a", "test_b"], lambda _: next(answers))


def test_more_than_three_are_not_looked_at_again() -> None:
    assert not pass_alone(["test_a", "test_b", "test_c", "test_d"], lambda _: pytest.fail("it was run again"))


def test_a_run_that_failed_without_a_test_is_not_forgiven() -> None:
    assert not pass_alone([], lambda _: True)


SOMETIMES = """
from pathlib import Path

def test_sometimes():
    seen = Path(__file__).with_name("seen")
    again = seen.exists()
    seen.touch()
    assert again, "it was the first time"
"""


def _run(folder: Path, suite: str) -> tuple[int, str]:
    """Run a suite of one file in a process of its own; return how that ended, and what was noted."""
    notes = folder / "notes"
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_one.py").write_text(suite)
    surroundings = os.environ | {"PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "harness.unsteady", str(notes), "-q", "test_one.py"]
    run = subprocess.run(command, cwd=folder, env=surroundings, capture_output=True, check=False)
    return run.returncode, notes.read_text() if notes.exists() else ""


@pytest.mark.slow
def test_what_fails_once_is_passed_and_told_with_its_first_failure(tmp_path: Path) -> None:
    code, noted = _run(tmp_path, SOMETIMES)

    assert code == 0
    assert noted.startswith("test_one.py::test_sometimes\ncall: ")
    assert "it was the first time" in noted


@pytest.mark.slow
def test_what_fails_again_fails_the_run(tmp_path: Path) -> None:
    assert _run(tmp_path, "def test_never():\n    assert False\n") == (1, "")


@pytest.mark.slow
def test_what_cannot_be_collected_fails_the_run(tmp_path: Path) -> None:
    assert _run(tmp_path, "import nothing_like_this\n") == (2, "")
