"""Whoever does the duties is killed, under load: all of them go on, nothing is missed, and nothing is doubled."""

import random
import secrets
import statistics
from collections import Counter
from pathlib import Path
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

SECONDS = 8.0
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


async def kill_the_holder_of_each_duty(arena: Arena, work: Work) -> dict[str, Done]:
    """Kill all keepers, and return what tells whether the work of each duty, all of which is undone, was done."""
    while True:
        await arena.until(lambda: _all_held(work), "every duty to be someone's")
        laid = {name: await lay() for name, lay in work.seldom.items()}
        assert kill_all_keepers(arena) == arena.size
        if not any([await done() for done in laid.values()]):
            return laid | {name: await lay() for name, lay in work.often.items()}


async def see_all_go_on(arena: Arena, work: Work) -> None:
    """Let all holders die, and see who comes after them take over in time and do what there is to be done."""
    assert {*work.seldom, *work.often, "days"} == {name.partition("/")[0] for name in DUTIES}
    clock = SystemClock()
    await arena.until(lambda: _all_held(work), "every duty to be someone's")
    before = await work.holders()
    waiting = await kill_the_holder_of_each_duty(arena, work)
    died, taken = clock.monotonic(), dict[str, float]()

    async def all_taken() -> bool:
        for name, epoch in (await work.holders()).items():
            if epoch > before[name]:
                taken.setdefault(name, clock.monotonic() - died)
        return set(taken) >= DUTIES

    async def all_done() -> bool:
        for name, done in list(waiting.items()):
            if await done():
                del waiting[name]
        return not waiting

    await arena.until(all_taken, "every duty to be taken over")
    assert statistics.median(taken.values()) < TAKEN_WITHIN, taken
    assert max(taken.values()) < LATEST, taken
    try:
        await arena.until(all_done, "the work of every duty")
    except TimeoutError as error:
        raise AssertionError(f"nobody did the work of {sorted(waiting)}") from error


@BOTH
async def test_all_duties_of_keepers_that_die_go_on_and_every_second_is_accounted_for_once(
    store: StoreName, tmp_path: Path
) -> None:
    own = ("--blobs", tmp_path.as_uri(), "--notify-private", "127.0.0.0/8")
    async with receiving() as receiver, Arena(store, command=lambda url: [*tide_worker(url), *own]) as arena:
        work = Work(arena, receiver, tmp_path)
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


async def _all_held(work: Work) -> bool:
    return set(await work.holders()) >= DUTIES


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
