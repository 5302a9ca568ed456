"""Directories of a host: one for its runs, gone with it or else swept by the next, and one for artifacts, which stays.

Others may write to the directory that both are in, so nothing there is touched but what is ours, and no link followed.
"""

import fcntl
import logging
import os
import re
import stat
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tidewheel.blobs.disk import remove_unless_locked
from tidewheel.worker.executors.scratch import remove_full

_PREFIX: Final = "tide-runs-"
_OURS: Final = re.compile(rf"{_PREFIX}\w{{8}}")
"""As `mkdtemp` names them."""
_ATTEMPTS: Final = 100
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_log = logging.getLogger(__name__)


@contextmanager
def host_directory(above: str) -> Iterator[Path]:
    """Give a new directory, which is removed in the end, and have those of dead hosts removed meanwhile."""
    path, lock = _locked(above)
    try:
        # Some may hold much, and nobody waits for that.
        threading.Thread(target=sweep, args=(above,), name="sweep", daemon=True).start()
        yield path
    finally:
        remove_full(str(path))
        os.close(lock)


def sweep(above: str) -> None:
    """Remove the directories of hosts that were killed: those of ours that nobody has locked."""
    with os.scandir(above) as entries:
        found = [
            Path(entry.path) for entry in entries if _OURS.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False)
        ]
    for path in found:
        with suppress(OSError):  # it is none, or not ours to open, or another host was quicker
            if path.lstat().st_uid == os.geteuid():
                remove_unless_locked(path, lambda unlocked: remove_full(str(unlocked)))


def artifact_directory(above: str, otherwise: Path) -> Path:
    """Return where artifacts are kept for all hosts of this user; `otherwise` if that is not a place of ours alone."""
    path = Path(above) / f"tide-artifacts-{os.geteuid()}"
    with suppress(FileExistsError):
        path.mkdir(0o700)
    status = path.lstat()
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o077:
        return path
    _log.warning("artifacts are kept for this worker alone: %s is not a folder that only its user may enter", path)
    return otherwise


def _locked(above: str) -> tuple[Path, int]:
    """Make a directory and lock it; the system drops the lock with the process."""
    for _ in range(_ATTEMPTS):
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=above))
        with suppress(FileNotFoundError):
            lock = os.open(path, _FOLDER)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_still(path, lock):
                return path, lock
            os.close(lock)  # a sweeper came between
    raise OSError(f"directories in {above} do not stay")


def _is_still(path: Path, handle: int) -> bool:
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False
