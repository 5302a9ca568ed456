"""The desk: how pages ask the endpoints of the API, with the rights and the tenant of who looks.

There is no second way around them: each asks whether its actor may, reads and checks what it is given, and has what it
changes written down, just as for a request over HTTP.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from tidewheel.errors import Forbidden
from tidewheel.server.access import Door
from tidewheel.server.endpoint import ALL_TENANTS, Answer, Call, Endpoint, RequestHeader
from tidewheel.server.entrance import Visitor, check_may
from tidewheel.server.guests import Ticket
from tidewheel.server.reading import convert, read_query
from tidewheel.server.service import Service
from tidewheel.server.table import ENDPOINTS

_BY_NAME: Final[Mapping[str, Endpoint]] = {endpoint.name: endpoint for endpoint in ENDPOINTS}


class Desk:
    """Asks on behalf of one visitor."""

    def __init__(self, service: Service, visitor: Visitor, ticket: Ticket, door: Door) -> None:
        self.service = service
        self.visitor = visitor
        self.ticket = ticket
        self._recheck = partial(door.recheck, *ticket)

    def may(self, name: str) -> bool:
        """Tell whether the visitor may use an endpoint, so that a page can leave out the rest."""
        try:
            self.check(name)
        except Forbidden:
            return False
        return True

    def check(self, name: str) -> None:
        """Raise Forbidden if the visitor may not use an endpoint."""
        check_may(self.visitor.actor, _BY_NAME[name])

    async def ask(self, name: str, /, *, query: Mapping[str, Any] | None = None, body: Any = None, **path: str) -> Any:
        """Return what an endpoint answers. Raises what it raises, and Forbidden."""
        return (await self.answer(name, query=query, body=body, headers=None, **path)).body

    async def ask_widely(
        self, name: str, /, *, query: Mapping[str, Any] | None = None, body: Any = None, **path: str
    ) -> Any:
        """Ask about the things of all tenants, if the visitor may see those, or else about those of its own."""
        headers = {RequestHeader.TENANT.value[0].lower(): ALL_TENANTS}
        return (await self.answer(name, query=query, body=body, headers=headers, **path)).body

    async def answer(
        self,
        name: str,
        /,
        *,
        query: Mapping[str, Any] | None = None,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        **path: str,
    ) -> Answer:
        """Return the whole answer of an endpoint."""
        endpoint = _BY_NAME[name]
        check_may(self.visitor.actor, endpoint)
        given = {key: value for key, value in (query or {}).items() if value not in (None, "")}
        read = None if endpoint.body is None else convert({} if body is None else body, endpoint.body)
        asked = read_query(urlencode(given).encode(), endpoint.query)
        call = Call(*self.visitor, path, asked, read, headers or {}, self._recheck)
        return await endpoint.handler(self.service, call)
