"""Artifacts, in every kind of place."""

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.blobs.conftest import names_in
from tidewheel.blobs import Blobs, Digest
from tidewheel.blobs.backend import CHUNK, Backend
from tidewheel.blobs.names import artifact_key
from tidewheel.errors import Damaged, Invalid, NotFound

LARGE = 2 * CHUNK + 12_345


class Watched:
    """A backend that counts the puts, and calls a function before it tells a size."""

    def __init__(self, backend: Backend, before_size: Callable[[], object] = lambda: None) -> None:
        self._backend = backend
        self._before_size = before_size
        self.puts = 0
        self.get, self.pieces, self.find = backend.get, backend.pieces, backend.find
        self.steps, self.delete = backend.steps, backend.delete

    async def put(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        self.puts += 1
        await self._backend.put(key, chunks, size)

    async def size(self, key: str) -> int | None:
        self._before_size()
        return await self._backend.size(key)


def digest_of(data: bytes) -> Digest:
    return Digest(hashlib.sha256(data).hexdigest())


@pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, LARGE])
async def test_a_file_comes_back_as_it_went(blobs: Blobs, folder: Path, size: int) -> None:
    data = os.urandom(size)
    (folder / "in").write_bytes(data)

    digest = await blobs.put_file(folder / "in")
    await blobs.fetch(digest, folder / "out")

    assert digest == digest_of(data)
    assert (folder / "out").read_bytes() == data
    assert names_in(folder) == ["in", "out"]


@pytest.mark.parametrize("data", [b"", b"some bytes", bytes(LARGE)])
async def test_bytes_come_back_as_they_went(blobs: Blobs, folder: Path, data: bytes) -> None:
    digest = await blobs.put_bytes(data)
    await blobs.fetch(digest, folder / "out")

    assert digest == digest_of(data)
    assert (folder / "out").read_bytes() == data
    assert await blobs.has(digest)


async def test_the_same_content_is_sent_once(blobs: Blobs, folder: Path) -> None:
    watched = Watched(blobs._backend)
    blobs = Blobs(watched)
    (folder / "in").write_bytes(b"same")

    digests = [await blobs.put_file(folder / "in"), await blobs.put_bytes(b"same"), await blobs.put_file(folder / "in")]

    assert set(digests) == {digest_of(b"same")}
    assert watched.puts == 1


async def test_what_is_not_there_is_not_found_and_leaves_nothing(blobs: Blobs, folder: Path) -> None:
    digest = digest_of(b"nowhere")

    with pytest.raises(NotFound, match=f"no artifact {digest}"):
        await blobs.fetch(digest, folder / "out")

    assert not await blobs.has(digest)
    assert names_in(folder) == []


@pytest.mark.parametrize("spoilt", [b"", b"rotten", b"good thingX"])
async def test_damaged_content_is_refused_and_leaves_what_was_there(blobs: Blobs, folder: Path, spoilt: bytes) -> None:
    digest = await blobs.put_bytes(b"good things")
    await blobs._backend.put(artifact_key(digest), iter([spoilt]), len(spoilt))
    (folder / "out").write_bytes(b"earlier")

    with pytest.raises(Damaged, match=f"artifact {digest} is damaged"):
        await blobs.fetch(digest, folder / "out")

    assert names_in(folder) == ["out"]
    assert (folder / "out").read_bytes() == b"earlier"


async def test_a_damaged_artifact_is_mended_by_removing_it_and_putting_it_anew(blobs: Blobs, folder: Path) -> None:
    digest = await blobs.put_bytes(b"good")
    await blobs._backend.put(artifact_key(digest), iter([b"evil"]), 4)

    await blobs.delete(f"blob:{artifact_key(digest)}")
    await blobs.put_bytes(b"good")
    await blobs.fetch(digest, folder / "out")

    assert (folder / "out").read_bytes() == b"good"


@pytest.mark.parametrize("size", [100, LARGE])
async def test_a_file_that_changes_while_it_is_sent_is_not_kept(blobs: Blobs, folder: Path, size: int) -> None:
    path = folder / "in"
    path.write_bytes(bytes(size))

    def change() -> None:
        with path.open("r+b") as file:
            file.seek(size - 1)
            file.write(b"!")

    with pytest.raises(Invalid, match="was changed while it was read"):
        await Blobs(Watched(blobs._backend, change)).put_file(path)

    assert not await blobs.has(digest_of(bytes(size)))
    assert not await blobs.has(digest_of(path.read_bytes()))
    assert await blobs._backend.find("sha256") == []


@pytest.mark.parametrize(
    "digest",
    ["", "abc", "A" * 64, "g" * 64, "a" * 63, "a" * 65, "a" * 64 + "\n", "../" + "a" * 61, "/" + "a" * 63, None, 7],
)
async def test_what_is_no_digest_is_invalid(blobs: Blobs, folder: Path, digest: str) -> None:
    with pytest.raises(Invalid, match="64 lower-case hexadecimal digits"):
        await blobs.fetch(digest, folder / "out")
    with pytest.raises(Invalid, match="64 lower-case hexadecimal digits"):
        await blobs.has(digest)


async def test_only_plain_files_are_put(blobs: Blobs, folder: Path) -> None:
    (folder / "plain").write_bytes(b"secret")
    (folder / "link").symlink_to(folder / "plain")
    os.mkfifo(folder / "pipe")

    with pytest.raises(Invalid, match="is a symbolic link"):
        await blobs.put_file(folder / "link")
    with pytest.raises(Invalid, match="is not a plain file"):
        await blobs.put_file(folder / "pipe")
    with pytest.raises(Invalid, match="is not a plain file"):
        await blobs.put_file(folder)
    with pytest.raises(Invalid, match="No such file"):
        await blobs.put_file(folder / "absent")


async def test_an_error_of_the_source_is_raised_and_nothing_is_kept(blobs: Blobs) -> None:
    def chunks() -> Iterator[bytes]:
        for _ in range(8):
            yield bytes(CHUNK)
        raise Invalid("path", "breaks off")

    with pytest.raises(Invalid, match="breaks off"):
        await blobs._backend.put("outputs/x", chunks(), 9 * CHUNK)

    assert await blobs._backend.size("outputs/x") is None
