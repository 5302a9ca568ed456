"""The types of the SDK, as type checkers see them. A mark of an error that is none is an error, too."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parents[1]


def check(*command: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_mypy_finds_what_is_wrong_and_nothing_else() -> None:
    assert "in 1 source file" in check("mypy", str(HERE / "samples.py"))


@pytest.mark.slow
def test_pyright_finds_what_is_wrong_and_nothing_else() -> None:
    told = json.loads(check("pyright", "--project", str(HERE), "--pythonpath", sys.executable, "--outputjson"))

    assert told["summary"]["filesAnalyzed"] == 1
