"""Retention of lines: the oldest go, and those of tenants with an age of their own when that has passed."""

from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from tidewheel.model.retention import log_ages
from tidewheel.store.sqlite import log_lines
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, span, timedelta_of

Write = Callable[[Callable[[Session], Any]], Any]


class LogRetention:
    """Remembers how far each tenant's lines were looked through, so that none is looked at again and again."""

    def __init__(self) -> None:
        self._own: dict[int, timedelta] = {}
        self._reached: dict[int | None, int] = {}

    async def retire(self, write: Write, general: timedelta, limit: int) -> None:
        """Remove all that is too old, in pieces."""
        ages = log_ages(general, await write(self._learn))
        while await write(lambda session: log_lines.retire(session, session.now - span(ages.longest), limit)) == limit:
            pass
        for tenant, age in ages.shorter.items():
            while await write(partial(self._piece, tenant, age, limit)) == limit:
                pass

    def _learn(self, session: Session) -> dict[int, timedelta]:
        own = {tenant: timedelta_of(age) for tenant, age in rows(session.connection, "log_ages", {})}
        if own != self._own:
            self._own, self._reached = own, {}
        return own

    def _piece(self, tenant: int | None, age: timedelta, limit: int, session: Session) -> int:
        """Look at the next pieces that are older than that, and remove a tenant's; return how many there were."""
        values = {"beyond": self._reached.get(tenant, 0), "until": session.now - span(age), "limit": limit}
        seen = session.rows("next_lines", tenant=tenant, **values)
        if seen:
            self._reached[tenant] = seen[-1][0]
        session.run("remove_lines", ids=json_text([number for number, goes in seen if goes]))
        return len(seen)
