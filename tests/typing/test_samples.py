"""The types of the SDK, as type checkers see them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).parent / "samples.py"


def check(*command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_mypy_finds_what_is_wrong_and_nothing_else() -> None:
    check("mypy", str(SAMPLES))  # a mark that is not needed is an error, too


@pytest.mark.slow
def test_pyright_finds_what_is_wrong_and_nothing_else(tmp_path: Path) -> None:
    settings = {
        "include": [str(SAMPLES)],
        "extraPaths": [str(ROOT / "src")],
        "typeCheckingMode": "strict",
        "enableTypeIgnoreComments": False,  # those are for mypy
        "reportUnnecessaryTypeIgnoreComment": "error",
        "reportUnusedCoroutine": "none",
    }
    (tmp_path / "settings.json").write_text(json.dumps(settings))

    check("pyright", "--project", str(tmp_path / "settings.json"), "--pythonpath", sys.executable)
