"""The door: the one place where an actor comes from."""

import asyncio
import enum
from typing import Final

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unauthenticated
from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ApiKey
from tidewheel.model.request_rate import Allowance, Rate, rate_fields
from tidewheel.model.session import SessionToken
from tidewheel.server.access.key_ring import REMEMBER, KeyRing
from tidewheel.server.access.throttle import Throttle
from tidewheel.store.access import KeyStore

LOCAL: Final = Actor(role=Role.ADMIN, name="local")
"""Who comes where no key is needed: from this very machine, and before there is any key."""


class Keyless(enum.Enum):
    """When one may come in without a key."""

    NEVER = enum.auto()
    UNTIL_A_KEY = enum.auto()
    """As long as there has never been a key."""
    ALWAYS = enum.auto()


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """Who came in, and how it stands with the rate of its requests."""

    actor: Actor
    allowance: Allowance | None = None
    """None if there is no bound. If it says no, the answer is 429, with the fields."""
    fields: dict[str, str] = {}
    """For the answer, whatever it is: RateLimit, RateLimit-Policy, and Retry-After if it was too often."""

    @property
    def too_often(self) -> bool:
        """Whether this request is one too many."""
        return self.allowance is not None and not self.allowance.allowed


class Door:
    """Lets actors in."""

    def __init__(self, store: KeyStore, clock: Clock, *, keyless: Keyless, rate: Rate | None = None) -> None:
        self._store = store
        self._clock = clock
        self._keyless = keyless
        self._rate = rate
        self._ring = KeyRing(store, clock)
        self._throttle = Throttle(clock)
        self._has_keys = False
        self._looked_at = float("-inf")
        self._looking: asyncio.Task[None] | None = None

    async def admit(self, key: str | SessionToken | None, address: str) -> Admitted:
        """Return who comes with a key or a session from an address, with one request.

        Raises Unauthenticated, TooMany for too many wrong keys, and Unavailable. A request too many is not an error
        here: the caller must know who it was, and the fields of the answer.
        """
        known = await self._known(key, address)
        if known is None:
            return Admitted(actor=LOCAL)
        rate = _rate_of(known, self._rate)
        if rate is None:
            return Admitted(actor=known.actor)
        allowance = self._throttle.take(known.id, rate)
        return Admitted(actor=known.actor, allowance=allowance, fields=rate_fields(allowance, rate))

    async def recheck(self, key: str | SessionToken | None, address: str) -> None:
        """Raise Unauthenticated once whoever came in so is not let in any more; for those who stay long."""
        await self._known(key, address)

    async def close(self) -> None:
        """Finish what was begun."""
        await self._ring.close()

    async def _known(self, key: str | SessionToken | None, address: str) -> ApiKey | None:
        """Return the key that someone brought; None for one who needs none. Raises Unauthenticated."""
        if key is not None:
            return await self._ring.recognise(key, address)
        if await self._needs_key():
            raise Unauthenticated
        return None

    async def _needs_key(self) -> bool:
        """Tell whether nobody comes in without a key; once there has been one, that stays so."""
        if self._keyless is not Keyless.UNTIL_A_KEY:
            return self._keyless is Keyless.NEVER
        if not self._has_keys and self._clock.monotonic() - self._looked_at >= REMEMBER:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            await asyncio.shield(self._looking)
        return self._has_keys

    async def _look(self) -> None:
        """Ask the store once for all who come at the same time."""
        now = self._clock.monotonic()
        self._has_keys = await self._store.has_keys()
        self._looked_at = now


def token_of(authorization: str | None) -> str | None:
    """Return the key in a field `Authorization`; None if there is no such field, and no key at all for what is odd."""
    if authorization is None:
        return None
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _rate_of(key: ApiKey, default: Rate | None) -> Rate | None:
    if key.rate is None and key.burst is None:
        return default
    if key.rate is None:
        return None if default is None else Rate(default.per_second, key.burst or default.burst)
    return Rate(key.rate, key.burst or max(1, round(2 * key.rate)))
