"""Who asks, and what they may do. `Doorkeeper.admit` is the only place where an actor comes from."""

import ipaddress
from collections.abc import Mapping
from typing import Final, Protocol

import msgspec

from tidewheel.model.access import Role
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.server.problems import Refused

_RANKS: Final = {Role.VIEWER: 1, Role.SUBMITTER: 2, Role.OPERATOR: 3, Role.ADMIN: 4}
"""From the least to the most; a worker stands apart and may do a worker's work alone."""


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """Whoever makes a request."""

    tenant: str
    """Whose jobs it sees and makes; there are no others for it."""
    role: Role
    key_id: str | None = None
    """By which key it was recognised; None where none is needed."""
    everywhere: bool = False
    """Whether it also speaks for what belongs to no tenant, such as a gate on all of a kind."""

    def may(self, least: Role) -> bool:
        """Tell whether its role is enough."""
        if Role.WORKER in (self.role, least):
            return self.role is least or (least is Role.WORKER and self.role is Role.ADMIN)
        return _RANKS[self.role] >= _RANKS[least]


class Doorkeeper(Protocol):
    """Tells who someone is by what they bring along."""

    async def admit(self, headers: Mapping[str, str]) -> Actor:
        """Return who makes a request with these headers; raises Refused (`unauthorized`, `forbidden`)."""
        ...


class OpenDoor:
    """For a server that only this machine can reach: one tenant, no key.

    A web page in a browser on this machine must not get in by giving its own name our address, so only requests that
    were meant for a name of this machine are answered.
    """

    _actor: Final = Actor(tenant=DEFAULT_TENANT, role=Role.ADMIN, everywhere=True)

    async def admit(self, headers: Mapping[str, str]) -> Actor:
        if not is_loopback(host_of(headers.get("host", ""))):
            raise Refused("forbidden", "without keys this server answers only requests to localhost")
        if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
            raise Refused("forbidden", "without keys this server answers no requests of other web pages")
        return self._actor


def host_of(authority: str) -> str:
    """Return the host of `host:port`; brackets of IPv6 addresses are taken off."""
    if authority.startswith("["):
        return authority[1:].partition("]")[0]
    host, colon, port = authority.rpartition(":")
    return host if colon and port.isdecimal() and ":" not in host else authority


def is_loopback(host: str) -> bool:
    """Tell whether a name or an address stands for this machine alone."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
