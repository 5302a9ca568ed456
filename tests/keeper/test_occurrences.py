"""The duty writes occurrences ahead, sleeps until there is something to do, and decides when they are due."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import apsw
import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_claim, a_schedule, a_worker
from tidewheel.errors import Unavailable
from tidewheel.keeper import Keeper, Occurrences, chores_of
from tidewheel.keeper.occurrences import duties_of
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock
from tidewheel.triggers import Interval
from tidewheel.triggers.planning import Plan


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db", clock)
    yield store
    await store.close()


class All:
    """The duties of all shards."""

    def __init__(self, store: Store, clock: FakeClock) -> None:
        self.duties = [Occurrences(store, clock, shard) for shard in range(SHARDS)]

    async def run_once(self) -> int:
        return sum([await duty.run_once() for duty in self.duties])

    @property
    def pause(self) -> float | None:
        pauses = [pause for duty in self.duties if (pause := duty.pause()) is not None]
        return min(pauses).total_seconds() if pauses else None

    async def wanted(self, store: Store) -> float | None:
        agenda = await store.agenda()
        waits = [wait for duty in self.duties if (wait := duty.wanted(agenda)) is not None]
        return min(waits).total_seconds() if waits else None


async def test_occurrences_are_written_up_to_a_minute_ahead_and_renewed_at_half_a_minute(
    store: Store, clock: FakeClock
) -> None:
    await store.create_schedule(a_schedule(rule=Interval(SECOND), overlap=Overlap.ALLOW))
    keeper = All(store, clock)

    assert await keeper.run_once() == 60
    for seconds, expected in ((29, 0), (1, 0), (1, 31), (29, 0)):
        await clock.advance(seconds * SECOND)
        assert await keeper.run_once() == expected


async def test_the_shards_of_a_node_decide_in_turn(store: Store, clock: FakeClock) -> None:
    """When all schedules fire in one second, the workers that start their jobs want the database, too."""
    for number in range(64):
        await store.create_schedule(a_schedule(f"s{number}", Interval(10 * SECOND)))
    duties = [duty for _, duty in duties_of(store, clock)]
    for duty in duties:
        await duty.run_once()
    await clock.advance(10 * SECOND)
    decide, deciding, most = store.decide_overlaps, set[int](), 0

    async def watched(shard: int, *, limit: int = 500) -> int:
        nonlocal most
        deciding.add(shard)
        most = max(most, len(deciding))
        done = await decide(shard, limit=limit)
        deciding.remove(shard)
        return done

    store.decide_overlaps = watched  # type: ignore[method-assign]
    assert sum(await asyncio.gather(*(duty.run_once() for duty in duties))) == 64
    assert most == 1


async def test_it_sleeps_until_the_next_decision(store: Store, clock: FakeClock) -> None:
    keeper = All(store, clock)
    await keeper.run_once()
    assert [duty.pause() for duty in keeper.duties] == [None] * SHARDS

    await store.create_schedule(a_schedule(rule=Interval(MINUTE)))
    await clock.advance(59.25 * SECOND)
    await keeper.run_once()
    assert keeper.pause == 0.75
    again = All(store, clock)
    await again.run_once()
    assert again.pause == 0.75, "also one that took over and had nothing to record"
    await clock.advance(0.75 * SECOND)
    assert keeper.pause == 0.0
    assert await keeper.run_once() == 1
    assert keeper.pause == 0.2, "what is due soon after is decided together"
    await clock.advance(0.2 * SECOND)
    assert await keeper.run_once() == 0
    assert round(keeper.pause, 3) == 29.8, "when the next is half a minute away"


async def test_more_schedules_than_one_look_finds_are_recorded_at_once(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidewheel.keeper.occurrences.BATCH", 2)
    for number in range(60):
        await store.create_schedule(a_schedule(f"s{number}"))
    await clock.advance(31 * SECOND)

    assert await All(store, clock).run_once() == 60


async def test_the_agenda_tells_of_what_others_have_made(store: Store, clock: FakeClock) -> None:
    keeper = All(store, clock)
    assert await keeper.wanted(store) is None

    await store.create_schedule(a_schedule(rule=Interval(MINUTE)))
    assert await keeper.wanted(store) is None, "it is half a minute too early"
    await clock.advance(31 * SECOND)
    assert await keeper.wanted(store) == 0.0
    await keeper.run_once()
    assert await keeper.wanted(store) is None
    await clock.advance(29 * SECOND)
    assert await keeper.wanted(store) == 0.0, "its overlap is to be decided"


async def test_a_running_keeper_decides_at_the_very_instant(store: Store, clock: FakeClock) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(7 * SECOND)))
    worker = await store.register(a_worker(ttl=HOUR))
    chores = [chore for chore in chores_of(store, clock) if chore.name.startswith("occurrences/")]
    keeping = asyncio.create_task(Keeper(store, chores, clock, uuid4()).run())
    await _settled(clock, 7 * SECOND)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1

    await _settled(clock, 7 * SECOND)

    second = (await store.occurrences(made.id))[-2]
    assert second.outcome is Fate.SKIPPED
    assert second.job_id is not None
    skipped_at = (await store.get(second.job_id)).finished_at
    assert skipped_at is not None
    assert timedelta(0) <= skipped_at - second.fire_at <= timedelta(milliseconds=10)
    keeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await keeping


async def _settled(clock: FakeClock, by: timedelta) -> None:
    """Let time pass in small steps, and wait after each until all duties sleep again."""
    for _ in range(by // timedelta(milliseconds=10)):
        await clock.advance(timedelta(milliseconds=10))
        while clock.sleepers < SHARDS + 2:  # its beat and its look sleep, too
            await asyncio.to_thread(lambda: None)


async def test_what_was_missed_is_accounted_for_in_pieces_and_the_newest_runs(store: Store, clock: FakeClock) -> None:
    """Five thousand occurrences passed without a keeper: each has a record, and one a job."""
    made = await store.create_schedule(a_schedule(rule=Interval(MINUTE), misfire=Misfire(grace=timedelta(0))))
    await clock.advance(5000 * MINUTE)

    assert await All(store, clock).run_once() >= 5001

    schedule = await store.get_schedule(made.id)
    assert schedule.fired == 5001
    jobs = (await store.find(JobFilter())).jobs
    assert sorted(job.due_at for job in jobs) == [clock.now(), clock.now() + MINUTE]
    page = await store.occurrences(made.id, limit=1000)
    assert [each.outcome for each in page[:3]] == [Fate.MADE, Fate.MADE, Fate.MISSED]
    assert page[2].reason == "more than 0s late, and a later occurrence runs instead"


async def test_an_outage_of_years_is_bounded(store: Store, clock: FakeClock) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(SECOND), misfire=Misfire(policy="all", most=5)))
    await clock.advance(3650 * DAY)

    await All(store, clock).run_once()

    schedule = await store.get_schedule(made.id)
    assert schedule.next_fire_at is not None
    assert schedule.next_fire_at > clock.now() - 30 * DAY
    first = (await store.occurrences(made.id, before=clock.now() - 40 * DAY))[0]
    assert first.outcome is Fate.MISSED
    assert first.reason.startswith("nobody could make its job, nor those of all that followed until 20")


async def test_a_schedule_that_cannot_be_read_does_not_hold_up_the_others(
    store: Store, clock: FakeClock, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(20):
        await store.create_schedule(a_schedule(f"s{number}"))
    connection = apsw.Connection(str(tmp_path / "jobs.db"))
    connection.execute("UPDATE schedule SET definition = replace(definition, 'interval', 'lunar') WHERE name = 's7'")
    connection.close()
    keeper = All(store, clock)
    await clock.advance(31 * SECOND)

    assert await keeper.run_once() == 19
    assert await keeper.run_once() == 0

    (record,) = [record for record in caplog.records if record.levelname == "ERROR"]
    assert "schedule 's7'" in record.getMessage()


async def test_more_that_cannot_be_read_than_one_look_finds_hold_up_nobody(
    store: Store, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("tidewheel.keeper.occurrences.BATCH", 1)
    for number in range(60):
        await store.create_schedule(a_schedule(f"s{number:02}"))
    connection = apsw.Connection(str(tmp_path / "jobs.db"))
    connection.execute("UPDATE schedule SET definition = replace(definition, 'interval', 'lunar') WHERE name < 's20'")
    connection.execute("UPDATE schedule SET definition = json_set(definition, '$.newer', 1) WHERE name > 's39'")
    connection.close()
    keeper = All(store, clock)
    await clock.advance(31 * SECOND)

    assert await keeper.run_once() == 20
    await clock.advance(MINUTE)
    assert await keeper.run_once() >= 20

    told = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert sum("cannot be planned" in each for each in told) == 20, "each once"
    assert sum("cannot be read by this version" in each for each in told) == 20


async def test_a_plan_that_the_store_cannot_take_holds_up_no_other(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(30):
        await store.create_schedule(a_schedule(f"s{number}"))
    record = store.record_occurrences

    async def refuse_one(plans: Sequence[Plan]) -> int:
        if any(plan.schedule.name == "s7" for plan in plans):
            raise ArithmeticError("of s7")
        return await record(plans)

    monkeypatch.setattr(store, "record_occurrences", refuse_one)
    keeper = All(store, clock)
    await clock.advance(31 * SECOND)

    assert await keeper.run_once() == 29

    (told,) = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
    assert "schedule 's7'" in told
    monkeypatch.undo()
    assert await keeper.run_once() == 1


async def test_a_store_that_is_away_is_nobodys_fault(
    store: Store, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(30):
        await store.create_schedule(a_schedule(f"s{number}"))
    asked = 0

    async def away(plans: Sequence[Plan]) -> int:
        nonlocal asked
        asked += 1
        raise Unavailable(f"{len(plans)} plans")

    monkeypatch.setattr(store, "record_occurrences", away)
    await clock.advance(31 * SECOND)
    with pytest.raises(Unavailable):
        await All(store, clock).run_once()
    assert asked == 1


async def test_a_clock_that_steps_neither_doubles_nor_loses_an_occurrence(store: Store, clock: FakeClock) -> None:
    made = await store.create_schedule(a_schedule(rule=Interval(10 * SECOND), overlap=Overlap.ALLOW))
    keeper, begun = All(store, clock), clock.now()
    for step in (0, 300, -200, 1000, -900, 0, 7):
        clock.step(timedelta(seconds=step))
        await clock.advance(45 * SECOND)
        await keeper.run_once()

    times = [each.fire_at for each in await store.occurrences(made.id, limit=1000)][::-1]
    assert times == [begun + (n + 1) * 10 * SECOND for n in range(len(times))]
    assert len(times) > 100
