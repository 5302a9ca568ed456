"""Recognises keys. A key is looked up in the store every half second at most, so that revoking it is soon felt."""

import asyncio
import ipaddress
import logging
from collections import OrderedDict
from typing import Final, NamedTuple
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import TideError, TooMany, Unauthenticated
from tidewheel.model.api_key import NO_PREFIX, USED_EVERY, ApiKey, Known, digest_of, prefix_of, recognise
from tidewheel.model.request_rate import Rate
from tidewheel.model.session import SessionToken
from tidewheel.server.access.throttle import Throttle
from tidewheel.store.access import KeyStore

REMEMBER: Final = 0.5
"""Seconds for which a key that was found good is not looked up again; revoking it is to be felt within a second."""
MOST_REMEMBERED: Final = 10_000
WRONG_RATE: Final = Rate(1.0, 30)
"""How often someone may come with keys that are not known to be good."""
DOUBTFUL_AT_ONCE: Final = 2
"""Keys that are looked up at the same time for places that brought too many wrong ones."""

_log = logging.getLogger(__name__)


class _Kept(NamedTuple):
    key: ApiKey
    until: float


class KeyRing:
    """Recognises keys for one process. It keeps digests and never a key; what it logs are prefixes."""

    def __init__(self, store: KeyStore, clock: Clock, *, wrong: Rate = WRONG_RATE) -> None:
        self._store = store
        self._clock = clock
        self._wrong_rate = wrong
        self._wrong = Throttle(clock)
        self._kept: OrderedDict[bytes, _Kept] = OrderedDict()
        self._looking: dict[bytes, asyncio.Task[ApiKey | None]] = {}
        self._doubtful = asyncio.Semaphore(DOUBTFUL_AT_ONCE)
        self._noting: dict[UUID, asyncio.Task[None]] = {}

    async def recognise(self, brought: str | SessionToken, address: str) -> ApiKey:
        """Return the key that someone at an address brought, or whose session they brought.

        Raises Unauthenticated for one that opens nothing, whatever the reason, with one look at the store in each case;
        and TooMany where too many such came from. A good key is welcome there all the same, for behind a proxy all
        have one address: what is no key is not looked up then, and what may be one after the others of that place.
        """
        digest = digest_of(brought) if isinstance(brought, str) else b"session" + digest_of(brought.text)
        kept = self._kept.get(digest)
        if kept is not None and self._clock.monotonic() < kept.until:
            return kept.key
        place = group_of(address)
        if kept is not None or digest in self._looking:
            return await self._opened(brought, digest)
        allowance = self._wrong.take(place, self._wrong_rate)
        if allowance.allowed:
            key = await self._opened(brought, digest)
            self._wrong.give_back(place)
            return key
        slow = TooMany("wrong keys from this address", allowance.retry_after)
        if _prefix_in(brought) == NO_PREFIX:
            raise slow
        async with self._doubtful:
            try:
                return await self._opened(brought, digest)
            except Unauthenticated:
                raise slow from None

    async def close(self) -> None:
        """Finish what was begun."""
        tasks = [*self._looking.values(), *self._noting.values()]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _opened(self, brought: str | SessionToken, digest: bytes) -> ApiKey:
        key = await self._look_up(brought, digest)
        if key is None:
            raise Unauthenticated
        return key

    async def _look_up(self, brought: str | SessionToken, digest: bytes) -> ApiKey | None:
        """Ask the store once for all who bring the same at the same time; who goes away does not disturb the others."""
        task = self._looking.get(digest)
        if task is None:
            task = self._looking[digest] = asyncio.create_task(self._ask(brought, digest))
            task.add_done_callback(lambda done: self._looked(digest, done))
        return await asyncio.shield(task)

    def _looked(self, digest: bytes, done: "asyncio.Task[ApiKey | None]") -> None:
        del self._looking[digest]
        if not done.cancelled():
            done.exception()  # whoever asked has heard of it, unless all of them are gone

    async def _ask(self, brought: str | SessionToken, digest: bytes) -> ApiKey | None:
        began = self._clock.monotonic()
        known = await self._store.find_key(_prefix_in(brought))
        key = brought.key_of(known) if isinstance(brought, SessionToken) else recognise(digest, known)
        if key is None or known is None:
            self._kept.pop(digest, None)
            return None
        self._kept[digest] = _Kept(key, began + REMEMBER)
        self._kept.move_to_end(digest)
        while len(self._kept) > MOST_REMEMBERED:
            self._kept.popitem(last=False)
        self._note_use(known)
        return key

    def _note_use(self, known: Known) -> None:
        key = known.key
        if key.id in self._noting or (key.last_used_at is not None and known.now - key.last_used_at < USED_EVERY):
            return
        self._noting[key.id] = asyncio.create_task(self._write_use(key))

    async def _write_use(self, key: ApiKey) -> None:
        try:
            await self._store.note_key_use(key.id)
        except TideError as error:
            _log.warning("that key %s was used could not be written down: %s", key.prefix, error)
        finally:
            del self._noting[key.id]


def _prefix_in(brought: str | SessionToken) -> str:
    return brought.prefix if isinstance(brought, SessionToken) else prefix_of(brought)


def group_of(address: str) -> str:
    """Return what counts as one place: an IPv4 address, or the network of an IPv6 one, which has 2**64 of them."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address[:100]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return str(ipaddress.ip_network((found, 64), strict=False))
    return str(found)
