"""A year of fifty schedules in several zones, with restarts, takeovers, outages, edits, pauses and clocks that are set.

Every occurrence that the rules ask for is accounted for exactly once: it ran, or its record says why not. What the
rules ask for is computed by the slow cron of the triggers' tests, which shares no code with them.
"""

import asyncio
import os
import random
from bisect import bisect_right
from collections import Counter
from datetime import datetime, timedelta
from typing import NamedTuple
from uuid import UUID

import msgspec
import pytest

from tests.builders import DAY, HOUR, a_claim, a_worker, outcome_of
from tests.contract.backends import Backend
from tests.simulation.plans import BEGIN, HOW_MANY, asked_for, bounds_of, plain, spec_of
from tidewheel.keeper import Occurrences
from tidewheel.model.ids import time_of
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, Occurrence, Schedule
from tidewheel.model.states import State
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.testing import FakeClock

AHEAD = 4 * DAY
"""Longer than in production, so that the year has fewer turns."""
SEEDS = range(7, 27) if os.environ.get("TIDE_LONG") else (7,)


class Turn(NamedTuple):
    """One time at which occurrences were recorded, by the store's clock, and the latest such time before it."""

    before: datetime
    now: datetime


class Own:
    """One of the schedules, and what was done to it."""

    def __init__(self, number: int, schedule: Schedule) -> None:
        self.number = number
        self.schedule = schedule
        self.rules = [(BEGIN, 0)]
        """From when on which of its rules counted."""
        self.pauses: list[tuple[datetime, datetime]] = []

    def nominal(self, until: datetime) -> list[datetime]:
        """Return when it was to fire by its rules, pauses left out; what is moved may begin before the beginning."""
        ends = [since for since, _ in self.rules[1:]] + [until]
        found = [
            at
            for (since, turn), end in zip(self.rules, ends, strict=True)
            for at in asked_for(self.number, turn)
            if (since < at or turn == 0) and at <= end
        ]
        return [at for at in found if not any(begin < at <= end for begin, end in self.pauses)]


