"""What a run says while it runs: lines, progress, checkpoints."""

from typing import Any

import pytest

from tests.worker.running import Scene, texts, until
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "4")
both_modes = pytest.mark.parametrize("mode", ["async", "plain"])


def lines_of(job: Job[Any]) -> set[tuple[str, str | None, str]]:
    return {(line.stream, line.level, line.text) for line in job.logs()}


@both_modes
@pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True)
def test_what_is_printed_and_logged_is_seen_while_the_task_still_runs(scene: Scene, mode: str) -> None:
    flag = scene.flag()
    job = scene.running(scene.enqueue(f"speak.{mode}", str(flag)), "by the context")

    assert lines_of(job) == {
        ("stdout", None, "printed"),
        ("stderr", None, "complained"),
        ("stdout", None, "red bell\\x07"),
        ("log", "warning", "logged 7"),
        ("log", "info", "by the context"),
    }
    assert job.info().state is State.RUNNING
    flag.touch()
    assert job.wait("60s").state is State.SUCCEEDED
    assert [line.number for line in job.logs()] == [1, 2, 3, 4, 5]


def test_what_a_command_prints_is_seen_while_it_runs(scene: Scene) -> None:
    flag = scene.flag()
    script = f"echo one; echo two >&2; printf '\\033[1mbold\\033[0m'; while [ ! -e {flag} ]; do sleep 0.05; done; echo"
    job = scene.running(scene.app.command(["sh", "-c", script]), "two")

    until(lambda: {("stdout", None, "one"), ("stderr", None, "two")} <= lines_of(job), "both lines")
    flag.touch()
    assert job.wait("60s").state is State.SUCCEEDED
    assert texts(job, "stdout") == ["one", "bold"]


@pytest.mark.parametrize("kind", ["flood.async", "flood.plain", "command"])
@pytest.mark.parametrize(
    ("lines", "width", "mark"),
    [(40_000, 10, "[output cut: more than 10000 lines]"), (4_000, 1000, "[output cut: more than 1 MiB]")],
)
def test_a_flood_is_cut_with_a_mark_and_its_end_is_kept(
    scene: Scene, kind: str, lines: int, width: int, mark: str
) -> None:
    script = f'BEGIN {{ for (i = 0; i < {lines}; i++) printf "%08d%{width}s\\n", i, "." }}'
    job = scene.app.command(["awk", script]) if kind == "command" else scene.enqueue(kind, lines, width)

    assert job.wait("60s").state is State.SUCCEEDED
    kept = job.logs(limit=10_000)
    rest = scene.store(lambda store: store.logs(job.id, after=(1, 10_000), limit=1000))
    marks = [line.text for line in (*kept, *rest) if line.stream == "system"]
    assert marks[0] == mark
    assert "left out" in marks[1]
    assert (*kept, *rest)[-1].text.startswith(f"{lines - 1:08}")
    assert len(kept) + len(rest) <= 10_100


@both_modes
@pytest.mark.parametrize("end", ["retry", "crash"])
def test_a_checkpoint_survives_a_retry_and_the_death_of_the_process(scene: Scene, mode: str, end: str) -> None:
    flag = scene.flag()
    job = scene.enqueue(f"know.{mode}", end, str(flag))
    until(lambda: scene.store(lambda store: store.checkpoint_of(job.id)), "the checkpoint to be stored")
    flag.touch()

    epoch = scene.store(_epoch)
    assert job.result("60s") == {"attempt": [epoch, 2], "token": 2, "number": 2, "saved": {"page": 3}}
    info = job.info()
    assert (info.failures, info.losses) == ((1, 0) if end == "retry" else (0, 1))


async def _epoch(store: Any) -> int:
    return int(store.epoch)


@both_modes
def test_progress_is_seen_while_the_task_runs(scene: Scene, mode: str) -> None:
    flag = scene.flag()
    job = scene.enqueue(f"progress.{mode}", str(flag))

    until(lambda: job.info().progress == 0.25, "progress")
    assert job.info().progress_message == "a quarter"
    flag.touch()
    assert job.wait("60s").progress == 0.25
