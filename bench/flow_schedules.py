"""Schedules: how late the jobs of very many of them start."""

import asyncio
import time
import uuid
from datetime import timedelta
from typing import Protocol

import msgspec

from bench.grounds.ground import Ground, Place
from bench.jobs import outcomes
from bench.measure import Figures, quantile, say
from tidewheel.clock import SystemClock
from tidewheel.keeper import Keeper, chores_of
from tidewheel.model.job import Claimed
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.store.base import ClaimRequest
from tidewheel.triggers import Interval, Trigger, to_json

LONGEST_NAP = 1.0
BATCH = 200
CLIENTS = 50


class Sizes(Protocol):
    """What of the sizes of the suite is used here."""

    @property
    def schedules(self) -> int: ...

    @property
    def schedules_every(self) -> float:
        """Seconds between two occurrences of a schedule; they are spread over that time."""

    @property
    def schedules_seconds(self) -> float:
        """For how long is measured."""


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Let a keeper and a worker that share this process serve schedules, and tell how late their jobs were claimed."""
    async with ground.place() as place:
        say(f"schedules: making {sizes.schedules:,}")
        making = time.perf_counter()
        await _make(place, sizes)
        made_per_s = sizes.schedules / (time.perf_counter() - making)
        chores = [chore for chore in chores_of(place.store, SystemClock()) if chore.name.startswith("occurrences/")]
        keeping = asyncio.ensure_future(Keeper(place.store, chores, SystemClock(), uuid.uuid4()).run())
        cpu, begun = time.process_time(), time.perf_counter()
        try:
            lags = await _work(place, sizes.schedules_seconds)
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
        share = (time.process_time() - cpu) / (time.perf_counter() - begun)
    figures = {
        "schedules_made_per_s": round(made_per_s, 1),
        "schedules_fired": len(lags),
        "schedules_10k_lag_ms_p50": round(quantile(lags, 0.5), 2),
        "schedules_10k_lag_ms_p99": round(quantile(lags, 0.99), 2),
        "schedules_10k_lag_ms_max": round(max(lags), 2),
        "schedules_cpu_share": round(share, 3),
    }
    say(f"schedules: {figures}")
    return figures


async def _make(place: Place, sizes: Sizes) -> None:
    every = timedelta(seconds=sizes.schedules_every)
    trigger = msgspec.Raw(to_json(Trigger(rule=Interval(every), spread=every)))
    for first in range(0, sizes.schedules, CLIENTS):
        numbers = range(first, min(first + CLIENTS, sizes.schedules))
        specs = [ScheduleSpec(name=f"schedule-{number}", kind="scheduled", trigger=trigger) for number in numbers]
        await asyncio.gather(*map(place.store.create_schedule, specs))


async def _work(place: Place, seconds: float) -> list[float]:
    """Claim and complete what is due; return how many milliseconds after its time each job was claimed.

    Those that were due before the keeper had a chance to write them are left out.
    """
    clock, lags = SystemClock(), list[float]()
    request = ClaimRequest(worker_id=place.worker_id, limit=BATCH)
    begun = clock.monotonic()
    written_by: float | None = None
    while clock.monotonic() < begun + seconds:
        claimed = await place.store.claim(request)
        if claimed.now is not None and written_by is None:
            written_by = claimed.now.timestamp() + min(5.0, seconds / 2)
        for run in claimed.runs:
            if written_by is not None and run.due_at.timestamp() > written_by:
                lags.append((run.claimed_at - run.due_at).total_seconds() * 1000)
        if claimed.runs:
            await place.store.settle(place.worker_id, outcomes(claimed.runs))
        else:
            await clock.sleep(_nap(claimed))
    if not lags:
        raise RuntimeError("no schedule fired")
    return lags


def _nap(claimed: Claimed) -> float:
    """Return how long there is nothing to claim."""
    if claimed.next_due is None or claimed.now is None:
        return LONGEST_NAP
    return min(LONGEST_NAP, max(0.0, (claimed.next_due - claimed.now).total_seconds()))
