"""Reading a whole store, to copy it elsewhere."""

import hashlib
from collections.abc import Iterator
from datetime import UTC
from pathlib import Path
from typing import Final

import apsw
import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Conflict
from tidewheel.store.copying import PIECE, Piece, Snapshot
from tidewheel.store.sqlite.connection import SQL, connect_reader, rows, translate, value
from tidewheel.store.sqlite.migrate import check
from tidewheel.store.sqlite.values import instant, micros

ONLY_HERE: Final = {
    "job_history": frozenset(("cancel_reason",)),
    "log": frozenset(("id",)),
    "ended": frozenset(("id",)),
}
"""Columns that no other store has, or numbers for itself."""


class SqliteSource:
    """See `store.copying.CopySource`."""

    def __init__(self, path: Path, clock: Clock) -> None:
        check(path)
        self._path = path
        self._clock = clock
        self._connection = connect_reader(path)
        self._connection.execute("BEGIN")  # all is read as of the first look

    def snapshot(self) -> Snapshot:
        now = micros(self._clock.now())
        try:
            counts = dict(rows(self._connection, "copy_counts", {}))
            if alive := value(self._connection, "copy_alive", {"now": now}):
                raise Conflict(f"{alive} workers of {self._path} are alive: stop all that uses it, and copy then")
            [(epoch, first, noted)] = rows(self._connection, "copy_epoch", {"now": now})
            fingerprint = _fingerprint(self._connection)
        except apsw.Error as error:
            raise translate(error, self._path) from error
        day = instant(first).astimezone(UTC).date()
        return Snapshot(counts=counts, fingerprint=fingerprint, epoch=epoch, noted=noted, first_day=day)

    def pieces(self, table: str, skip: int) -> Iterator[Piece]:
        cursor = self._connection.execute(SQL[f"copy_{table}"], {"skip": skip})
        left_out = ONLY_HERE.get(table, frozenset())
        batch: list[tuple[object, ...]] = []
        names: list[str] = []
        for row in cursor:
            names = names or [column[0] for column in cursor.get_description()]
            batch.append(tuple(cell for name, cell in zip(names, row, strict=True) if name not in left_out))
            if len(batch) == PIECE:
                yield Piece(table, [name for name in names if name not in left_out], batch)
                batch = []
        if batch:
            yield Piece(table, [name for name in names if name not in left_out], batch)

    def fingerprint_now(self) -> str:
        fresh = connect_reader(self._path)
        try:
            return _fingerprint(fresh)
        finally:
            fresh.close()

    def close(self) -> None:
        self._connection.close()


def _fingerprint(connection: apsw.Connection) -> str:
    facts = [rows(connection, "copy_counts", {}), rows(connection, "copy_changes", {})]
    return hashlib.blake2b(msgspec.json.encode(facts), digest_size=16).hexdigest()
