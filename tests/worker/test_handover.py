"""What goes out of a run: its own files, and nothing that lies behind a link."""

from pathlib import Path
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from tidewheel.blobs import open_blobs
from tidewheel.errors import Invalid
from tidewheel.testing import FakeClock
from tidewheel.worker.executors.scratch import output_files
from tidewheel.worker.handover import Handover
from tidewheel.worker.secrets import Secrets


@pytest.mark.parametrize("swapped", ["left", "left/output", "left/output/deep", "left/output/deep/file"])
async def test_a_file_is_not_stored_from_behind_a_link_that_came_after_the_look(tmp_path: Path, swapped: str) -> None:
    for place in ("left", "elsewhere"):
        (tmp_path / place / "output" / "deep").mkdir(parents=True)
        (tmp_path / place / "output" / "deep" / "file").write_text(place)
    blobs, run = open_blobs("memory://"), cast("Any", _Run())
    handover = Handover(cast("Any", None), UUID(int=1), blobs, Secrets({}), FakeClock())
    files = output_files(str(tmp_path / "left"))
    assert list(files) == ["deep/file"]

    (tmp_path / swapped).rename(tmp_path / "away")
    (tmp_path / swapped).symlink_to(tmp_path / swapped.replace("left", "elsewhere"))

    with pytest.raises(Invalid, match="symbolic link"):
        await handover.keep_files(run, files)
    assert await blobs.list_outputs(run.job_id) == []


async def test_files_are_stored_by_their_names(tmp_path: Path) -> None:
    (tmp_path / "left" / "output" / "deep").mkdir(parents=True)
    for name in ("one", "deep/two"):
        (tmp_path / "left" / "output" / name).write_text(name)
    blobs, run = open_blobs("memory://"), cast("Any", _Run())
    handover = Handover(cast("Any", None), UUID(int=1), blobs, Secrets({}), FakeClock())

    await handover.keep_files(run, output_files(str(tmp_path / "left")))

    kept = {output.name: await blobs.read(output.location, 100) for output in await blobs.list_outputs(run.job_id)}
    assert kept == {"one": b"one", "deep/two": b"deep/two"}


class _Run:
    def __init__(self) -> None:
        self.job_id, self.token = uuid4(), 1
