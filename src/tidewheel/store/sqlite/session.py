"""What the writer thread works with: the connection inside a transaction, the time, and what it remembers."""

import enum
from typing import Any, Final
from uuid import UUID

import apsw

from tidewheel.clock import Clock
from tidewheel.model.ids import IdMaker
from tidewheel.model.noted_kinds import NotedKinds
from tidewheel.model.order import Turns
from tidewheel.model.priority import Priority
from tidewheel.store.bell import SOON
from tidewheel.store.sqlite.connection import SQL, rows, value
from tidewheel.store.sqlite.lanes import NEVER, Lanes
from tidewheel.store.sqlite.values import micros, span

_SOON: Final = span(SOON)


class Hint(enum.Enum):
    """Who should hear that something happened."""

    FOR_ALL = enum.auto()
    """It was done here, so the listeners of all processes."""
    FOR_US = enum.auto()
    """It was done by another process, which told the others itself."""


class Session:
    """Handed to every piece of work. Used by the writer thread alone."""

    def __init__(self, connection: apsw.Connection, clock: Clock, make_id: IdMaker) -> None:
        self.connection = connection
        self.make_id = make_id
        self.lanes = Lanes()
        self.kinds = NotedKinds()
        self.turns = dict[tuple[UUID, Priority | None], Turns]()
        """Whose turn it is, for each worker and each bound that it sets itself."""
        self._clock = clock
        self._seen_version = self._version()
        self._stirred = False
        self._others_wrote = False
        self._heard = False

    @property
    def now(self) -> int:
        """The time, in microseconds; a piece of work asks once."""
        return micros(self._clock.now())

    def begin(self) -> None:
        """Notice at the start of a transaction what other processes changed."""
        self.notice_others()
        self.lanes.catch_up(self.connection)

    def notice_others(self) -> None:
        """Notice whether another connection has committed something."""
        version = self._version()
        if version != self._seen_version:
            self._seen_version = version
            self.lanes.doubt()
            self._others_wrote = True

    def hear(self) -> None:
        """Note that another process may have said that listeners should hear of what it wrote."""
        self.notice_others()
        self._heard, self._others_wrote = self._heard or self._others_wrote, False

    def stir(self) -> None:
        """Note that something happened which listeners should hear of after the commit."""
        self._stirred = True

    def take_hint(self) -> Hint | None:
        """Tell whether listeners should hear of what happened since the last time, and which."""
        stirred = self._stirred or self.lanes.soonest <= self.now + _SOON
        hint = Hint.FOR_ALL if stirred else Hint.FOR_US if self._heard else None
        self._stirred, self._heard, self.lanes.soonest = False, False, NEVER
        return hint

    def forget(self) -> None:
        """Drop all that was remembered, for a piece of work was undone; the next one begins with what is stored."""
        self.lanes.forget()
        self.kinds.forget()
        if self.connection.in_transaction:
            self.lanes.catch_up(self.connection)

    def _version(self) -> int:
        version: int = self.connection.execute("PRAGMA data_version").get
        return version

    def forget_turns(self, worker_id: UUID) -> None:
        """Drop what was remembered for a worker that is gone."""
        for bound in (None, *Priority):
            self.turns.pop((worker_id, bound), None)

    def run(self, name: str, /, **values: Any) -> None:
        """Run a named statement for its effect."""
        self.connection.execute(SQL[name], values)

    def value(self, name: str, /, **values: Any) -> Any:
        """Run a named statement that answers with one value."""
        return value(self.connection, name, values)

    def rows(self, name: str, /, **values: Any) -> list[Any]:
        """Run a named statement and return its rows."""
        return rows(self.connection, name, values)
