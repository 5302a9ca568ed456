"""A worker that was killed leaves nothing for good but the artifacts, which the next one need not fetch again."""

import shutil
import signal
from pathlib import Path

import pytest

from tests.worker.executors.tools import names_in
from tests.worker.running import Scene, until
from tidewheel.blobs import open_blobs
from tidewheel.model.states import State

pytestmark = pytest.mark.slow


def test_the_next_worker_removes_what_a_killed_one_left_and_uses_its_artifacts(
    empty_scene: Scene, tmp_path: Path
) -> None:
    scene, program = empty_scene, tmp_path / "program"
    program.write_text("#!/bin/sh\necho made of parts\n")
    digest = scene.app.run(open_blobs(scene.blobs).put_file(program))
    first = scene.start("--slots", "1", "--inline", "0", "--lease", "2s")
    assert scene.app.command(["{artifact}"], artifact=digest).wait("60s").state is State.SUCCEEDED
    scene.running(scene.app.command(["sh", "-c", "echo left > left; echo up; sleep 60"]), "up")

    first.tell(signal.SIGKILL)
    first.all_dead()
    left = set(names_in(first.temporary))
    assert len(left) == 2, left
    shutil.rmtree(scene.folder / "blobs")
    scene.start("--slots", "2", "--inline", "0", "--lease", "2s")

    until(lambda: len(left & set(names_in(first.temporary))) == 1, "the next worker to sweep")
    again = scene.app.command(["{artifact}"], artifact=digest).wait("60s")
    assert again.result == {"exit_code": 0, "output": "made of parts\n"}
