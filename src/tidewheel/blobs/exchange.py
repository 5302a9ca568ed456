"""Objects that others fetch and bring without us, by addresses that we sign.

Nobody can tell what someone brings before it is there, and an address stays good after it was used once. So what is
brought arrives under a name of its own. From there it is copied to where no address leads, looked at, and only then
put where it belongs.
"""

import asyncio
import hashlib
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta

from tidewheel.blobs import names
from tidewheel.blobs.backend import Signing
from tidewheel.blobs.names import Left
from tidewheel.errors import Invalid, NotFound


class Exchange:
    """What is handed out and taken in."""

    def __init__(self, backend: Signing) -> None:
        self._backend = backend

    async def download(self, location: str, lifetime: timedelta) -> str:
        """Return where an object can be fetched for a while."""
        return await self._backend.sign("GET", names.key_of(location), lifetime)

    async def upload(self, name: str, lifetime: timedelta) -> str:
        """Return where something can be brought for a while, under a name that `names.upload_name` made."""
        return await self._backend.sign("PUT", names.upload_key(name), lifetime)

    async def take(self, name: str, digest: str, size: int) -> None:
        """Make an artifact of what was brought.

        Raises NotFound if nothing was, and Invalid if it is not what was said; then it is removed.
        """
        async with self._aside(name) as aside:
            await self._check_size(aside, size)
            hasher = hashlib.sha256()
            await self._backend.get(aside, hasher.update)
            if hasher.hexdigest() != digest:
                raise Invalid("digest", "what came is not what has this digest")
            await self._backend.copy(aside, names.artifact_key(names.check_digest(digest)))

    async def take_left(self, name: str, left: Left, size: int, check: Callable[[bytes], None] | None = None) -> None:
        """Make of what was brought a result or a file of a run; `check` is handed all of it. Raises as `take` does."""
        async with self._aside(name) as aside:
            await self._check_size(aside, size)
            if check is not None:
                parts: list[bytes] = []
                await self._backend.get(aside, parts.append)
                await asyncio.to_thread(check, b"".join(parts))
            await self._backend.copy(aside, names.left_key(*left))

    @asynccontextmanager
    async def _aside(self, name: str) -> AsyncIterator[str]:
        """Put what was brought where no address leads, and remove both in the end."""
        brought = names.upload_key(name)
        aside = names.upload_key(name[:13] + secrets.token_hex(16))
        try:
            await self._backend.copy(brought, aside)
        except NotFound:
            raise NotFound("upload", name) from None
        try:
            yield aside
        finally:
            await self._backend.delete(aside)
            await self._backend.delete(brought)

    async def _check_size(self, key: str, size: int) -> None:
        found = await self._backend.size(key)
        if found != size:
            raise Invalid("size", f"must be {size} bytes, as was said, not {found}")

    async def sweep(self, now: float) -> int:
        """Remove what was brought and never asked for again, and return how much that was."""
        over = [key for key, _ in await self._backend.find("uploads") if names.upload_is_over(key, now)]
        for key in over:
            await self._backend.delete(key)
        return len(over)
