"""Scratch directories: one for each run, gone with it, and the output files that are found in them before."""

import asyncio
import contextlib
import errno
import os
import shutil
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from tidewheel.blobs.disk import open_beneath
from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.worker.sandbox.place import is_alone, make_place, output_directory

MAX_FILES: Final = 1_000
MAX_DEPTH: Final = 100
"""Folders within folders of output files: each is opened step by step from above, while the worker waits."""
_NO_FOLDER: Final = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)
"""None was made, or there is something else in its place."""
_BY_THE_TASK: Final = (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG)
"""What a task can make of its folder; all else is trouble of the machine, which may pass."""
_removals: Final[set[asyncio.Future[None]]] = set()
"""Under way; a loop by itself does not hold on to them."""


class Place:
    """Where runs that follow one another in one tree are. It is made once, and again only if a run changed anything."""

    def __init__(self, root: Path, name: str) -> None:
        self._root = root
        self.directory = str(root / name)
        """All that the tree may write to."""
        os.mkdir(self.directory, 0o700)  # noqa: PTH102 - paths of scratch directories are text
        self.run = f"{self.directory}/run"
        self._is_made = False

    def prepare(self) -> str:
        """Return the scratch directory for the next run."""
        if not self._is_made:
            make_place(self.run)
            self._is_made = True
        return self.run

    def set_aside(self) -> str:
        """Take what a run left out of the reach of the next one, and return where it is now."""
        aside = str(self._root / f"left-{uuid4().hex}")
        self._is_made = False
        with contextlib.suppress(FileNotFoundError):  # a task may remove even this
            try:
                os.rename(self.run, aside)  # noqa: PTH104 - as above
            except PermissionError:  # only a directory that may be written to can be moved, and only from such a one
                for directory in (self.directory, self.run):
                    _allow(directory)
                os.rename(self.run, aside)  # noqa: PTH104 - as above
        return aside

    @property
    def is_clean(self) -> bool:
        """Whether a run left nothing beside its scratch directory, where the next one would find it."""
        return is_alone(self.run)

    def close(self) -> None:
        """Remove it."""
        remove(self.directory)


def remove(directory: str) -> None:
    """Remove a directory: at once if it is empty, else in a thread, for it may hold any number of files."""
    try:
        os.rmdir(directory)  # noqa: PTH106 - paths of scratch directories are text
    except FileNotFoundError:
        return
    except NotADirectoryError:  # a task put a link there, or a pipe: what is behind it is not ours to touch
        os.unlink(directory)  # noqa: PTH108 - as above
    except OSError:
        removing = asyncio.get_running_loop().run_in_executor(None, remove_full, directory)
        _removals.add(removing)
        removing.add_done_callback(_removals.discard)


def remove_full(directory: str) -> None:
    """Remove a directory with all that a task may have put there: without rights, or too deep for Python."""
    with contextlib.suppress(RecursionError):
        shutil.rmtree(directory, ignore_errors=True)
    for words in (["/bin/chmod", "-R", "u+rwX"], ["/bin/rm", "-rf"]):
        if os.path.lexists(directory):
            subprocess.run([*words, "--", directory], check=False, capture_output=True)  # noqa: S603 - our own path


async def settled() -> None:
    """Return once nothing is being removed."""
    await asyncio.gather(*_removals, return_exceptions=True)


def _allow(directory: str) -> None:
    """Get the rights to a directory back that a task may have taken away; a link in its stead is not followed."""
    with contextlib.suppress(OSError):
        fd = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)  # noqa: PTH101 - as above
        finally:
            os.close(fd)


def copy_executable(source: Path, target: str) -> None:
    """Copy a file such that it can be executed."""
    shutil.copyfile(source, target)
    os.chmod(target, 0o700)  # noqa: PTH101 - paths of scratch directories are text


def output_files(place: str) -> dict[str, Path]:
    """Return the output files of a run by their relative names: regular files, no links, no devices."""
    found: dict[str, Path] = {}
    directory = Path(output_directory(place))
    for name in _regular_files(Path(place).parent, directory):
        if clean_text(name, len(name)) != name:
            raise Invalid("output", f"the name of the file {name!r} is not valid text")
        if len(found) == MAX_FILES:
            raise Invalid("output", f"more than {MAX_FILES} files were left in the output directory")
        found[name] = directory / name
    return found


def _regular_files(above: Path, directory: Path) -> Iterator[str]:
    """Yield the names of files beneath a directory. Nothing below `above` is trusted: a task may put links there."""
    unseen = [""]
    while unseen:
        inner = unseen.pop()
        if inner.count("/") > MAX_DEPTH:
            raise Invalid("output", f"the output directory is more than {MAX_DEPTH} folders deep")
        try:
            for entry in _entries(above, directory / inner):
                if entry.is_dir(follow_symlinks=False):
                    unseen.append(f"{inner}{entry.name}/")
                elif stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                    yield f"{inner}{entry.name}"
        except OSError as error:
            if error.errno in _NO_FOLDER:
                continue
            raise _told(error, inner) from error


def _told(error: OSError, inner: str) -> Exception:
    """Return what is wrong with a folder, if it is the task's to mend, and else the error itself."""
    if error.errno not in _BY_THE_TASK:
        return error
    return Invalid("output", f"the folder {inner or '.'!r} of the output directory: {error.strerror or error}")


def _entries(above: Path, directory: Path) -> Iterator[os.DirEntry[str]]:
    """Yield what is in a directory by name, while its handle is open: each is looked at by way of that."""
    handle = open_beneath(above, directory)
    try:
        with os.scandir(handle) as entries:
            listed = sorted(entries, key=lambda entry: entry.name)
        yield from listed
    finally:
        os.close(handle)
