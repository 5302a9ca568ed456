"""Large files pass through with little memory."""

import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

SIZE: Final = 300 * 1024 * 1024
ALLOWED: Final = 110 * 1024 * 1024
"""Five chunks of eight megabytes on the way, twice, for buffers of the driver and of the allocator."""

THERE_AND_BACK = """
import asyncio, pathlib, resource, sys
from tidewheel.blobs import open_blobs

async def main(url, folder):
    blobs = open_blobs(url)
    await blobs.check()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    digest = await blobs.put_file(folder / "large")
    await blobs.fetch(digest, folder / "back")
    print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)

asyncio.run(main(sys.argv[1], pathlib.Path(sys.argv[2])))
"""


@pytest.mark.slow
@pytest.mark.parametrize("url", ["file", pytest.param("s3", marks=pytest.mark.proof)], indirect=True)
def test_a_large_file_takes_little_memory_on_its_way(url: str, folder: Path) -> None:
    with (folder / "large").open("wb") as file:
        file.truncate(SIZE)

    growth = subprocess.check_output([sys.executable, "-c", THERE_AND_BACK, url, str(folder)], text=True)

    assert (folder / "back").stat().st_size == SIZE
    assert int(growth) < ALLOWED
