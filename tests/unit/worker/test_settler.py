"""Outcomes that wait for the words of their runs."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast
from uuid import UUID

from tidewheel.model.outcome import Outcome, Verdict
from tidewheel.model.states import Cause
from tidewheel.testing import FakeClock
from tidewheel.worker.settler import Settler


class Settled:
    """Takes outcomes."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []

    async def settle(self, _worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        self.outcomes += outcomes
        return [Verdict.STALE] * len(outcomes)


async def test_an_outcome_that_waits_for_words_is_held_and_keeps_a_drain_waiting() -> None:
    store, clock = Settled(), FakeClock()
    settler = Settler(cast("Any", store), UUID(int=1), clock)
    running = asyncio.create_task(settler.run())
    first, second = (Outcome(UUID(int=number), number, Cause.STOPPED) for number in (2, 3))

    settler.hold(first)
    settler.add(second)
    drained = asyncio.create_task(settler.drained())
    await clock.sleep(0)
    await clock.sleep(0)

    assert store.outcomes == [second]
    assert settler.unstored == {(UUID(int=2), 2)}
    assert not drained.done()

    settler.let_go(first)
    await drained
    assert store.outcomes == [second, first]
    assert settler.unstored == set()
    running.cancel()
