"""`tide worker` and the SDK on a server instead of a database: the same promises over HTTP, with a key."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.api.test_processes import tide
from tests.worker.running import Scene, texts, until
from tests.worker.running_app import Visit
from tidewheel import App, JobCancelled, JobFailed
from tidewheel.client import Client
from tidewheel.errors import Invalid, Unauthenticated
from tidewheel.model.outcome import MAX_RESULT_BYTES
from tidewheel.model.states import State

pytestmark = [pytest.mark.slow, pytest.mark.chaos]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A server that asks for keys, and a worker that speaks to it."""
    folder = tmp_path_factory.mktemp("remote")
    database = f"sqlite:///{folder}/tide.db"
    made = subprocess.run(
        [
            sys.executable,
            "-m",
            "tidewheel.cli.main",
            "key",
            "create",
            "tests",
            "--role",
            "admin",
            "--database",
            database,
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    key = next(word for word in made.stdout.split() if word.startswith("tide_"))
    words = ("server", "--port", "0", "--database", database)
    with pytest.MonkeyPatch.context() as patch, tide(folder, "server", *words) as (_, client):
        patch.setenv("TIDE_KEY", key)
        opened = Scene(folder, str(client.base_url).rstrip("/"))
        try:
            opened.start("--slots", "2", "--lease", "6s", "--grace", "1s")
            yield opened
        finally:
            opened.close()


def test_functions_of_both_kinds_run_and_give_back_what_they_return(scene: Scene) -> None:
    visit, hour = Visit("ada", datetime(2030, 1, 1, tzinfo=UTC)), timedelta(hours=1)
    for kind in ("later.async", "later.plain"):
        assert scene.enqueue(kind, visit, hour).result("60s") == Visit("ADA", visit.at + hour)
    jobs = [scene.enqueue("add", number, 1) for number in range(50)]
    assert [job.result("60s") for job in jobs] == list(range(1, 51))


def test_large_results_files_and_artifacts_go_by_way_of_the_server(scene: Scene, tmp_path: Path) -> None:
    for kind in ("text.async", "text.plain"):
        job = scene.enqueue(kind, MAX_RESULT_BYTES)
        assert (len(job.result("60s").encode()), job.info().result) == (MAX_RESULT_BYTES, None)
    (tmp_path / "tool").write_text('#!/bin/sh\nprintf abc > "$TIDE_OUTPUT_DIR/a.txt"\n')
    with Client(scene.database) as client:
        made = scene.app.command(["{artifact}"], artifact=client.put_artifact(tmp_path / "tool").digest)
        assert made.result("60s") == {"exit_code": 0, "output": ""}
        [output] = client.outputs(made.id)
        client.fetch_output(output, tmp_path / "a.txt")
    assert (output.name, (tmp_path / "a.txt").read_bytes()) == ("a.txt", b"abc")
    assert not (scene.folder / "blobs").exists()


def test_commands_run_and_their_lines_are_kept(scene: Scene) -> None:
    job = scene.app.command(["sh", "-c", "echo one; echo two >&2; exit 3"], retry=False)
    with pytest.raises(JobFailed):
        job.result("60s")
    assert (texts(job, "stdout"), texts(job, "stderr")) == (["one"], ["two"])


def test_a_running_job_is_cancelled(scene: Scene) -> None:
    for kind in ("wait.async", "wait.plain"):
        job = scene.running(scene.enqueue(kind, str(scene.flag())))
        job.cancel("enough")
        with pytest.raises(JobCancelled):
            job.result("60s")


def test_the_limits_that_its_tasks_declare_are_told_to_the_server(scene: Scene) -> None:
    assert "limits of tasks that are new or changed" in scene.workers[0].said


@pytest.mark.proof
def test_a_worker_that_was_killed_loses_its_job_to_another(scene: Scene) -> None:
    flag = scene.flag()
    first = scene.workers[0]
    job = scene.running(scene.enqueue("wait.plain", str(flag)))
    first.tell(signal.SIGKILL)
    first.all_dead()
    scene.start("--slots", "2", "--lease", "6s")
    until(lambda: job.info().token == 2, "the second run", 60)
    flag.touch()
    info = job.wait("60s")
    assert (info.state, info.losses) == (State.SUCCEEDED, 1)


def test_what_a_server_does_not_offer_is_said_in_one_sentence(scene: Scene) -> None:
    with pytest.raises(Invalid, match="set_weight is not offered over HTTP"):
        scene.app.tenants.set_weight("acme", 2.0)
    with pytest.raises(Unauthenticated), App(scene.database, key="tide_nonsense") as stranger:
        stranger.command(["true"])


def test_an_address_that_is_none_is_refused_at_once() -> None:
    for address in ("http://", "https://user:word@host", "http://host?x=1"):
        with pytest.raises(Invalid, match="database"), App(address) as app:
            app.command(["true"])
