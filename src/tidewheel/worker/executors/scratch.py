"""Scratch directories: one for each run, gone with it, and the output files that are found in them before."""

import asyncio
import contextlib
import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.worker.sandbox.place import is_as_given, make_place, output_directory

MAX_FILES: Final = 1_000
_KEPT: Final = 256
_removals: Final[set[asyncio.Future[None]]] = set()
"""Under way; a loop by itself does not hold on to them."""


class Places:
    """Scratch directories for commands. One that comes back as it was given is given again: making one is dear."""

    def __init__(self, root: Path) -> None:
        self._root = str(root)
        self._count = 0
        self._free: list[str] = []

    def take(self) -> str:
        """Return a directory that is empty but for a directory for output files."""
        if self._free:
            return self._free.pop()
        self._count += 1
        directory = f"{self._root}/command-{self._count}"
        make_place(directory)
        return directory

    def give_back(self, directory: str) -> None:
        """Use a directory again, or remove it if anything is in it."""
        if len(self._free) < _KEPT and is_as_given(directory):
            self._free.append(directory)
        else:
            remove(directory)

    def close(self) -> None:
        """Remove those that are free."""
        while self._free:
            remove(self._free.pop())


def remove(directory: str, then: Callable[[], None] = lambda: None) -> None:
    """Remove a scratch directory, and do something then.

    That is done at once if it was left empty, else in a thread, for it may hold any number of files.
    """
    try:
        remove_empty(output_directory(directory))
        os.rmdir(directory)  # noqa: PTH106 - on the hot path
    except FileNotFoundError:
        pass
    except OSError:
        removing = asyncio.get_running_loop().run_in_executor(None, _remove_full, directory, then)
        _removals.add(removing)
        removing.add_done_callback(_removals.discard)
        return
    then()


async def settled() -> None:
    """Return once nothing is being removed."""
    await asyncio.gather(*_removals, return_exceptions=True)


def remove_empty(directory: str) -> None:
    """Remove a directory if there is nothing in it."""
    with contextlib.suppress(OSError):
        os.rmdir(directory)  # noqa: PTH106 - on the hot path


def _remove_full(directory: str, then: Callable[[], None]) -> None:
    """Remove a directory with all that a task may have put there: without rights, or too deep for Python."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)
    for words in (["/bin/chmod", "-R", "u+rwX"], ["/bin/rm", "-rf"]):
        if os.path.lexists(directory):
            subprocess.run([*words, "--", directory], check=False, capture_output=True)  # noqa: S603 - our own path
    then()


def copy_executable(source: Path, target: str) -> None:
    """Copy a file such that it can be executed."""
    shutil.copyfile(source, target)
    os.chmod(target, 0o700)  # noqa: PTH101 - paths of scratch directories are text


def output_files(place: str) -> dict[str, Path]:
    """Return the output files of a run by their relative names: regular files, no links, no devices."""
    found: dict[str, Path] = {}
    directory = output_directory(place)
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
