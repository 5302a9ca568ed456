"""Whoever does the duties is killed, under load: all of them go on, nothing is missed, and nothing is doubled."""

import asyncio
import random
import secrets
import statistics
from collections import Counter
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import Mock

import pytest

from harness.arena import Arena, StoreName, tide_worker
from harness.kinds import spec_of
from harness.reading import active
from tests.builders import SECOND
from tests.chaos.duties import EVERY_SECOND, Done, Work
from tests.chaos.verdict import BOTH
from tests.notify.receiving import receiving
from tidewheel.clock import SystemClock
from tidewheel.keeper import chores_of
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, Occurrence, Schedule, ScheduleSpec
from tidewheel.model.states import State

pytestmark = [pytest.mark.chaos, pytest.mark.proof]

SECONDS = 12.0
DUTIES = frozenset(chore.name for chore in chores_of(Mock(), SystemClock(), blobs=Mock()))
TAKEN_WITHIN = 5.0
LATEST = 2 * TAKEN_WITHIN
"""On a machine that has other things to do; most are in time even there."""


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


def kill_all_keepers(arena: Arena) -> int:
    return arena.cluster.kill((one for worker in arena.cluster.running for one in worker.parts("keeper")), "keeper")


class Killed(NamedTuple):
    """All keepers died at some time; what they had, and what tells whether work that they left was done."""

    at: float
    held: dict[str, tuple[Any, int]]
    work: dict[str, Done]


async def kill_the_holder_of_each_duty(arena: Arena, work: Work) -> Killed:
    """Kill all keepers while there is work that none of them has done for each duty that is done seldom."""
    held: dict[str, tuple[Any, int]] = {}
    while True:
        await arena.until(partial(_shared, arena, work, held), "the duties to be shared")
        held = await work.held()
        laid = {name: await lay() for name, lay in work.seldom.items()}
        assert kill_all_keepers(arena) == arena.size
        died = SystemClock().monotonic()
        if not any([await done() for done in laid.values()]):
            return Killed(died, held, laid)


async def see_taken_over(arena: Arena, work: Work, killed: Killed) -> dict[str, float]:
    """Return how many seconds after the death each duty was someone else's."""
    taken: dict[str, float] = {}

    async def all_taken() -> bool:
        for name, (_, epoch) in (await work.held()).items():
            if epoch > killed.held[name][1]:
                taken.setdefault(name, SystemClock().monotonic() - killed.at)
        return set(taken) >= DUTIES

    await arena.until(all_taken, "every duty to be taken over")
    return taken


async def see_all_go_on(arena: Arena, work: Work) -> None:
    """Let all holders die, and see who comes after them take over in time and do what there is to be done."""
    assert {*work.seldom, *work.often, "days"} == {name.partition("/")[0] for name in DUTIES}
    killed = await kill_the_holder_of_each_duty(arena, work)
    taking = asyncio.create_task(see_taken_over(arena, work, killed))
    waiting = killed.work | {name: await lay() for name, lay in work.often.items()}
    taken = await taking
    assert statistics.median(taken.values()) < TAKEN_WITHIN, taken
    assert max(taken.values()) < LATEST, taken

    async def all_done() -> bool:
        for name, done in list(waiting.items()):
            if await done():
                del waiting[name]
        return not waiting

    try:
        await arena.until(all_done, "the work of every duty")
    except TimeoutError as error:
        raise AssertionError(f"nobody did the work of {sorted(waiting)}") from error


@BOTH
async def test_all_duties_of_keepers_that_die_go_on_and_every_second_is_accounted_for_once(
    store: StoreName,
) -> None:
    own = ("--notify-private", "127.0.0.0/8")
    async with receiving() as receiver, Arena(store, command=lambda url: [*tide_worker(url), *own]) as arena:
        work = Work(arena, receiver)
        await see_all_go_on(arena, work)

        killed, made = await kill_keepers(arena, random.Random(11))
        assert killed >= 5
        await work.clear()
        made += work.schedules
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


async def _shared(arena: Arena, work: Work, before: dict[str, tuple[Any, int]]) -> bool:
    """Tell whether each duty has a holder that is there and did not have it before, and every keeper has some."""
    held = await work.held()
    holders = {holder for holder, _ in held.values()}
    return set(held) >= DUTIES and len(holders) == arena.size and not any(held[name] == before[name] for name in before)


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
