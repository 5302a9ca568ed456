"""The calls of the client that look for lines of all runs."""

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final, TypedDict, Unpack
from uuid import UUID

from tidewheel.client.options import in_query
from tidewheel.model.log import LogStream
from tidewheel.model.log_query import FoundLine
from tidewheel.store.remote.looking import FoundPage
from tidewheel.store.remote.transport import Transport

PAGE: Final = 200


class LineConditions(TypedDict, total=False):
    """Which lines; all conditions must hold."""

    kind: str
    queue: str
    job_id: UUID
    level: str
    """This level, or one of more weight."""
    stream: LogStream
    stored_after: datetime
    stored_before: datetime


class LogSearchCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def search_logs(
        self, text: str = "", *, oldest_first: bool = False, **where: Unpack[LineConditions]
    ) -> AsyncIterator[FoundLine]:
        """Return all lines in which something is found, newest first.

        `text` is of words, `"a phrase"`, `begin*`, `-without` and `field:value`. Raises Invalid.
        """
        query: dict[str, Any] = in_query(where) | {"q": text, "limit": PAGE, "oldest_first": str(oldest_first).lower()}
        while True:
            page = await self._transport.get("/v1/logs", FoundPage, query)
            for line in page.lines:
                yield line.record()
            if page.next_after is None:
                return
            query["after"] = page.next_after
