"""Statements of the user's own in one transaction with jobs, on the writer's connection."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn, TypeVar

import apsw

from tidewheel.errors import Invalid
from tidewheel.model.job import JobSpec, Submitted
from tidewheel.model.submission import prepare_all
from tidewheel.store.joining import Inside
from tidewheel.store.sqlite import capping
from tidewheel.store.sqlite.migrate import MIGRATIONS
from tidewheel.store.sqlite.session import Session

T = TypeVar("T")

_NEVER: Final = {
    apsw.SQLITE_TRANSACTION: "BEGIN, COMMIT and ROLLBACK are done for you",
    apsw.SQLITE_SAVEPOINT: "savepoints are not for use here",
    apsw.SQLITE_ATTACH: "no other file can be attached",
    apsw.SQLITE_DETACH: "no other file can be attached",
    apsw.SQLITE_PRAGMA: "the settings of the connection are the store's",
}
_WRITES: Final = frozenset(
    {
        apsw.SQLITE_INSERT,
        apsw.SQLITE_UPDATE,
        apsw.SQLITE_DELETE,
        apsw.SQLITE_DROP_TABLE,
        apsw.SQLITE_DROP_INDEX,
        apsw.SQLITE_DROP_TRIGGER,
        apsw.SQLITE_DROP_VIEW,
        apsw.SQLITE_ALTER_TABLE,
        apsw.SQLITE_CREATE_INDEX,
        apsw.SQLITE_CREATE_TRIGGER,
        apsw.SQLITE_CREATE_TEMP_TRIGGER,
    }
)
_YOUR_FAULT: Final = (
    apsw.SQLError,
    apsw.ConstraintError,
    apsw.BindingsError,
    apsw.MismatchError,
    apsw.RangeError,
    apsw.AuthError,
    apsw.TooBigError,
)


@functools.cache
def our_names() -> frozenset[str]:
    """Return the tables, indexes and views that belong to the store."""
    empty = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        empty.execute(migration.sql)
    names = frozenset(name for (name,) in empty.execute("SELECT name FROM sqlite_schema"))
    empty.close()
    return names


def refuse(connection: object) -> NoReturn:
    """Say why a connection cannot carry a job into this store."""
    kind = type(connection)
    if kind.__module__.partition(".")[0] == "sqlite3":
        why = "a second SQLite library in one process would drop the locks of the first: use app.transaction(…)"
    else:
        why = f"jobs are kept in SQLite, which {kind.__module__}.{kind.__qualname__} does not write: app.transaction(…)"
    raise Invalid("connection", why)


def transact(session: Session, work: Callable[[Inside], T], max_args_bytes: int) -> T:
    """Run work inside the transaction that is open."""
    return work(_Inside(session, max_args_bytes))


class _Inside:
    """See `store.base.Inside`."""

    def __init__(self, session: Session, max_args_bytes: int) -> None:
        self._session = session
        self._max_args_bytes = max_args_bytes
        self._why = ""

    def execute(self, sql: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[tuple[Any, ...]]:
        connection = self._session.connection
        connection.authorizer = self._authorise
        self._why = ""
        try:
            return connection.execute(sql, values, can_cache=False).fetchall()
        except _YOUR_FAULT as error:
            raise Invalid("sql", self._why or str(error)) from error
        finally:
            connection.authorizer = None

    def submit(self, specs: Sequence[JobSpec]) -> list[Submitted]:
        return capping.submit_capped(self._session, prepare_all(specs, max_args_bytes=self._max_args_bytes))

    def _authorise(self, action: int, first: str | None, second: str | None, *_: str | None) -> int:
        if action in _NEVER:
            self._why = _NEVER[action]
        elif action in _WRITES and (ours := {first, second} & our_names()):
            self._why = f"{', '.join(map(str, ours))} belongs to the store, which alone may change it"
        return apsw.SQLITE_OK if not self._why else apsw.SQLITE_DENY
