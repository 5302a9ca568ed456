"""pytest with a second look: `python -m harness.unsteady NOTES [arguments of pytest]`.

On a machine that does something else, too, one test of many thousands may fail that is right. If no more than three
failed, each is run again alone, three times, and must pass every time. Then the run passes, but what had failed is
written to the file NOTES, for whoever runs this to print at the end. Anything else fails.
"""

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pytest

MOST: Final = 3
"""More failures than this are no accident."""
REPEATS: Final = 3

Repeat = Callable[[str], bool]


class Failures:
    """A plugin that keeps what failed first of each test."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.first.setdefault(report.nodeid, f"{report.when}: {report.longreprtext}")


def main(notes: Path, arguments: Sequence[str]) -> int:
    failures = Failures()
    code = pytest.main([*arguments], plugins=[failures])
    if code != pytest.ExitCode.TESTS_FAILED or not pass_alone(list(failures.first), run_alone):
        return int(code)
    with notes.open("a", encoding="utf-8") as file:
        file.writelines(f"{test}\n{why}\n\n" for test, why in failures.first.items())
    return 0


def pass_alone(tests: Sequence[str], repeat: Repeat) -> bool:
    """Say whether these are few enough to be looked at again, and none fails again."""
    return 0 < len(tests) <= MOST and all(repeat(test) for test in tests for _ in range(REPEATS))


def run_alone(test: str) -> bool:
    print(f"once more, alone: {test}", flush=True)
    return subprocess.run([sys.executable, "-m", "pytest", "-q", test], check=False).returncode == 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
