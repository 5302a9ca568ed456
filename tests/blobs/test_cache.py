"""Artifacts on a worker's host."""

import asyncio
import fcntl
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from tests.blobs.conftest import names_in
from tidewheel.blobs import ArtifactCache, Blobs, open_blobs
from tidewheel.blobs.disk import remove_unless_locked
from tidewheel.blobs.memory import MemoryBackend
from tidewheel.blobs.names import artifact_key
from tidewheel.errors import Damaged, Invalid, NotFound
from tidewheel.testing import FakeClock

HOLD = """
import asyncio, pathlib, sys
from tidewheel.blobs import ArtifactCache, open_blobs

async def main(folder, digest):
    async with ArtifactCache(pathlib.Path(folder), open_blobs("memory://"), 0).use(digest) as path:
        print(path, flush=True)
        sys.stdin.readline()

asyncio.run(main(*sys.argv[1:]))
"""


class Gated(MemoryBackend):
    """Counts the gets, and lets them pass when the gate is open."""

    def __init__(self) -> None:
        super().__init__()
        self.gets = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def get(self, key: str, take: Callable[[bytes], object]) -> None:
        self.gets += 1
        self.begun.set()
        await self.gate.wait()
        await super().get(key, take)


@pytest.fixture
def backend() -> Gated:
    return Gated()


@pytest.fixture
def blobs(backend: Gated) -> Blobs:
    return Blobs(backend)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def cache(folder: Path, blobs: Blobs, clock: FakeClock) -> ArtifactCache:
    return ArtifactCache(folder, blobs, 1000, clock)


def names(folder: Path) -> set[str]:
    return set(names_in(folder))


async def use(cache: ArtifactCache, digest: str) -> bytes:
    async with cache.use(digest) as path:
        return path.read_bytes()


async def test_an_artifact_can_be_run_and_not_be_written(cache: ArtifactCache, blobs: Blobs) -> None:
    digest = await blobs.put_bytes(b"#!/bin/sh\necho it runs\n")

    async with cache.use(digest) as path:
        assert path.stat().st_mode & 0o777 == 0o555
        assert await asyncio.to_thread(subprocess.check_output, [path]) == b"it runs\n"


async def test_those_who_ask_at_once_share_one_download(cache: ArtifactCache, blobs: Blobs, backend: Gated) -> None:
    digest = await blobs.put_bytes(b"shared")
    backend.gate.clear()

    async with asyncio.TaskGroup() as group:
        askers = [group.create_task(use(cache, digest)) for _ in range(8)]
        await backend.begun.wait()
        backend.gate.set()

    assert [asker.result() for asker in askers] == [b"shared"] * 8
    assert await use(cache, digest) == b"shared"
    assert backend.gets == 1


async def test_one_who_gives_up_does_not_stop_it_for_the_others(
    cache: ArtifactCache, blobs: Blobs, backend: Gated
) -> None:
    digest = await blobs.put_bytes(b"shared")
    backend.gate.clear()
    first, second = (asyncio.create_task(use(cache, digest)) for _ in range(2))
    await backend.begun.wait()

    first.cancel()
    await asyncio.wait([first])
    backend.gate.set()

    assert first.cancelled()
    assert await second == b"shared"
    assert backend.gets == 1


async def test_one_who_gives_up_early_holds_nothing(
    cache: ArtifactCache, blobs: Blobs, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    digest = await blobs.put_bytes(bytes(900))
    await use(cache, digest)
    begun, go_on = threading.Event(), threading.Event()

    def slowly(*arguments: int, real: Callable[..., None] = fcntl.flock) -> None:
        begun.set()
        go_on.wait(30)
        real(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", slowly)
        asker = asyncio.create_task(use(cache, digest))
        assert await asyncio.to_thread(begun.wait, 30)
        asker.cancel()
        await asyncio.wait([asker])
        go_on.set()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}))

    assert remove_unless_locked(folder / digest)


async def test_what_is_missing_fails_for_all_and_can_be_had_once_it_is_there(
    cache: ArtifactCache, blobs: Blobs, folder: Path
) -> None:
    digest = await Blobs(MemoryBackend()).put_bytes(b"late")

    failures = await asyncio.gather(*(use(cache, digest) for _ in range(3)), return_exceptions=True)
    assert [type(failure) for failure in failures] == [NotFound] * 3
    assert names(folder) == set()

    await blobs.put_bytes(b"late")
    assert await use(cache, digest) == b"late"


