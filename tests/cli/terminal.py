"""The command line as a user runs it: mostly in this process, since that is fast, and where it matters in its own."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch

from tidewheel.cli.main import run

TIDE = Path(sys.executable).parent / "tide"
Done = subprocess.CompletedProcess[str]


def surroundings(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("TIDE_")}
    return {**kept, "TIDE_DATABASE": "sqlite:///jobs.db", **more}


def tide(folder: Path, *words: str, **environment: str) -> Done:
    """Run a command in this process, with its output piped."""
    return tide_given(folder, b"", *words, **environment)


def tide_given(folder: Path, given: bytes, *words: str, **environment: str) -> Done:
    """Run a command in this process, with its output piped, that reads something from its standard input."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, surroundings(**environment), clear=True),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(words)
    return Done(words, code, out.getvalue(), err.getvalue())


def tide_process(folder: Path, *words: str, **environment: str) -> Done:
    """Run a command in a process of its own, with its output piped."""
    return subprocess.run(
        [TIDE, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=surroundings(**environment),
    )
