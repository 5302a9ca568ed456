"""A run at a host: its timeout, its pauses, and being asked to stop more than once."""

from typing import Any, cast

import pytest

from tests.builders import a_run
from tidewheel.clock import SystemClock
from tidewheel.worker.execution import End
from tidewheel.worker.live import LiveRun


class Told:
    """Stands for an execution and a report, and remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def stop(self, end: End, grace: float) -> None:
        self.heard.append((end, grace))

    def pause(self) -> None:
        self.heard.append("pause")

    def resume(self) -> None:
        self.heard.append("resume")

    def paused(self, *, yes: bool) -> None:
        self.heard.append(("paused", yes))


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def live(told: Told) -> LiveRun:
    return LiveRun(a_run(), "pause", cast("Any", told), SystemClock())


async def test_a_run_that_is_asked_to_stop_again_gets_no_more_time(live: LiveRun, told: Told) -> None:
    live.started(cast("Any", told), timeout=60, grace=5)
    for _ in range(3):
        live.stop(End.STOPPED, 5)
    live.stop(End.TIMEOUT, 5)

    assert told.heard == [(End.STOPPED, 5)]


async def test_but_it_can_be_hurried(live: LiveRun, told: Told) -> None:
    live.started(cast("Any", told), timeout=60, grace=5)
    live.stop(End.STOPPED, 5)
    live.stop(End.STOPPED, 0)

    assert told.heard == [(End.STOPPED, 5), (End.STOPPED, 0)]


async def test_what_was_asked_before_it_began_is_done_when_it_begins(live: LiveRun, told: Told) -> None:
    live.stop(End.STOPPED, 1)
    live.started(cast("Any", told), timeout=60, grace=5)

    assert told.heard == [(End.STOPPED, 1)]


async def test_a_pause_is_told_and_its_end(live: LiveRun, told: Told) -> None:
    live.started(cast("Any", told), timeout=60, grace=5)
    live.pause()
    paused = live.paused
    live.resume(5)
    live.ended()

    assert (paused, live.paused) == (True, False)
    assert told.heard == ["pause", ("paused", True), "resume", ("paused", False)]
