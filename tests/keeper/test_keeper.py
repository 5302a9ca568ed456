"""The keeper does each chore under its duty, and outlives a store that is away."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from unittest.mock import AsyncMock, Mock
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, SECOND, a_claim, a_job, a_worker, outcome_of
from tidewheel.errors import NotFound, Unavailable
from tidewheel.keeper import Chore, Keeper, chores_of
from tidewheel.keeper.keeper import BEAT, LEASE
from tidewheel.keeper.numbers import show_chores
from tidewheel.model.duty import Agenda, Duty, share
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.states import State
from tidewheel.observe import Described, Registry, page
from tidewheel.observe.catalogue import CHORE_ITEMS, CHORE_SECONDS, CHORES, LEADER
from tidewheel.observe.own_log import JsonFormatter
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock

START = FakeClock().now()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db", clock)
    yield store
    await store.close()


def in_parts(every: timedelta, run_once: Callable[[int], Awaitable[int]]) -> list[Chore]:
    """A chore of which each of eight parts is a duty of its own."""
    return [Chore(f"part/{number}", every, partial(run_once, number)) for number in range(8)]


async def do_all(store: Store, clock: FakeClock) -> dict[str, int]:
    return {chore.name: await chore.run_once() for chore in chores_of(store, clock)}


async def test_the_chores_keep_the_promises(store: Store, clock: FakeClock) -> None:
    (late,) = await store.submit([a_job(delay=DAY, start_by=clock.now() + SECOND)])
    await clock.advance(2 * SECOND)
    assert (await do_all(store, clock))["expiry"] == 1
    assert (await store.get(late.job_id)).state is State.EXPIRED


async def test_the_chores_tell_all_children_of_a_parent_in_one_turn(store: Store, clock: FakeClock) -> None:
    """Only the first thousand were told when it ended."""
    (parent,) = await store.submit([a_job()])
    await store.submit([a_job(after=(parent.job_id,))] * 3_500)
    await store.cancel(parent.job_id)
    done = await do_all(store, clock)
    assert done["unblocking"] >= 2_500
    assert done["blocked"] == 0
    counted = {row.state: row.jobs for row in (await store.counts()).rows}
    assert counted == {State.CANCELLED: 1, State.SKIPPED: 3_500}


async def test_finished_jobs_are_kept_for_a_week_and_others_for_a_month(store: Store, clock: FakeClock) -> None:
    worker = await store.register(a_worker(ttl=timedelta(hours=1)))
    (done,) = await store.submit([a_job()])
    claimed = await store.claim(a_claim(worker.id))
    await store.settle(worker.id, [outcome_of(run) for run in claimed.runs])
    (cancelled,) = await store.submit([a_job()])
    await store.cancel(cancelled.job_id)
    await clock.advance(6 * DAY)
    await do_all(store, clock)
    assert (await store.get(done.job_id)).state is State.SUCCEEDED
    await clock.advance(3 * DAY)
    await do_all(store, clock)
    with pytest.raises(NotFound):
        await store.get(done.job_id)
    assert (await store.get(cancelled.job_id)).state is State.CANCELLED
    await clock.advance(30 * DAY)
    await do_all(store, clock)
    with pytest.raises(NotFound):
        await store.get(cancelled.job_id)


async def test_a_gate_that_has_expired_is_opened_within_a_second(store: Store, clock: FakeClock) -> None:
    """It is called when the first of them expires, however rarely it is done otherwise."""
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo", lasts=10 * SECOND))
    (chore,) = (chore for chore in chores_of(store, clock) if chore.name == "gates")
    assert chore.wanted is not None
    await clock.advance(9 * SECOND)
    assert await chore.run_once() == 0
    assert chore.wanted(await store.agenda()) == SECOND
    await clock.advance(SECOND)
    assert chore.wanted(await store.agenda()) == timedelta(0)
    assert await chore.run_once() == 1
    assert await store.gates() == []
    assert chore.wanted(await store.agenda()) is None


async def test_a_gate_that_stops_what_runs_is_looked_after_all_the_time(store: Store, clock: FakeClock) -> None:
    (chore,) = (chore for chore in chores_of(store, clock) if chore.name == "gates")
    assert chore.wanted is not None
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo"))
    assert chore.wanted(await store.agenda()) is None
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo", stop_running=True))
    assert chore.wanted(await store.agenda()) == timedelta(0)


class Shared:
    """Duties of nodes, in memory; it may be away for the first few times."""

    def __init__(self, clock: FakeClock, away: int = 0) -> None:
        self.clock = clock
        self.away = away
        self.there: dict[UUID, tuple[Sequence[str], float]] = {}
        self.holders: dict[str, UUID] = {}
        self.next_start_by: timedelta | None = None
        self.looks = 0
        self.asked = 0
        self.crowded = False
        self.deaf = False

    async def share_duties(self, node: UUID, names: Sequence[str], ttl: timedelta) -> list[Duty] | None:
        self.asked += 1
        if self.crowded:
            return None
        if self.away:
            self.away -= 1
            raise Unavailable("gone fishing")
        now = self.clock.monotonic()
        self.there[node] = (names, now + ttl.total_seconds())
        offers = {other: names for other, (names, until) in self.there.items() if until > now}
        held = {name: holder for name, holder in self.holders.items() if holder in offers}
        due = share(held, offers)
        for name, whose in due.items():
            if held.get(name) == node != whose:
                del self.holders[name]
            elif whose == node and name not in held:
                self.holders[name] = node
        return [Duty(name, node, self.clock.now() + ttl, 1) for name in sorted(self.holders) if due[name] == node]

    async def leave_duties(self, node: UUID) -> None:
        if not self.deaf:
            self.there.pop(node, None)

    async def agenda(self) -> Agenda:
        self.looks += 1
        due = None if self.next_start_by is None else START + self.next_start_by
        return Agenda(now=self.clock.now(), next_start_by=due)


class Counter:
    """A chore that counts how often it was done."""

    def __init__(self) -> None:
        self.done = 0

    async def __call__(self) -> int:
        self.done += 1
        return 0


@asynccontextmanager
async def running(*keepers: Keeper) -> AsyncIterator[list["asyncio.Task[None]"]]:
    tasks = [asyncio.create_task(keeper.run()) for keeper in keepers]
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_one_keeper_at_a_time_does_a_chore(store: Store, clock: FakeClock) -> None:
    counter = Counter()
    chore = Chore("sweep-up", SECOND, counter)
    first, second = (Keeper(store, [chore], clock, uuid4()) for _ in range(2))
    assert await first.run_once(chore) is None, "nobody has it yet"
    await first.beat()
    await second.beat()
    assert await first.run_once(chore) == 0
    assert await second.run_once(chore) is None
    assert counter.done == 1


async def test_a_keeper_that_was_away_for_longer_than_its_lease_does_nothing(store: Store, clock: FakeClock) -> None:
    chore = Chore("sweep-up", SECOND, Counter())
    keeper = Keeper(store, [chore], clock, uuid4())
    await keeper.beat()
    await clock.advance(LEASE)
    assert await keeper.run_once(chore) is None


@pytest.mark.parametrize("seed", range(20))
async def test_a_dead_keeper_s_chores_are_done_by_another_within_five_seconds(seed: int, clock: FakeClock) -> None:
    """Also one that is done once an hour."""
    shared, done = Shared(clock), dict[str, list[tuple[float, int]]]()

    def chores(node: int) -> list[Chore]:
        async def note(shard: int) -> int:
            done.setdefault(f"part/{shard}", []).append((clock.monotonic(), node))
            return 0

        return in_parts(timedelta(hours=1), note)

    first, second = (Keeper(shared, chores(node), clock, UUID(int=seed * 2 + node)) for node in (1, 2))
    async with running(first, second) as (dying, _):
        await clock.advance(timedelta(seconds=20 + seed * 0.17))
        lost = {name for name, holder in shared.holders.items() if holder == UUID(int=seed * 2 + 1)}
        assert len(lost) == 4
        shared.deaf = True  # it dies without a word
        dying.cancel()
        died = clock.monotonic()
        await clock.advance(5 * SECOND)
    assert all(any(at > died and node == 2 for at, node in done[name]) for name in lost)


async def test_a_keeper_that_comes_gets_its_share_within_two_beats(clock: FakeClock) -> None:
    shared = Shared(clock)
    chores = in_parts(SECOND, lambda _: Counter()())
    first, second = (Keeper(shared, chores, clock, UUID(int=number)) for number in (1, 2))
    async with running(first):
        await clock.advance(10 * SECOND)
        assert set(shared.holders.values()) == {UUID(int=1)}
        async with running(second):
            await clock.advance(2 * BEAT)
            assert sorted(map(str, shared.holders.values())).count(str(UUID(int=2))) == 4


async def test_a_chore_that_knows_when_it_is_needed_next_is_done_then_and_not_later(clock: FakeClock) -> None:
    done: list[float] = []

    async def note() -> int:
        done.append(clock.monotonic())
        return 0

    def pause() -> timedelta | None:
        return timedelta(seconds=0.25) if len(done) < 4 else None

    async with running(Keeper(Shared(clock), [Chore("exact", 10 * SECOND, note, pause)], clock, uuid4())):
        await clock.advance(8 * SECOND)
        assert done == [0.0, 0.25, 0.5, 0.75]
        await clock.advance(4 * SECOND)
        assert len(done) == 5  # and else as often as it usually is


async def test_a_deadline_is_met_to_the_moment_and_one_that_came_late_within_a_second(clock: FakeClock) -> None:
    shared, done = Shared(clock), list[float]()

    async def note() -> int:
        done.append(clock.monotonic())
        shared.next_start_by = None
        return 1

    expiry = next(chore for chore in chores_of(Mock(), clock) if chore.name == "expiry")
    async with running(Keeper(shared, [expiry._replace(run_once=note)], clock, uuid4())):
        await clock.advance(10 * SECOND)
        done.clear()
        shared.next_start_by = timedelta(seconds=15.123)
        await clock.advance(10 * SECOND)
        assert done == [pytest.approx(15.123, abs=0.011)]
        shared.next_start_by = timedelta(seconds=20.0)  # it came and passed between two looks
        await clock.advance(timedelta(seconds=0.96))
        assert len(done) == 2


async def test_an_idle_keeper_asks_its_store_fewer_than_two_times_a_second(clock: FakeClock) -> None:
    shared = Shared(clock)
    idle = [chore for chore in chores_of(Mock(), clock) if chore.wanted is not None]
    async with running(Keeper(shared, [chore._replace(run_once=Counter()) for chore in idle], clock, uuid4())):
        await clock.advance(timedelta(minutes=5))
    assert (shared.asked + shared.looks) / 300 < 2


async def test_a_keeper_that_is_not_needed_asks_seldom_and_helps_when_it_is(clock: FakeClock) -> None:
    shared, counter = Shared(clock), Counter()
    shared.crowded = True
    async with running(Keeper(shared, [Chore("count", SECOND, counter)], clock, uuid4())):
        await clock.advance(timedelta(minutes=5))
        assert (counter.done, shared.looks) == (0, 0)
        assert shared.asked <= 61
        shared.crowded = False
        await clock.advance(10 * SECOND)
        assert counter.done


async def test_a_keeper_keeps_numbers_of_its_chores(clock: FakeClock) -> None:
    async def work() -> int:
        await clock.sleep(0.5)
        return 3

    async def fail() -> int:
        raise ZeroDivisionError

    keeper = Keeper(Shared(clock), [Chore("work", SECOND, work), Chore("fail", SECOND, fail)], clock, uuid4())
    async with running(keeper):
        await clock.advance(10 * SECOND)
    work_record, fail_record = keeper.records["work"], keeper.records["fail"]
    assert work_record.runs >= 6
    assert (work_record.done, work_record.errors) == (3 * work_record.runs, 0)
    assert work_record.last_seconds == pytest.approx(0.5)
    assert work_record.total_seconds == pytest.approx(0.5 * work_record.runs)
    assert fail_record.errors == fail_record.runs >= 6


async def test_a_keeper_outlives_an_absent_store_and_gives_its_duties_up(clock: FakeClock) -> None:
    counter, store = Counter(), Shared(clock, away=2)
    async with running(Keeper(store, [Chore("count", SECOND, counter)], clock, uuid4())):
        await clock.advance(10 * SECOND)
        assert counter.done >= 5
        assert len(store.there) == 1
    assert store.there == {}


async def test_a_chore_that_fails_is_logged_and_tried_again_and_stops_no_other(
    clock: FakeClock, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    good, tries = Counter(), Counter()
    monkeypatch.setattr(caplog.handler, "formatter", JsonFormatter({}))  # all tests share it

    async def fail() -> int:
        await tries()
        raise ZeroDivisionError("of all things")

    chores = [Chore("bad", SECOND, fail), Chore("good", SECOND, good)]
    async with running(Keeper(Shared(clock), chores, clock, uuid4())):
        await clock.advance(10 * SECOND)
        assert min(good.done, tries.done) >= 6
    record = next(record for record in caplog.records if record.levelname == "ERROR")
    assert "bad" in record.getMessage()
    assert record.exc_info is not None
    assert record.exc_info[0] is ZeroDivisionError
    assert '"chore":"bad"' in caplog.text


async def test_more_than_is_cleared_in_one_go_is_cleared_right_after(clock: FakeClock) -> None:
    pieces = [1000] * 70
    store = Mock(retire_deliveries=AsyncMock(side_effect=lambda: pieces.pop() if pieces else 0))
    (chore,) = (chore for chore in chores_of(store, clock) if chore.name == "old-deliveries")
    assert await chore.run_once() == 50_000
    assert chore.pause() == timedelta(0)
    assert await chore.run_once() == 20_000
    assert chore.pause() is None


async def test_what_a_chore_left_under_way_is_ended_with_the_keeper(clock: FakeClock) -> None:
    stopped: list[float] = []

    async def stop(patience: float) -> None:
        stopped.append(patience)

    async def nothing() -> int:
        return 0

    chore = Chore("slow", SECOND, nothing, stop=stop)
    running = asyncio.ensure_future(Keeper(Shared(clock), [chore], clock, UUID(int=1)).run())
    await clock.advance(SECOND)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert stopped == [0.0]


async def test_what_a_duty_did_is_told_in_numbers(store: Store, clock: FakeClock) -> None:
    """How often it ran and failed, what it found to do, how long that took, and whose duty it is."""
    found = iter([3, 4, None])

    async def busy() -> int:
        await clock.advance(SECOND / 2)
        if (number := next(found)) is None:
            raise Unavailable("away")
        return number

    chores = [Chore("busy", DAY, busy), Chore("idle", DAY, busy)]
    keeper, registry = Keeper(store, chores, clock, uuid4()), Registry()
    show_chores(keeper, registry)
    told = partial(numbers_told, registry)
    assert (told(LEADER), told(CHORES)["busy", "ok"]) == ({("busy",): 0, ("idle",): 0}, 0)

    await keeper.beat()
    assert [await keeper.run_once(chores[0]) for _ in range(2)] == [3, 4]
    with pytest.raises(Unavailable):
        await keeper.run_once(chores[0])

    assert told(LEADER) == {("busy",): 1, ("idle",): 1}
    assert told(CHORES) == {
        ("busy", "ok"): 2,
        ("busy", "error"): 1,
        ("idle", "ok"): 0,
        ("idle", "error"): 0,
    }
    assert told(CHORE_ITEMS) == {("busy",): 7, ("idle",): 0}
    assert told(CHORE_SECONDS) == {("busy",): 1.5, ("idle",): 0}
    await clock.advance(LEASE)
    assert told(LEADER) == {("busy",): 0, ("idle",): 0}, "its lease has passed"


def numbers_told(registry: Registry, metric: Described) -> dict[tuple[str, ...], float]:
    """Return the values of a metric as they are exported."""
    lines = re.findall(rf"^{metric.name}{{(.*)}} (\S+)$", page(registry.numbers()).decode(), re.MULTILINE)
    return {tuple(re.findall(r'"([^"]*)"', labels)): float(value) for labels, value in lines}
