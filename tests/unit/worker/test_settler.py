"""Outcomes that wait for the words of their runs, and such as the store refuses."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, cast
from uuid import UUID

import pytest

from tidewheel.errors import Forbidden, Invalid, Unavailable
from tidewheel.model.outcome import Outcome, Verdict
from tidewheel.model.states import Cause
from tidewheel.testing import FakeClock
from tidewheel.worker.settler import Settler


class Settled:
    """Takes outcomes."""

    def __init__(self, *failures: Exception) -> None:
        self.outcomes: list[Outcome] = []
        self._failures = list(failures)
        """What to raise before anything is taken, one after the other."""

    async def settle(self, _worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        if self._failures:
            raise self._failures.pop(0)
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


@pytest.mark.parametrize("error", [RuntimeError("a bug"), MemoryError(), Forbidden("settle", "viewer"), Unavailable()])
async def test_trouble_of_the_store_costs_time_and_no_result(error: Exception) -> None:
    store, clock = Settled(*[error] * 4), FakeClock()
    settler = Settler(cast("Any", store), UUID(int=1), clock)
    running = asyncio.create_task(settler.run())
    done = [Outcome(UUID(int=number), number, Cause.RETURNED, result="7") for number in (2, 3)]

    for outcome in done:
        settler.add(outcome)
    await clock.sleep(0)
    assert settler.unstored == {(outcome.job_id, outcome.token) for outcome in done}
    drained = asyncio.create_task(settler.drained())
    await clock.advance(timedelta(seconds=10))

    await drained
    assert sorted(store.outcomes, key=lambda outcome: outcome.token) == done
    running.cancel()


async def test_an_outcome_that_cannot_be_stored_ends_its_own_job_alone() -> None:
    store, clock = Settled(Invalid("value", "odd"), Invalid("value", "odd")), FakeClock()
    settler = Settler(cast("Any", store), UUID(int=1), clock)
    running = asyncio.create_task(settler.run())
    odd, good = (Outcome(UUID(int=number), number, Cause.RETURNED, result="7") for number in (2, 3))

    settler.add(odd)
    settler.add(good)
    await settler.drained()

    assert [(outcome.job_id, outcome.cause) for outcome in store.outcomes] == [
        (odd.job_id, Cause.GAVE_UP),
        (good.job_id, Cause.RETURNED),
    ]
    running.cancel()
