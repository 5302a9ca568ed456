"""Readers: a few threads, each with a connection of its own that cannot write; every read is one short transaction."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar

import apsw

from tidewheel.errors import Unavailable
from tidewheel.store.sqlite.connection import connect_reader, translate

T = TypeVar("T")

READERS: Final = 2


class Readers:
    """Runs reads beside the writer."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._own = threading.local()
        self._opened: list[apsw.Connection] = []
        self._pool = ThreadPoolExecutor(READERS, "tide-reader")
        self._closed = False

    async def run(self, read: Callable[[apsw.Connection], T]) -> T:
        """Run a read in one transaction, so that all it sees is of one moment."""
        if self._closed:
            raise Unavailable(f"{self._path} was closed")
        return await asyncio.get_running_loop().run_in_executor(self._pool, self._read, read)

    def close(self) -> None:
        """Wait for what is under way and close; blocks until that is done."""
        self._closed = True
        self._pool.shutdown()
        while self._opened:
            self._opened.pop().close()

    @property
    def connections(self) -> list[apsw.Connection]:
        return self._opened

    def _read(self, read: Callable[[apsw.Connection], T]) -> T:
        try:
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                return read(connection)
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
        except (apsw.Error, UnicodeEncodeError) as error:
            raise translate(error, self._path) from error

    def _connection(self) -> apsw.Connection:
        connection: apsw.Connection | None = getattr(self._own, "connection", None)
        if connection is None:
            connection = self._own.connection = connect_reader(self._path)
            self._opened.append(connection)
        return connection
