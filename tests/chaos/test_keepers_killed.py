"""Whoever makes the jobs of schedules is killed at random, under load: nothing is missed, nothing is doubled."""

import random
import secrets
from collections import Counter
from datetime import timedelta

import msgspec
import pytest

from harness.arena import Arena, StoreName
from harness.kinds import spec_of
from harness.reading import active
from tests.chaos.verdict import BOTH
from tidewheel.clock import SystemClock
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, Occurrence, Schedule, ScheduleSpec
from tidewheel.model.states import State
from tidewheel.triggers import Interval, Trigger, to_json

pytestmark = [pytest.mark.chaos, pytest.mark.proof]

SECOND = timedelta(seconds=1)
SECONDS = 12.0
EVERY_SECOND = msgspec.Raw(to_json(Trigger(rule=Interval(SECOND))))


async def make_schedule(arena: Arena, number: int) -> Schedule:
    """Make one that fires every second; every third one is limited to a run at a time."""
    job = spec_of("quick", arena.memory, f"schedule-{number}", {})
    spec = ScheduleSpec(
        name=f"every-second-{number}",
        kind=job.kind,
        args=job.args,
        trigger=EVERY_SECOND,
        overlap=Overlap.SKIP if number % 3 == 0 else Overlap.ALLOW,
    )
    return await arena.store.create_schedule(spec)


async def kill_keepers(arena: Arena, chance: random.Random) -> tuple[int, list[Schedule]]:
    """Kill a keeper, or all of them, again and again, while other jobs and new schedules come in."""
    clock, killed, made = SystemClock(), 0, list[Schedule]()
    until = clock.monotonic() + SECONDS
    while clock.monotonic() < until:
        keepers = [keeper for worker in arena.cluster.running for keeper in worker.parts("keeper")]
        victims = chance.choice([keepers, keepers[:1], keepers[1:]])
        arena.cluster.kill(victims, "keeper")
        killed += len(victims)
        made.append(await make_schedule(arena, len(made)))
        for _ in range(20):
            await arena.submit("quick", key=secrets.token_hex(8))
        await clock.sleep(chance.uniform(0.2, 1.0))
    return killed, made


@BOTH
async def test_keepers_die_at_random_and_every_second_is_accounted_for_once(store: StoreName) -> None:
    async with Arena(store) as arena:
        await arena.part("keeper")

        killed, made = await kill_keepers(arena, random.Random(11))
        assert killed >= 5
        await arena.until(lambda: _written(arena, made), "all occurrences to be written")
        ended = SystemClock().now()
        for schedule in made:
            await arena.store.pause_schedule(schedule.id)
        await arena.until(lambda: _idle(arena), "all jobs to end")

        executions = Counter(record.job for record in arena.evidence() if record.event == "start")
        for schedule in made:
            recorded = (await arena.store.occurrences(schedule.id, limit=1000))[::-1]
            times = [occurrence.fire_at for occurrence in recorded]
            assert times == [schedule.next_fire_at + n * SECOND for n in range(len(times)) if schedule.next_fire_at]
            assert times[-1] >= ended - SECOND
            for occurrence in recorded:
                await _check_one(arena, occurrence, executions, free=schedule.overlap is Overlap.ALLOW)


async def _written(arena: Arena, made: list[Schedule]) -> bool:
    now = [await arena.store.get_schedule(schedule.id) for schedule in made]
    return all(each.next_fire_at and each.next_fire_at > SystemClock().now() for each in now)


async def _idle(arena: Arena) -> bool:
    return await active(arena.store) == 0


async def _check_one(arena: Arena, occurrence: Occurrence, executions: Counter[str], *, free: bool) -> None:
    assert occurrence.job_id is not None
    job = await arena.store.get(occurrence.job_id)
    assert job.due_at == occurrence.fire_at
    if not free and occurrence.outcome is Fate.SKIPPED:
        assert (job.state, executions[str(job.id)]) == (State.SKIPPED, 0)
        assert occurrence.reason
        return
    assert (occurrence.outcome, job.state, job.token) == (Fate.MADE, State.SUCCEEDED, 1)
    assert executions[str(job.id)] == 1