class World:
    """The store, its clock, the keepers, people who edit, and a worker that runs what is due."""

    def __init__(self, backend: Backend, store: Store, chance: random.Random) -> None:
        self.backend = backend
        self.store = store
        self.chance = chance
        self.own: list[Own] = []
        self.turns = [Turn(BEGIN, BEGIN)]
        self.latest = BEGIN
        self.ran = Counter[tuple[int, datetime]]()
        self.did = Counter[str]()
        self.keepers = [self.keeper(), self.keeper()]
        self.paused: tuple[Own, datetime] | None = None

    @property
    def now(self) -> datetime:
        return self.backend.clock.now()

    def keeper(self) -> list[Occurrences]:
        clock = FakeClock(self.now)
        return [Occurrences(self.store, clock, shard, ahead=AHEAD) for shard in range(SHARDS)]

    async def live(self, until: datetime, numbers: range = range(HOW_MANY)) -> None:
        for number in numbers:
            self.own.append(Own(number, await self.store.create_schedule(spec_of(number, 0))))
        while self.now < until:
            await self.edit()
            await self.turn()
            if self.chance.random() < 0.9:
                await self.work()
            await self.pass_time()
        await self.resume()
        await self.turn()
        await self.work()

    def note_turn(self) -> None:
        latest = max(turn.now for turn in self.turns[-3:])
        self.turns.append(Turn(min(latest, self.now), self.now))

    async def turn(self) -> None:
        """Do all duties: each shard by the first keeper, by the second, or by both at once."""
        self.note_turn()
        held = [(shard, holder) for shard in range(SHARDS) for holder in self.chance.choice([[0], [0], [1], [0, 1]])]
        await asyncio.gather(*(self.keepers[holder][shard].run_once() for shard, holder in held))

    async def work(self) -> None:
        """Run all that is due."""
        worker = await self.store.register(a_worker(ttl=HOUR))
        while runs := (await self.store.claim(a_claim(worker.id, 1000))).runs:
            for run in runs:
                self.ran[msgspec.json.decode(run.args)["number"], run.due_at] += 1
            await self.store.settle(worker.id, [outcome_of(run) for run in runs])
        await self.store.deregister(worker.id)

    async def edit(self) -> None:
        """Do to some schedules what people do, also while something of them is overdue; never by a clock set back."""
        if self.now <= self.latest:
            return
        self.latest = self.now
        await self.resume()
        for own in self.chance.sample(self.own, 2):
            if bounds_of(own.number).max_occurrences is None:
                await self.redefine(own)
        if self.chance.random() < 0.2:
            own = self.chance.choice([own for own in self.own if plain(own.number)])
            self.note_turn()
            await self.store.pause_schedule(own.schedule.id)
            self.paused = own, self.now

    async def redefine(self, own: Own) -> None:
        """Edit a schedule, some with another rule; one that has ended stays so."""
        turn = own.rules[-1][1]
        if asked_for(own.number, turn)[-1] <= self.now:
            return
        if plain(own.number) and self.chance.random() < 0.5:
            turn += 1
            own.rules.append((self.now, turn))
            self.did["another rule"] += 1
        found = await self.store.get_schedule(own.schedule.id)
        self.did["overdue"] += found.next_fire_at is not None and found.next_fire_at <= self.now
        spec = spec_of(own.number, turn, description=f"edited {self.now}")
        self.note_turn()
        await self.store.change_schedule(own.schedule.id, spec, version=found.version)

    async def resume(self) -> None:
        if self.paused is not None:
            own, begin = self.paused
            await self.store.resume_schedule(own.schedule.id)
            own.pauses.append((begin, self.now))
            self.paused = None
            self.did["paused"] += 1

    async def pass_time(self) -> None:
        """Let time pass: a while, or an outage; the clock is set, a keeper is replaced, all is started anew."""
        dice = self.chance.random()
        if dice < 0.03 and self.paused is None:
            await self.set_clock(timedelta(minutes=self.chance.randint(-120, 120)))
        elif dice < 0.08:
            self.keepers[self.chance.randrange(2)] = self.keeper()
        elif dice < 0.1:
            await self.start_anew()
        outage = self.chance.random() < 0.1
        hours = self.chance.uniform(48, 150) if outage else self.chance.uniform(2, 90)
        await self.backend.clock.advance(timedelta(hours=hours))

    async def set_clock(self, by: timedelta) -> None:
        if by < timedelta(0):
            await self.backend.set_clock_back(-by)
        else:
            await self.backend.clock.advance(by)

    async def start_anew(self) -> None:
        await self.store.close()
        self.store = await self.backend.open()
        self.keepers = [self.keeper(), self.keeper()]
        self.did["started anew"] += 1


async def account_for(world: World) -> Counter[Fate]:
    """Check every schedule, and return what became of all that was asked for."""
    fates = Counter[Fate]()
    for own in world.own:
        recorded = await all_occurrences(world.store, own.schedule.id)
        check_complete(own, recorded, (await world.store.get_schedule(own.schedule.id)).next_fire_at, world.now)
        check_reasons(recorded, own.schedule.misfire, world.turns)
        await check_runs(world, own, recorded)
        fates.update(occurrence.outcome for occurrence in recorded)
    assert not world.ran, "what ran was asked for"
    return fates


def check_complete(own: Own, recorded: list[Occurrence], next_fire_at: datetime | None, now: datetime) -> None:
    """All that was asked for until now is recorded, with what was written ahead, and nothing else."""
    times = [occurrence.fire_at for occurrence in recorded]
    bounds = bounds_of(own.number)
    asked = own.nominal(now + AHEAD)
    first = bisect_right(asked, BEGIN)
    if bounds.shift and times and times[0] < asked[first]:
        first -= 1  # its own share of the spread came after the beginning
    asked = asked[first:][: bounds.max_occurrences]
    for at, fire_at in zip(asked, times, strict=False):
        assert at <= fire_at < at + bounds.shift or at == fire_at, f"schedule {own.number}"
    assert len(times) <= len(asked)
    if next_fire_at is None:
        assert len(times) == len(asked)
    elif len(times) < len(asked):
        assert asked[len(times)] <= next_fire_at <= asked[len(times)] + bounds.shift
        assert next_fire_at > now


