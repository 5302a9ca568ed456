"""The rivals' own virtual environment: made once, with pinned versions, and away from ours."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench.measure import say

ROOT: Final = Path(__file__).parents[2]
FOLDER: Final = ROOT / "build" / "rivals"
CONSTRAINTS: Final = Path(__file__).with_name("constraints.txt")
PATIENCE: Final = 600.0
"""Seconds for an installation."""


class NoRivals(Exception):
    """The rivals cannot be had here."""


def interpreter(packages: Sequence[str]) -> Path:
    """Return the Python that has these packages, after installing them if they are not there yet."""
    python, stamp = FOLDER / "bin" / "python", FOLDER / "stamp"
    wanted = hashlib.sha256("\n".join([CONSTRAINTS.read_text(), *sorted(packages)]).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing the rivals into {FOLDER.relative_to(ROOT)} …")
        shutil.rmtree(FOLDER, ignore_errors=True)
        _run([sys.executable, "-m", "venv", str(FOLDER)])
        pip = (str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        _run([*pip, "--constraint", str(CONSTRAINTS), *sorted(packages)])
        stamp.write_text(wanted)
    return python


def pinned(package: str) -> str:
    """Return the version that a package is pinned to."""
    pins = dict(line.split("==") for line in CONSTRAINTS.read_text().splitlines() if "==" in line)
    return pins[package]


def _run(words: Sequence[str]) -> None:
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        raise NoRivals(f"{words[2]} did not end within {PATIENCE:.0f} seconds") from None
    if done.returncode:
        last = done.stderr.strip().splitlines()[-1:] or ["no word"]
        raise NoRivals(f"they cannot be installed: {last[0]}")
