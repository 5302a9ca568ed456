"""Work on local files: files that are whole before they are seen, and files of others that are not trusted."""

import errno
import fcntl
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from tidewheel.errors import Invalid, StoreFull, Unavailable

_PREFIX: Final = ".tide-part-"
_FULL: Final = (errno.ENOSPC, errno.EDQUOT)
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_CREATE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def told_plainly() -> Iterator[None]:
    """Turn what the operating system says into StoreFull or Unavailable."""
    try:
        yield
    except OSError as error:
        kind = StoreFull if error.errno in _FULL else Unavailable
        raise kind(f"{error.filename or 'a file'}: {error.strerror or error}") from error


# Files in the making


class Part(NamedTuple):
    """A file in the making."""

    file: BinaryIO
    path: Path

    def publish(self, target: Path, *, replace: bool) -> None:
        """Let it appear under its name, whole; what was there is replaced, or else stays. `file` is closed."""
        with self.path.open("rb") as guard:
            fcntl.flock(guard, fcntl.LOCK_SH)  # the lock must outlive `file`, or a sweeper could come between
            self.file.close()  # no system runs a program that someone has open for writing
            if replace:
                self.path.replace(target)
            else:
                with suppress(FileExistsError):
                    target.hardlink_to(self.path)

    def make_durable(self) -> None:
        """Write it to the disk."""
        self.file.flush()
        os.fsync(self.file.fileno())


@contextmanager
def part_in(folder: Path) -> Iterator[Part]:
    """Give a file that is removed in the end, unless it was published."""
    part = _create(folder)
    try:
        with part.file:
            yield part
    finally:
        part.path.unlink(missing_ok=True)


def _create(folder: Path) -> Part:
    while True:
        path = folder / (_PREFIX + secrets.token_hex(16))
        file = os.fdopen(os.open(path, _CREATE, 0o666), "wb")
        # The lock tells sweepers that someone is at work; the system drops it with the process.
        fcntl.flock(file, fcntl.LOCK_SH)
        if os.fstat(file.fileno()).st_nlink:
            return Part(file, path)
        file.close()  # a sweeper came between


def sweep(folder: Path) -> None:
    """Remove the files that dead processes left in the making."""
    for path in folder.glob(_PREFIX + "*"):
        with suppress(OSError):
            remove_unless_locked(path)


def remove_unless_locked(path: Path, remove: Callable[[Path], object] = Path.unlink) -> bool:
    """Remove a file or folder that nobody holds a lock on, and tell whether that was so."""
    handle = os.open(path, _READ)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(handle), path.lstat()):
            return False  # removed by another before we had the lock, and made anew
        remove(path)
    except BlockingIOError:
        return False
    finally:
        os.close(handle)
    return True


def sync_folder(folder: Path) -> None:
    """Write the entries of a folder to the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


# Files that others made


def open_plain(path: Path, inside: Path | None = None) -> BinaryIO:
    """Open a plain file for reading; a symbolic link, a pipe or a device is Invalid.

    With `inside`, no folder on the way from there may be a symbolic link either: a task that may write to a folder must
    not be able to make us read what lies elsewhere.
    """
    try:
        handle = os.open(path, _READ) if inside is None else open_beneath(inside, path)
    except (OSError, ValueError) as error:
        raise Invalid("path", f"{path}: {_why(error)}") from error
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise Invalid("path", f"{path}: is not a plain file")
    return os.fdopen(handle, "rb", buffering=0)


def open_beneath(folder: Path, path: Path) -> int:
    """Return a handle of a file below a folder, without passing a symbolic link. Raises OSError and ValueError."""
    *folders, name = path.relative_to(folder).parts or ("",)
    if ".." in (*folders, name):
        raise ValueError("must not lead upwards")
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in folders:
            deeper = os.open(step, _READ | os.O_DIRECTORY, dir_fd=handle)
            os.close(handle)
            handle = deeper
        return os.open(name, _READ, dir_fd=handle)
    finally:
        os.close(handle)


def _why(error: OSError | ValueError) -> str:
    if not isinstance(error, OSError):
        return str(error)
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "is a symbolic link, or lies behind one"
    return error.strerror or str(error)