async def test_what_was_used_least_recently_makes_room(
    cache: ArtifactCache, blobs: Blobs, folder: Path, clock: FakeClock
) -> None:
    old, often, new = [await blobs.put_bytes(char * 400) for char in (b"1", b"2", b"3")]
    for digest in (often, old, often):
        await clock.advance(timedelta(minutes=1))
        await use(cache, digest)
    assert names(folder) == {old, often}

    await clock.advance(timedelta(minutes=1))
    await use(cache, new)

    assert names(folder) == {often, new}


async def test_what_is_in_use_stays(cache: ArtifactCache, blobs: Blobs, folder: Path, clock: FakeClock) -> None:
    held, other, new, newer = [await blobs.put_bytes(char * 900) for char in (b"1", b"2", b"3", b"4")]

    async with cache.use(held) as path:
        await clock.advance(timedelta(minutes=1))
        await use(cache, other)
        await clock.advance(timedelta(minutes=1))
        await use(cache, new)
        assert path.read_bytes() == b"1" * 900
        assert names(folder) == {held, new}
    await clock.advance(timedelta(minutes=1))
    await use(cache, newer)

    assert names(folder) == {newer}


@pytest.mark.parametrize("end", ["leave", "kill"])
async def test_what_another_process_uses_stays_until_it_ends(
    cache: ArtifactCache, blobs: Blobs, folder: Path, clock: FakeClock, end: str
) -> None:
    held, new, newer = [await blobs.put_bytes(char * 900) for char in (b"1", b"2", b"3")]
    await use(cache, held)
    other = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOLD, str(folder), held, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout
    assert await other.stdout.readline() == f"{folder / held}\n".encode()
    await use(cache, new)
    assert names(folder) == {held, new}
    if end == "kill":
        other.kill()
    await other.communicate(b"\n")
    await clock.advance(timedelta(minutes=1))
    await use(cache, newer)

    assert names(folder) == {newer}


async def test_a_larger_one_than_all_the_room_is_still_given(cache: ArtifactCache, blobs: Blobs) -> None:
    digest = await blobs.put_bytes(bytes(5000))

    assert await use(cache, digest) == bytes(5000)


def spoil(path: Path, content: bytes) -> None:
    path.chmod(0o755)
    path.write_bytes(content)


@pytest.mark.parametrize("content", [b"", b"shorter", b"evil thing"])
async def test_a_file_that_was_changed_is_fetched_anew(
    cache: ArtifactCache, blobs: Blobs, folder: Path, content: bytes
) -> None:
    digest = await blobs.put_bytes(b"good thing")
    await use(cache, digest)

    spoil(folder / digest, content)

    assert await use(cache, digest) == b"good thing"


async def test_a_file_that_was_spoilt_before_this_process_began_is_fetched_anew(
    cache: ArtifactCache, blobs: Blobs, folder: Path
) -> None:
    digest = await blobs.put_bytes(b"good thing")
    await use(cache, digest)
    before = (folder / digest).stat()
    spoil(folder / digest, b"evil thing")
    os.utime(folder / digest, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert await use(ArtifactCache(folder, blobs, 1000), digest) == b"good thing"


async def test_what_is_damaged_where_it_comes_from_is_not_kept(
    cache: ArtifactCache, blobs: Blobs, backend: Gated, folder: Path
) -> None:
    digest = await blobs.put_bytes(b"good")
    await backend.put(artifact_key(digest), iter([b"evil"]), 4)

    with pytest.raises(Damaged):
        await use(cache, digest)

    assert names(folder) == set()


async def test_two_caches_may_fetch_and_make_room_in_one_folder_at_once(blobs: Blobs, folder: Path) -> None:
    caches = [ArtifactCache(folder, blobs, 100) for _ in range(2)]
    contents = [bytes([number]) * 60 for number in range(5)]
    digests = [await blobs.put_bytes(content) for content in contents]

    async def ask(cache: ArtifactCache, start: int) -> None:
        for turn in range(40):
            index = (start + turn) % 5
            assert await use(cache, digests[index]) == contents[index]

    await asyncio.gather(*(ask(caches[number % 2], number) for number in range(4)))


async def test_a_bad_digest_never_becomes_a_path(cache: ArtifactCache) -> None:
    with pytest.raises(Invalid, match="digest"):
        await use(cache, "../../etc/passwd")


def test_a_negative_bound_is_refused(folder: Path) -> None:
    with pytest.raises(Invalid, match="max_bytes"):
        ArtifactCache(folder, open_blobs("memory://"), -1)
