"""Gates and real workers: in effect within a second, in every process."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.worker.running import CLOCK, Scene, until
from tidewheel.model.states import State
from tidewheel.sdk.job import Job

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("scene", ["sqlite", "postgres"], indirect=True),
]
SECOND = timedelta(seconds=1)


def started_at(job: Job[Any]) -> datetime:
    started = job.wait("60s").last_started_at
    assert started is not None
    return started


def test_a_gate_is_in_effect_within_a_second_and_opens_within_one(scene: Scene) -> None:
    scene.enqueue("echo", 0).result("60s")
    gate = scene.app.gates.hold(kind="echo", reason="upgrade", author="ann")
    closed = CLOCK.monotonic()
    held = []
    while CLOCK.monotonic() - closed < 1.5:  # what comes after a second must all be held
        job = scene.enqueue("echo", 1)
        if CLOCK.monotonic() - closed > 1:
            held.append(job)
        assert scene.enqueue("add", 1, 2).result("60s") == 3, "others go on"
    assert {job.state() for job in held} == {State.QUEUED}
    assert [gate.author for gate in held[0].info().gates] == ["ann"]

    opened = CLOCK.now()
    scene.app.gates.open(gate)

    starts = [started_at(job) for job in held]
    assert starts == sorted(starts)
    assert starts[0] - opened < SECOND


def test_a_gate_that_expires_is_opened_by_the_keeper_within_a_second(scene: Scene) -> None:
    gate = scene.app.gates.hold(kind="echo", lasts="2s")
    assert gate.expires_at is not None
    late = started_at(scene.enqueue("echo", 1)) - gate.expires_at
    assert timedelta(0) <= late < SECOND


def test_the_rate_of_a_slow_gate_is_kept(scene: Scene) -> None:
    scene.app.gates.slow(10, kind="echo")
    jobs = [scene.enqueue("echo", number) for number in range(21)]
    starts = sorted(started_at(job) for job in jobs)
    assert starts[-1] - starts[0] >= 1.8 * SECOND
    assert starts[-1] - starts[0] < 6 * SECOND, "workers look when they were told to, and not once a second"


@pytest.mark.parametrize("kind", ["wait.async", "wait.looks", "wait.plain"])
def test_what_runs_is_given_back_and_runs_again(scene: Scene, kind: str) -> None:
    flag = scene.flag()
    job = scene.running(scene.enqueue(kind, str(flag)))
    gate = scene.app.gates.hold(kind=kind, stop_running=True)
    until(lambda: job.state() is State.QUEUED, "it to be given back")
    info = job.info()
    assert (info.failures, info.losses, info.gates) == (0, 0, (gate,))
    assert scene.attempts(job) == []

    scene.app.gates.open(gate)

    scene.running(job)
    flag.touch()
    assert job.wait("60s").state is State.SUCCEEDED
    assert job.info().token == 2
