"""Connections to the file: set up alike, patient with other processes, and errors in our own words.

The file is never opened by other means than SQLite: closing any descriptor of it would drop the locks that other
connections of this process hold.
"""

import random
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import apsw

from tidewheel.errors import Invalid, OutcomeUnknown, StoreFull, StoreMismatch, TideError, Unavailable
from tidewheel.store.queries import load

SQL: Final = load("tidewheel.store.sqlite")

PATIENCE: Final = 10.0
"""Seconds to wait for the write lock while another process holds it."""
_LONGEST_NAP: Final = 0.002
_CACHE_KIB: Final = 64 * 1024

Values = Mapping[str, Any]


class Busy:
    """Waits for a lock with short naps; SQLite's own handler would sleep up to 100 ms at a time."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._waited = 0.0
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._never = threading.Event()

    def __call__(self, turn: int) -> bool:
        """Tell SQLite whether to try again."""
        if turn == 0:
            self._waited = 0.0
        if self._waited >= self._patience:
            return False
        nap = self._random.uniform(0.5, 1.0) * min(_LONGEST_NAP, 0.0001 * (turn + 1))
        self._never.wait(nap)
        self._waited += nap
        return True


def connect(path: Path, *, create: bool = False) -> apsw.Connection:
    """Open a connection that may write."""
    flags = apsw.SQLITE_OPEN_READWRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
    try:
        connection = apsw.Connection(str(path), flags=flags, statementcachesize=200)
    except apsw.CantOpenError as error:
        raise Unavailable(_why_not(path, create=create)) from error
    connection.set_busy_handler(Busy())
    try:
        _set_up(connection)
    except apsw.Error as error:
        connection.close()
        raise translate(error, path) from error
    return connection


def _why_not(path: Path, *, create: bool) -> str:
    """Say why a file cannot be opened, which SQLite does not."""
    folder = path.absolute().parent
    if not folder.is_dir():
        return f"{path} cannot be opened: there is no folder {folder}"
    if path.is_dir():
        return f"{path} cannot be opened: it is a folder"
    if not path.exists() and not create:
        return f"{path} cannot be opened: there is no such file yet; `tide db upgrade` makes it"
    return f"{path} cannot be opened: it, or the folder {folder}, may not be read and written"


def _set_up(connection: apsw.Connection) -> None:
    connection.pragma("mmap_size", 0)
    connection.pragma("synchronous", "FULL")
    connection.pragma("temp_store", "MEMORY")
    connection.pragma("cache_size", -_CACHE_KIB)
    connection.pragma("trusted_schema", 0)
    connection.wal_autocheckpoint(0)


def connect_reader(path: Path) -> apsw.Connection:
    """Open a connection that only reads."""
    connection = connect(path)
    connection.pragma("query_only", 1)
    return connection


def value(connection: apsw.Connection, name: str, values: Values) -> Any:
    """Run a named statement that answers with one value."""
    return connection.execute(SQL[name], values).get


def rows(connection: apsw.Connection, name: str, values: Values) -> list[Any]:
    """Run a named statement and return its rows."""
    return connection.execute(SQL[name], values).fetchall()


def translate(error: Exception, path: Path, *, committing: bool = False) -> Exception:
    """Return the error of the model that an error of SQLite stands for; others stay as they are."""
    if isinstance(error, UnicodeEncodeError):
        return Invalid("text", "must not contain half of a surrogate pair")
    if committing and isinstance(error, apsw.IOError):
        return OutcomeUnknown(f"{path}: the disk failed during a commit: {error}")
    for kind, (becomes, says) in _MEANINGS.items():
        if isinstance(error, kind):
            return becomes(f"{path} {says} ({error})")
    return error


_MEANINGS: Final[Mapping[type[apsw.Error], tuple[type[TideError], str]]] = {
    apsw.NotADBError: (StoreMismatch, "is not a Tidewheel store: it is no SQLite database"),
    apsw.CorruptError: (StoreMismatch, "is damaged: stop all programs, keep a copy, restore from a backup"),
    apsw.FullError: (StoreFull, "has no room left on its disk, and nothing was written"),
    apsw.BusyError: (Unavailable, "was locked by another process for too long"),
    apsw.Error: (Unavailable, "cannot be used"),
}
