"""Schedules: how late the jobs of very many of them start."""

import asyncio
import time
import uuid
from datetime import timedelta
from typing import NamedTuple, Protocol

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
        """Seconds between two occurrences of a schedule, over which they are spread or not."""

    @property
    def schedules_seconds(self) -> float:
        """For how long is measured."""


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Tell how late the jobs of schedules that are spread over their time are claimed, and what making them takes."""
    served = await _serve(ground, sizes, "schedules", spread=True)
    return {
        "schedules_made_per_s": served.made_per_s,
        "schedules_fired": len(served.lags),
        **_lags("schedules_10k_lag_ms", served.lags),
        "schedules_cpu_share": served.cpu_share,
    }


async def measure_same_second(ground: Ground, sizes: Sizes) -> Figures:
    """Tell the same of schedules that all fire at the same moment, as people write them."""
    served = await _serve(ground, sizes, "same second", spread=False)
    return {
        "schedules_same_second_fired": len(served.lags),
        **_lags("schedules_10k_same_second_lag_ms", served.lags),
    }


class Served(NamedTuple):
    """What came of it."""

    made_per_s: float
    lags: list[float]
    cpu_share: float


async def _serve(ground: Ground, sizes: Sizes, label: str, *, spread: bool) -> Served:
    """Let a keeper and a worker that share this process serve schedules."""
    async with ground.place() as place:
        say(f"{label}: making {sizes.schedules:,}")
        making = time.perf_counter()
        await _make(place, sizes, spread=spread)
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
    served = Served(round(made_per_s, 1), lags, round(share, 3))
    say(f"{label}: {len(lags):,} fired, {_lags('late by ms', lags)}, CPU {served.cpu_share}")
    return served


def _lags(name: str, lags: list[float]) -> Figures:
    return {
        f"{name}_p50": round(quantile(lags, 0.5), 2),
        f"{name}_p99": round(quantile(lags, 0.99), 2),
        f"{name}_max": round(max(lags), 2),
    }


async def _make(place: Place, sizes: Sizes, *, spread: bool) -> None:
    every = timedelta(seconds=sizes.schedules_every)
    trigger = msgspec.Raw(to_json(Trigger(rule=Interval(every), spread=every if spread else timedelta(0))))
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
