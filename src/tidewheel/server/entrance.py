"""The entrance: what the head of a request says about who makes it, and in which tenant they work.

An actor of one tenant works in its own. An actor of all tenants works in `default`, or in the one that it names by
`Tide-Tenant`; with `*` one looks at all that one may see. Who names a tenant that is not theirs is refused, whether
there is such a tenant or not.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple
from urllib.parse import unquote

from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.access import Actor, Role
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.server.access import Door, is_loopback
from tidewheel.server.endpoint import ALL_TENANTS, Endpoint, RequestHeader
from tidewheel.server.guests import Ticket
from tidewheel.server.problems import Flaw, Refused

TENANT: Final = RequestHeader.TENANT.value[0]


class Visitor(NamedTuple):
    """Who came in, and whose things exist for them."""

    actor: Actor
    tenant: str


NOBODY: Final = Visitor(Actor(role=Role.VIEWER, tenant="", name="nobody"), "")
"""Who asks for what is open to all."""


async def admit(
    door: Door, headers: Mapping[str, str], ticket: Ticket, endpoint: Endpoint, fields: list[tuple[str, str]]
) -> Visitor:
    """Let someone in who wants to use an endpoint.

    What the answer must say about the rate of their requests is added to the fields, whatever the answer is. Raises
    Unauthenticated, Forbidden, TooMany (for wrong keys), Unavailable and Refused.
    """
    if endpoint.action is None:
        return NOBODY
    admitted = await door.admit(*ticket)
    fields += admitted.fields.items()
    if ticket.key is None:
        check_local(headers)
    if admitted.too_often:
        raise Refused("too-many", "too many requests with this key")
    check_may(admitted.actor, endpoint)
    return Visitor(admitted.actor, _tenant_of(admitted.actor, headers))


def check_may(actor: Actor, endpoint: Endpoint) -> None:
    """Raise Forbidden if an actor may not use an endpoint."""
    if endpoint.action is not None:
        actor.check(endpoint.action)
    if endpoint.everywhere and not actor.everywhere:
        raise Forbidden("what concerns all tenants", actor.role)


def check_local(headers: Mapping[str, str]) -> None:
    """Refuse a web page that comes without a key, by way of a browser on this machine.

    It must not get in by giving its own name our address, so only what was meant for a name of this machine is let in.
    """
    if not is_loopback(host_of(headers.get("host", ""))):
        raise Refused("forbidden", "without a key this server answers only requests to localhost")
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise Refused("forbidden", "without a key this server answers no requests of other web pages")


def host_of(authority: str) -> str:
    """Return the host of `host:port`; brackets of IPv6 addresses are taken off."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else authority


def _tenant_of(actor: Actor, headers: Mapping[str, str]) -> str:
    named = headers.get(TENANT.lower())
    if named == ALL_TENANTS:
        return actor.home
    try:
        return actor.scope(named and unquote(named)) or DEFAULT_TENANT
    except Invalid as error:
        flaws = [Flaw(detail=error.why, header=TENANT)]
        raise Refused("bad-header", f"{TENANT}: {error.why}", flaws=flaws) from None
