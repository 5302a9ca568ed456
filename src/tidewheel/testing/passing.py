"""Lets time pass for an app under test: schedules fire on the way, and what must have started by now expires."""

from datetime import timedelta
from typing import Final

from tidewheel.errors import Invalid
from tidewheel.keeper import Occurrences
from tidewheel.model.checks import LAST_INSTANT, duration_text
from tidewheel.sdk.desk import Desk
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.testing.clock import FakeClock
from tidewheel.worker.declaring import declare

APP: Final = "test"
"""Who declares the schedules of the tasks."""
LEAST_STEP: Final = timedelta(milliseconds=200)
"""What becomes due within this is done together."""


async def pass_time(desk: Desk, clock: FakeClock, by: timedelta) -> None:
    """Advance a clock, stopping wherever a schedule wants something done."""
    if by >= LAST_INSTANT - clock.now():
        raise Invalid("by", f"must not lead beyond the year 2200, as {duration_text(by)} would")
    until = clock.now() + by
    # As the start of a worker does.
    await desk.use(lambda store: declare(store, APP, desk.registry.catalogue()))
    while True:
        step = await desk.use(lambda store: _keep(store, clock))
        left = until - clock.now()
        if left <= timedelta(0):
            return
        await clock.advance(left if step is None else min(left, max(step, LEAST_STEP)))


async def _keep(store: Store, clock: FakeClock) -> timedelta | None:
    """Do what a keeper would do now, and return in how long there is more to do, as far as that is known."""
    pauses = []
    for shard in range(SHARDS):
        duty = Occurrences(store, clock, shard)
        await duty.run_once()
        pauses.append(duty.pause())
    await store.expire()
    return min((pause for pause in pauses if pause is not None), default=None)
