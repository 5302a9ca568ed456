"""A run at a host: its timeout, its pauses, and being asked to stop more than once."""

import asyncio
import math
from typing import Any, cast

import pytest

from tests.builders import a_run
from tidewheel.clock import SystemClock
from tidewheel.worker.execution import End
from tidewheel.worker.live import Alarm, LiveRun


class Told:
    """Stands for an execution and a report, and remembers what it was told."""

    def __init__(self) -> None:
        self.heard: list[Any] = []
        self.was_stopped = asyncio.Event()

    def stop(self, end: End, grace: float) -> None:
        self.heard.append((end, grace))
        self.was_stopped.set()

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
    return LiveRun(a_run(), "pause", cast("Any", told), Alarm([], SystemClock()))


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
    assert live.deadline == math.inf  # or the alarm would look at it again and again, and nothing would come of it


async def test_one_that_was_paused_before_it_began_stands_still_when_it_begins(live: LiveRun, told: Told) -> None:
    live.pause()
    live.started(cast("Any", told), timeout=60, grace=5)
    live.resume()

    assert told.heard == [("paused", True), "pause", "resume", ("paused", False)]
    assert live.deadline < math.inf


async def test_a_pause_is_told_and_its_end(live: LiveRun, told: Told) -> None:
    live.started(cast("Any", told), timeout=60, grace=5)
    live.pause()
    paused = live.paused
    live.resume()
    live.ended()

    assert (paused, live.paused) == (True, False)
    assert told.heard == ["pause", ("paused", True), "resume", ("paused", False)]


async def test_each_run_is_ended_when_its_own_time_is_over() -> None:
    lives: list[LiveRun] = []
    alarm = Alarm(lives, SystemClock())
    tolds = [_begin(lives, alarm, timeout) for timeout in (60, 0.02, 0.01, 0.02)]

    for told in tolds[1:]:
        await asyncio.wait_for(told.was_stopped.wait(), 5)

    assert [told.heard for told in tolds] == [[], *([[(End.TIMEOUT, 5)]] * 3)]


async def test_time_does_not_count_while_a_run_is_paused_and_goes_on_afterwards() -> None:
    lives: list[LiveRun] = []
    alarm = Alarm(lives, SystemClock())
    paused = _begin(lives, alarm, timeout=0.005)
    lives[0].pause()
    other = _begin(lives, alarm, timeout=0.01)
    await asyncio.wait_for(other.was_stopped.wait(), 5)
    meanwhile = paused.was_stopped.is_set()

    lives[0].resume()
    await asyncio.wait_for(paused.was_stopped.wait(), 5)

    assert not meanwhile


async def test_a_run_that_has_ended_or_was_told_to_stop_is_not_overdue() -> None:
    lives: list[LiveRun] = []
    alarm = Alarm(lives, SystemClock())
    ended, stopped, other = (_begin(lives, alarm, timeout=0.01) for _ in range(3))
    lives[0].ended()
    lives[1].stop(End.STOPPED, 60)

    await asyncio.wait_for(other.was_stopped.wait(), 5)

    assert (ended.heard, stopped.heard) == ([], [(End.STOPPED, 60)])


async def test_one_that_cannot_be_stopped_keeps_no_other_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lives: list[LiveRun] = []
    alarm = Alarm(lives, SystemClock())
    broken, same, later = (_begin(lives, alarm, timeout) for timeout in (0.001, 0.001, 0.01))
    monkeypatch.setattr(broken, "stop", lambda *_: 1 / 0)
    asyncio.get_running_loop().set_exception_handler(lambda *_: None)

    await asyncio.wait_for(same.was_stopped.wait(), 5)
    await asyncio.wait_for(later.was_stopped.wait(), 5)


def _begin(lives: list[LiveRun], alarm: Alarm, timeout: float) -> Told:
    told = Told()
    lives.append(LiveRun(a_run(), "pause", cast("Any", told), alarm))
    lives[-1].started(cast("Any", told), timeout=timeout, grace=5)
    return told
