"""Objects in memory, for tests."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterator

from tidewheel.blobs.backend import CHUNK, PIECE, Found
from tidewheel.errors import NotFound


class MemoryBackend:
    """Gone with the process."""

    def __init__(self) -> None:
        self._objects: dict[str, bytes] = {}

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        del size
        self._objects[key] = await asyncio.to_thread(b"".join, chunks)

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        if key not in self._objects:
            raise NotFound("blob", key)
        data = self._objects[key]
        for start in range(0, len(data), CHUNK):
            await asyncio.to_thread(take, data[start : start + CHUNK])

    async def pieces(self, key: str) -> AsyncGenerator[bytes, None]:
        if key not in self._objects:
            raise NotFound("blob", key)
        data = self._objects[key]
        for start in range(0, len(data), PIECE):
            yield data[start : start + PIECE]

    async def size(self, key: str) -> int | None:
        data = self._objects.get(key)
        return None if data is None else len(data)

    async def find(self, folder: str) -> list[Found]:
        return [Found(key, len(data)) for key, data in self._objects.items() if key.startswith(folder + "/")]

    async def steps(self, folder: str, after: str, limit: int) -> list[str]:
        names = {key.split("/")[folder.count("/") + 1] for key in self._objects if key.startswith(folder + "/")}
        return sorted(name for name in names if name > after)[:limit]

    async def delete(self, key: str) -> None:
        self._objects.pop(key, None)
