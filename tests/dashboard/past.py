"""A past: jobs that ended long ago, as a store noted them whose clock stood there."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from tests.builders import a_claim, a_job, a_worker, outcome_of
from tidewheel.model.states import Cause
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.testing.clock import FakeClock


class Ends(NamedTuple):
    """Jobs of a kind that end at about the same time."""

    at: datetime
    kind: str
    succeeded: int
    failed: int = 0
    queue: str = "past"
    tenant: str = "default"
    wait: timedelta = timedelta(seconds=1)
    run: timedelta = timedelta(seconds=3)


async def live_through(file: Path, ends: Iterable[Ends]) -> None:
    """Let jobs end in the file of a store, in the order of time."""
    ordered = sorted(ends, key=lambda each: each.at)
    clock = FakeClock(ordered[0].at)
    store = await open_store(file, clock)
    try:
        for each in ordered:
            await clock.advance(max(each.at - clock.now(), timedelta()))
            await _end(store, clock, each)
        while await store.fold_statistics():
            pass
    finally:
        await store.close()


async def _end(store: Store, clock: FakeClock, ends: Ends) -> None:
    number = ends.succeeded + ends.failed
    worker = await store.register(a_worker("then/runner-0", queues=(ends.queue,), ttl=timedelta(hours=1)))
    await store.submit([a_job(ends.kind, queue=ends.queue, tenant=ends.tenant) for _ in range(number)])
    await clock.advance(ends.wait)
    runs = (await store.claim(a_claim(worker.id, number, queues=(ends.queue,)))).runs
    assert len(runs) == number
    await clock.advance(ends.run)
    causes = [Cause.RETURNED] * ends.succeeded + [Cause.GAVE_UP] * ends.failed
    await store.settle(worker.id, [outcome_of(run, cause) for run, cause in zip(runs, causes, strict=True)])
    await store.deregister(worker.id)
