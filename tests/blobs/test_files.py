"""A folder as the place: what is on the disk, what the dead leave behind, and a disk that is full."""

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from tests.blobs.conftest import names_in
from tidewheel.blobs import Blobs, open_blobs
from tidewheel.errors import Unavailable

WRITE_FOREVER = """
import sys, itertools, pathlib
from tidewheel.blobs.files import FileBackend

def chunks():
    while True:
        yield b"x"
        print("writing", flush=True)
        sys.stdin.readline()

FileBackend(pathlib.Path(sys.argv[1]))._put("outputs/x", chunks())
"""

FILL_UP = """
import asyncio, pathlib, sys
from tidewheel.blobs import open_blobs
from tidewheel.errors import StoreFull

async def main():
    root = pathlib.Path(sys.argv[1]) / "blobs"
    blobs = open_blobs(root.as_uri())
    first = await blobs.put_bytes(b"1" * 300_000)
    try:
        await blobs.put_bytes(b"2" * 2_000_000)
    except StoreFull as error:
        print("full:", error)
    print(sorted(path.stat().st_size for path in root.rglob("*") if path.is_file()))
    await blobs.delete(f"blob:sha256/{first[:2]}/{first[2:]}")
    await blobs.put_bytes(b"3" * 700_000)
    try:
        await blobs.fetch(await blobs.put_bytes(b"3" * 700_000), pathlib.Path(sys.argv[1]) / "copy")
    except StoreFull:
        print("no room for a copy")
    print(sorted(path.name for path in pathlib.Path(sys.argv[1]).iterdir()))

asyncio.run(main())
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "blobs"


@pytest.fixture
def blobs(root: Path) -> Blobs:
    return open_blobs(root.as_uri())


async def test_content_is_on_the_disk_before_it_is_seen_and_its_folders_after(
    blobs: Blobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    location = f"outputs/{UUID(int=7)}/1/result.json"
    synced = []

    def fsync(handle: int, real: object = os.fsync) -> None:
        synced.append((Path(f"/proc/self/fd/{handle}").readlink(), (root / location).exists()))
        assert callable(real)
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    await blobs.store_result(UUID(int=7), 1, "{}")

    content, *folders = synced
    assert content[0].parent == root / "parts"
    assert not content[1]
    assert folders == [(folder, True) for folder in (root / location).parents[:4]]


@pytest.mark.chaos
def test_what_a_killed_process_left_is_swept_and_what_a_live_one_writes_is_not(root: Path) -> None:
    command = [sys.executable, "-c", WRITE_FOREVER, str(root)]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as victim,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as survivor,
    ):
        for process in (victim, survivor):
            assert process.stdout
            assert process.stdout.readline() == "writing\n"
        assert len(list((root / "parts").iterdir())) == 2

        open_blobs(root.as_uri())
        assert len(list((root / "parts").iterdir())) == 2

        victim.send_signal(signal.SIGKILL)
        victim.wait()
        open_blobs(root.as_uri())
        assert len(list((root / "parts").iterdir())) == 1

        survivor.kill()
    assert not (root / "outputs").exists()


async def test_folders_that_become_empty_are_removed(blobs: Blobs, root: Path) -> None:
    await blobs.delete(await blobs.store_result(uuid4(), 1, "{}"))

    assert names_in(root) == ["parts"]


async def test_puts_and_deletes_in_one_folder_do_not_disturb_one_another(blobs: Blobs) -> None:
    job_id = uuid4()

    async def come_and_go(token: int) -> None:
        for _ in range(30):
            location = await blobs.store_result(job_id, token, str(token))
            assert await blobs.read(location, max_bytes=9) == str(token).encode()
            await blobs.delete(location)

    await asyncio.gather(*(come_and_go(token) for token in range(4)))


async def test_a_folder_that_a_delete_removes_meanwhile_is_made_again(
    blobs: Blobs, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[Path] = []

    def mkdir(self: Path, mode: int = 0o777, *, parents: bool = False, exist_ok: bool = False) -> None:
        real(self, mode, parents=parents, exist_ok=exist_ok)
        if not removed and self.is_relative_to(root / "outputs"):
            self.rmdir()
            removed.append(self)

    real = Path.mkdir
    monkeypatch.setattr(Path, "mkdir", mkdir)
    location = await blobs.store_result(uuid4(), 1, "{}")

    assert removed
    assert await blobs.read(location, max_bytes=2) == b"{}"


def test_a_full_disk_is_said_plainly_and_leaves_nothing_half_written(tmp_path: Path) -> None:
    unshare = shutil.which("unshare")
    if not unshare:
        pytest.skip("needs a small file system of its own")
    mount = f'mount -t tmpfs -o size=1m none "{tmp_path}" && exec "$@"'
    alone = [unshare, "--user", "--map-root-user", "--mount", "sh", "-c", mount, "sh"]
    if subprocess.run([*alone, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this machine does not let a test mount a file system")

    said = subprocess.check_output([*alone, sys.executable, "-c", FILL_UP, str(tmp_path)], text=True).splitlines()

    assert said[0].startswith("full: ")
    assert "No space left on device" in said[0]
    assert said[1:] == ["[300000]", "no room for a copy", "['blobs']"]


async def test_a_folder_that_cannot_be_made_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(Unavailable, match="Not a directory"):
        open_blobs((tmp_path / "file" / "blobs").as_uri())
