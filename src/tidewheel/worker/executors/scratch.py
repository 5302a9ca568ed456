"""Scratch directories: one for each run, gone with it, and the output files that are found in them before."""

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text

MAX_FILES: Final = 1_000
_removals: Final[set[asyncio.Future[None]]] = set()
"""Under way; a loop by itself does not hold on to them."""


def remove(directory: str) -> None:
    """Remove a scratch directory: at once if it is empty, else in a thread, for it may hold any number of files."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)  # noqa: PTH106 - on the hot path
        return
    removing = asyncio.get_running_loop().run_in_executor(None, remove_tree, directory)
    _removals.add(removing)
    removing.add_done_callback(_removals.discard)


def remove_tree(directory: str) -> None:
    """Remove a directory with all that a task may have put there: without rights, or too deep for Python."""
    with contextlib.suppress(RecursionError, OSError):
        shutil.rmtree(directory, onerror=_open_up)
    if os.path.lexists(directory):
        subprocess.run(["/bin/rm", "-rf", "--", directory], check=False, capture_output=True)  # noqa: S603 - our own path


def _open_up(function: Callable[..., Any], path: str, _error: object) -> None:
    """Let a directory that the task closed be removed."""
    with contextlib.suppress(OSError):
        os.chmod(os.path.dirname(path), 0o700)  # noqa: PTH101, PTH120 - called by shutil with text
        os.chmod(path, 0o700, follow_symlinks=False) if os.path.islink(path) else os.chmod(path, 0o700)  # noqa: PTH101, PTH114
        if function in (os.unlink, os.rmdir):
            function(path)
        else:
            shutil.rmtree(path, ignore_errors=True)


def output_files(directory: str) -> dict[str, Path]:
    """Return the regular files beneath a directory by their relative names; links and devices are left out."""
    found: dict[str, Path] = {}
    for path in _regular_files(directory):
        name = path[len(directory) + 1 :]
        if clean_text(name, len(name)) != name:
            raise Invalid("output", f"the name of the file {name!r} is not valid text")
        if len(found) == MAX_FILES:
            raise Invalid("output", f"more than {MAX_FILES} files were left in the output directory")
        found[name] = Path(path)
    return found


def _regular_files(directory: str) -> Iterator[str]:
    unseen = [directory]
    while unseen:
        try:
            entries = sorted(os.scandir(unseen.pop()), key=lambda entry: entry.name)
        except OSError:  # none was made, or it cannot be read
            continue
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                unseen.append(entry.path)
            elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                yield entry.path
