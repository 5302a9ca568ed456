"""The steps of the duty by hand, on any store."""

from datetime import datetime, timedelta

from tidewheel.model.schedule import Fate
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.triggers.planning import Plan, plan


async def plans_of(store: Store, within: timedelta) -> list[Plan]:
    """Plan all schedules that fire within that time."""
    plans = []
    for shard in range(SHARDS):
        ahead = await store.look_ahead(shard, within)
        plans += [plan(schedule, ahead.now, ahead.now + within) for schedule in ahead.schedules]
    return plans


async def record_ahead(store: Store, within: timedelta) -> int:
    """Record what fires within that time; return how many occurrences were recorded."""
    return await store.record_occurrences(await plans_of(store, within))


async def decide_all(store: Store) -> int:
    """Decide about all occurrences that are due; return how many were."""
    return sum([await store.decide_overlaps(shard) for shard in range(SHARDS)])


async def fates(store: Store, name: str = "tidy") -> list[tuple[datetime, Fate]]:
    """Return what became of the occurrences of a schedule, oldest first."""
    schedule = await store.find_schedule(name, tenant="default")
    found = await store.occurrences(schedule.id, limit=1000)
    return [(occurrence.fire_at, occurrence.outcome) for occurrence in reversed(found)]
