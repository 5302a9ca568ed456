"""A year of fifty schedules in several zones, with restarts, takeovers, outages and clocks that are set, in seconds.

Every occurrence that the rules ask for is accounted for exactly once: it ran, or its record says why not. What the
rules ask for is computed by the slow cron of the triggers' tests, which shares no code with them.
"""

import asyncio
import random
import tempfile
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, a_claim, a_schedule, a_worker, outcome_of
from tests.unit.triggers.oracle import Oracle, Step, within
from tidewheel.keeper import Occurrences
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, Occurrence, ScheduleSpec
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock
from tidewheel.triggers import Cron, Interval

pytestmark = pytest.mark.slow

MEMORY = Path("/dev/shm")
BEGIN = datetime(2030, 1, 1, 0, 7, tzinfo=UTC)
END = BEGIN + 366 * DAY
AHEAD = 4 * DAY
"""Longer than in production, so that the year has fewer turns."""
QUARTER = 15 * MINUTE
JITTER = timedelta(minutes=4)

ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "UTC")
FIELDS = (
    *("30 2 * * *", "0 0 * * *", "15 3 * * MON-FRI", "*/30 2 * * *", "0 */6 * * *", "45 23 L * *"),
    "30 1,2 * * SUN",
)
MISFIRES = (
    Misfire(),
    Misfire(policy="all", most=20, grace=HOUR),
    Misfire(policy="skip", grace=30 * MINUTE),
    Misfire(policy="latest", grace=timedelta(0)),
)


class Turn(NamedTuple):
    """One time at which the duties were done, by the store's clock, and the latest such time before it."""

    before: datetime
    now: datetime


def fifty() -> list[ScheduleSpec]:
    specs = []
    for number in range(50):
        zone, fields = ZONES[number % len(ZONES)], FIELDS[number % len(FIELDS)]
        rule = Interval((90 + 15 * number) * MINUTE) if number >= 44 else Cron(fields, zone)
        bounds: dict[str, Any] = {"jitter": JITTER} if number % 10 == 7 else {}
        if number % 10 == 3:
            bounds["max_occurrences"] = 100
        specs.append(
            a_schedule(
                f"s{number}",
                rule,
                args={"number": number},
                misfire=MISFIRES[number % len(MISFIRES)],
                overlap=(Overlap.ALLOW, Overlap.SKIP, Overlap.QUEUE)[number % 3],
                **bounds,
            )
        )
    return specs


def look_at_walls(zone: str) -> list[Step]:
    """Look at the clocks of a zone each quarter of an hour of the year: all that is used here falls on quarters."""
    place, steps = ZoneInfo(zone), list[Step]()
    instant = BEGIN.replace(minute=0) - 4 * HOUR
    foreseen = instant.astimezone(place).replace(tzinfo=None)
    while instant <= END + 40 * DAY:
        wall = instant.astimezone(place).replace(tzinfo=None)
        steps.append(Step(instant, wall, wall - foreseen))
        instant, foreseen = instant + QUARTER, wall + QUARTER
    return steps


