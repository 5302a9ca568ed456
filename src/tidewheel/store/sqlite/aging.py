"""Jobs that have waited for too long, found by a slow walk over those that were made long ago."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.clock import Clock
from tidewheel.model.ids import make_id
from tidewheel.model.retention import why_too_old
from tidewheel.model.states import Cause
from tidewheel.model.submission import MAX_ID_SKEW
from tidewheel.store.sqlite.connection import value
from tidewheel.store.sqlite.ending import end_waiting
from tidewheel.store.sqlite.releasing import Waiting
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, micros, span

PIECES: Final = 20
_FIRST: Final = UUID(int=0)
_seen: Final = msgspec.json.Decoder(list[tuple[UUID, int]]).decode
_waiting: Final = msgspec.json.Decoder(list[Waiting]).decode

Read = Callable[[Callable[[apsw.Connection], Any]], Awaitable[Any]]
Write = Callable[[Callable[[Session], Any]], Awaitable[Any]]


class Ages:
    """How far the walk has got."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._beyond = _FIRST

    async def expire(self, read: Read, write: Write, max_age: timedelta, limit: int) -> int:
        """See `store.keeping.UpkeepStore.expire_old`."""
        ended = 0
        for _ in range(PIECES):
            seen = await read(lambda connection: self._look(connection, max_age, limit))
            old = [job_id for job_id, is_old in seen if is_old]
            if old:
                ended += await write(partial(_end, old, max_age))
            self._beyond = seen[-1][0] if len(seen) == limit else _FIRST
            if len(seen) < limit:
                break
        return ended

    def _look(self, connection: apsw.Connection, max_age: timedelta, limit: int) -> list[tuple[UUID, int]]:
        now = micros(self._clock.now())
        young = make_id(max(0, (now - span(max_age) + span(MAX_ID_SKEW)) // 1000), 0)
        bounds = {"beyond": self._beyond.bytes, "young": young.bytes, "until": now - span(max_age), "limit": limit}
        return _seen(value(connection, "next_by_id", bounds))


def _end(jobs: list[UUID], max_age: timedelta, session: Session) -> int:
    now = session.now
    waiting = _waiting(session.value("old_waiting", jobs=json_text(jobs), until=now - span(max_age)))
    return end_waiting(session, waiting, Cause.EXPIRED, why_too_old(max_age), now)