def check_reasons(recorded: list[Occurrence], misfire: Misfire, turns: list[Turn]) -> None:
    """What does not run says why, and what was missed fell into a time without a keeper, longer ago than the grace."""
    for occurrence in recorded:
        assert (occurrence.outcome is Fate.MADE) == (occurrence.reason == "")
        at = occurrence.fire_at
        if occurrence.outcome is Fate.MISSED:
            late = "more than 20 occurrences" in occurrence.reason
            assert any(turn.before < at and (late or at < turn.now - misfire.grace) for turn in turns), occurrence
        elif occurrence.outcome is Fate.SKIPPED:
            assert occurrence.job_id is not None
            caught_up = misfire.policy == "all" and time_of(occurrence.job_id) >= at
            assert not caught_up, "what is caught up with waits for its turn"


async def check_runs(world: World, own: Own, recorded: list[Occurrence]) -> None:
    """What was made ran once, unless a later run took its place; what was not made did not run."""
    replaced = own.schedule.overlap is Overlap.CANCEL_PREVIOUS
    for occurrence in recorded:
        ran = world.ran.pop((own.number, occurrence.fire_at), 0)
        if occurrence.outcome is not Fate.MADE or occurrence.fire_at > world.now:
            assert ran == 0, occurrence
        elif ran == 0 and replaced:
            assert occurrence.job_id is not None
            job = await world.store.get(occurrence.job_id)
            assert job.state is State.CANCELLED
            assert job.error is not None
            assert job.error.message == "a later run took its place"
            world.did["replaced"] += 1
        else:
            assert ran == 1, occurrence


async def all_occurrences(store: Store, schedule_id: UUID) -> list[Occurrence]:
    """Return the occurrences, oldest first."""
    found: list[Occurrence] = []
    before: datetime | None = None
    while page := await store.occurrences(schedule_id, limit=1000, before=before):
        found += page
        before = page[-1].fire_at
    return found[::-1]


async def begin(backend: Backend, seed: int) -> World:
    await backend.clock.advance(BEGIN - backend.clock.now())
    return World(backend, await backend.open(), random.Random(seed))  # the same year each time


@pytest.mark.proof
@pytest.mark.parametrize("seed", SEEDS)
async def test_a_year_of_fifty_schedules_is_accounted_for(sqlite: Backend, seed: int) -> None:
    world = await begin(sqlite, seed)

    await world.live(BEGIN + 366 * DAY)

    fates = await account_for(world)
    assert fates[Fate.MADE] > 10_000
    assert min(fates[Fate.MISSED], fates[Fate.SKIPPED]) > 100
    for deed in ("another rule", "overdue", "paused", "started anew", "replaced"):
        assert world.did[deed], deed


@pytest.mark.proof
async def test_six_weeks_on_postgresql_are_accounted_for(postgres: Backend) -> None:
    await live_six_weeks(postgres)


@pytest.mark.slow
async def test_six_weeks_are_accounted_for(sqlite: Backend) -> None:
    await live_six_weeks(sqlite)


async def live_six_weeks(backend: Backend) -> None:
    world = await begin(backend, 8)

    await world.live(BEGIN + 42 * DAY, range(HOW_MANY - 20, HOW_MANY))

    fates = await account_for(world)
    assert fates[Fate.MADE] > 300
    assert min(fates[Fate.MISSED], fates[Fate.SKIPPED], world.did["overdue"], world.did["replaced"]) > 0