def asked_for() -> Iterator[list[datetime]]:
    """Yield the nominal instants of each of the fifty."""
    walls = {zone: look_at_walls(zone) for zone in ZONES}
    for number in range(50):
        if number >= 44:
            every = (90 + 15 * number) * MINUTE
            first = BEGIN - (BEGIN - datetime(1970, 1, 1, tzinfo=UTC)) % every + every
            times = [first + n * every for n in range((END + 40 * DAY - first) // every + 1)]
        else:
            steps = walls[ZONES[number % len(ZONES)]]
            times = within(BEGIN, END + 40 * DAY, Oracle(FIELDS[number % len(FIELDS)]).fires(steps))
        yield times[:100] if number % 10 == 3 else times


class World:
    """The store, its clock, the keepers, and a worker that runs what is due."""

    def __init__(self, store: Store, clock: FakeClock, chance: random.Random) -> None:
        self.store = store
        self.clock = clock
        self.chance = chance
        self.turns = [Turn(BEGIN, BEGIN)]
        self.ran = Counter[tuple[int, datetime]]()
        self.keepers = [self.keeper(), self.keeper()]

    def keeper(self) -> list[Occurrences]:
        return [Occurrences(self.store, self.clock, shard, ahead=AHEAD) for shard in range(SHARDS)]

    async def turn(self) -> None:
        """Do all duties: each shard by the first keeper, by the second, or by both at once."""
        latest = max(turn.now for turn in self.turns[-3:])
        self.turns.append(Turn(min(latest, self.clock.now()), self.clock.now()))
        for shard in range(SHARDS):
            holders = self.chance.choice([[0], [0], [1], [0, 1]])
            await asyncio.gather(*(self.keepers[holder][shard].run_once() for holder in holders))

    async def work(self) -> None:
        """Run all that is due, and decide about what then overlaps."""
        worker = await self.store.register(a_worker(ttl=HOUR))
        while runs := (await self.store.claim(a_claim(worker.id, 1000))).runs:
            for run in runs:
                self.ran[msgspec.json.decode(run.args)["number"], run.due_at] += 1
            await self.store.settle(worker.id, [outcome_of(run) for run in runs])
        await self.store.deregister(worker.id)

    async def pass_time(self) -> None:
        """Let time pass: a while, or an outage; now and then the clock is set, or a keeper is replaced."""
        dice = self.chance.random()
        if dice < 0.02:
            self.clock.step(timedelta(minutes=self.chance.randint(-120, 120)))
        elif dice < 0.06:
            self.keepers[self.chance.randrange(2)] = self.keeper()
        outage = self.chance.random() < 0.08
        await self.clock.advance(
            timedelta(hours=self.chance.uniform(48, 150) if outage else self.chance.uniform(2, 46))
        )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory, where there is such: a year has thousands of commits."""
    if not MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=MEMORY) as made:
        yield Path(made)


async def test_a_year_of_fifty_schedules_is_accounted_for(folder: Path) -> None:
    clock = FakeClock(BEGIN)
    store = await open_store(folder / "year.db", clock)
    world = World(store, clock, random.Random(7))  # the same year each time
    made = [await store.create_schedule(spec) for spec in fifty()]
    while clock.now() < END:
        await world.turn()
        await world.work()
        await world.pass_time()
    await world.turn()
    await world.work()

    fates = Counter[Fate]()
    for number, (schedule, nominal) in enumerate(zip(made, asked_for(), strict=True)):
        recorded = await all_occurrences(store, schedule.id)
        check_complete(recorded, nominal, (await store.get_schedule(schedule.id)).next_fire_at, number)
        check_reasons(recorded, schedule.misfire, world.turns)
        for occurrence in recorded:
            ran = world.ran.pop((number, occurrence.fire_at), 0)
            if occurrence.outcome is not Fate.MADE:
                assert ran == 0, occurrence
            elif occurrence.fire_at <= clock.now():
                assert ran == 1, occurrence
        fates.update(occurrence.outcome for occurrence in recorded)
    assert not world.ran, "what ran was asked for"
    assert fates[Fate.MADE] > 10_000
    assert fates[Fate.MISSED] > 100
    await store.close()


def check_complete(
    recorded: list[Occurrence], nominal: list[datetime], next_fire_at: datetime | None, number: int
) -> None:
    """All that was asked for up to the next one is recorded, and nothing else."""
    times = [occurrence.fire_at for occurrence in recorded]
    asked = nominal[: len(times)]
    if number % 10 == 7:
        assert all(at <= fire_at < at + JITTER for at, fire_at in zip(asked, times, strict=True))
    else:
        assert times == asked
    if next_fire_at is None:
        assert len(times) == len(nominal)
    else:
        assert nominal[len(times)] <= next_fire_at < nominal[len(times)] + JITTER


def check_reasons(recorded: list[Occurrence], misfire: Misfire, turns: list[Turn]) -> None:
    """What does not run says why, and what was missed fell into a time without a keeper, longer ago than the grace."""
    for occurrence in recorded:
        assert (occurrence.outcome is Fate.MADE) == (occurrence.reason == "")
        if occurrence.outcome is Fate.MISSED:
            at = occurrence.fire_at
            late = "more than 20 occurrences" in occurrence.reason
            assert any(turn.before < at and (late or at < turn.now - misfire.grace) for turn in turns), occurrence


async def all_occurrences(store: Store, schedule_id: UUID) -> list[Occurrence]:
    """Return the occurrences, oldest first."""
    found: list[Occurrence] = []
    before: datetime | None = None
    while page := await store.occurrences(schedule_id, limit=1000, before=before):
        found += page
        before = page[-1].fire_at
    return found[::-1]
