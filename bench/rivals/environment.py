"""The rivals' own virtual environments: each made once, with pinned versions, and away from ours."""

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
PATIENCE: Final = 300.0
"""Seconds for an installation."""


class NoRival(Exception):
    """A rival cannot be had here."""


def interpreter(rival: str, extras: Sequence[str]) -> Path:
    """Return the Python that has a rival and what it needs, after installing them if they are not there yet."""
    folder = FOLDER / rival
    python, stamp = folder / "bin" / "python", folder / "stamp"
    wanted = hashlib.sha256("\n".join([CONSTRAINTS.read_text(), rival, *extras]).encode()).hexdigest()
    if not stamp.exists() or stamp.read_text() != wanted:
        say(f"installing {rival} into {folder.relative_to(ROOT)} …")
        shutil.rmtree(folder, ignore_errors=True)
        _run([sys.executable, "-m", "venv", "--without-pip", str(folder)])
        pip = (sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check")
        _run([*pip, "install", "--quiet", "--retries", "1", "--constraint", str(CONSTRAINTS), rival, *extras])
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
        raise NoRival(f"{words[2]} did not end within {PATIENCE:.0f} seconds") from None
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ERROR")] or ["no word of why"]
        raise NoRival(f"it cannot be installed: {said[0]}")
