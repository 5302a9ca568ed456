"""A worker with room to spare takes all that is due in one statement, where order is no question; and only there."""

from typing import Any

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_job, a_worker, needing, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import claim, finish, in_order, settle, start, submit
from tests.postgres_store.tools import Connect
from tidewheel.errors import LeaseLost
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres import PostgresStore
from tidewheel.store.postgres.connection import SQL, Database
from tidewheel.store.postgres.memory import BEGINNING


class _Noting:
    def __init__(self, connection: Any, names: list[str]) -> None:
        self._connection = connection
        self._names = names

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def fetch(self, statement: str, *values: Any) -> Any:
        return self._note(self._connection.fetch, statement, values)

    def fetchrow(self, statement: str, *values: Any) -> Any:
        return self._note(self._connection.fetchrow, statement, values)

    def _note(self, method: Any, statement: str, values: Any) -> Any:
        self._names += [name for name, text in SQL.items() if text == statement]
        return method(statement, *values)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that claims were answered by, in their order."""
    names: list[str] = []
    run = Database._run

    async def run_noting(database: Database, work: Any, *rest: Any) -> Any:
        return await run(database, lambda connection: work(_Noting(connection, names)), *rest)

    monkeypatch.setattr(Database, "_run", run_noting)
    return names


@pytest.fixture
async def calm(store: Store, worker: Worker, asked: list[str]) -> Worker:
    """A worker that knows its lanes and had room left at its last claim."""
    await settle(store, worker, await start(store, worker))
    assert await claim(store, worker) == []
    asked.clear()
    return worker


async def test_a_job_that_comes_to_a_worker_with_time_starts_after_one_statement(
    store: Store, calm: Worker, asked: list[str]
) -> None:
    jobs = [await submit(store, priority=level) for level in (Priority.LOW, Priority.HIGH)]
    asked.clear()
    runs = await claim(store, calm)
    assert in_order(runs) == jobs[::-1]
    assert [run.token for run in runs] == [1, 1]
    assert asked == ["take_all"]

    await finish(store, calm, runs)
    asked.clear()
    assert await claim(store, calm) == []
    assert asked == ["take_all"]


async def test_it_answers_when_the_next_job_is_due(backend: PostgresBackend, store: Store, calm: Worker) -> None:
    due = backend.clock.now() + MINUTE
    await submit(store, run_at=due)
    now = await submit(store)
    claimed = await store.claim(a_claim(calm.id))
    assert (in_order(claimed.runs), claimed.next_due) == ([now], due)


async def test_where_more_is_due_than_there_is_room_for_the_urgent_come_first(
    store: Store, calm: Worker, asked: list[str]
) -> None:
    await store.submit(some_jobs(40, priority=Priority.LOW))
    urgent = [answer.job_id for answer in await store.submit(some_jobs(2, priority=Priority.HIGH))]
    asked.clear()
    assert in_order(await claim(store, calm, 2)) == urgent
    assert asked == ["take_all", "peek", "take"]
    assert len(await claim(store, calm, 40)) == 40


@pytest.mark.parametrize("how_many", [9, 10, 11, 40])
async def test_no_more_is_taken_than_there_is_room_for(store: Store, calm: Worker, how_many: int) -> None:
    jobs = [answer.job_id for answer in await store.submit(some_jobs(how_many))]
    assert in_order(await claim(store, calm, 10)) == jobs[:10]


@pytest.mark.parametrize("how_many", [31, 32, 33, 50, 51, 100])
async def test_nothing_is_left_that_there_is_room_for(store: Store, calm: Worker, how_many: int) -> None:
    """A peek sees only so far; what lies beyond must not wait for the next look."""
    jobs = [answer.job_id for answer in await store.submit(some_jobs(how_many))]
    assert in_order(await claim(store, calm, 100)) == jobs


@pytest.mark.parametrize("mode", [GateMode.HOLD, GateMode.DROP])
async def test_a_gate_that_someone_closed_meanwhile_is_seen(
    backend: PostgresBackend, store: Store, calm: Worker, mode: GateMode
) -> None:
    other = await backend.open()
    await submit(store)
    await other.close_gate(GateSpec(mode=mode, kind="echo"))
    assert await claim(store, calm) == []


async def test_the_flag_of_a_lane_counts_whatever_the_claimer_believes(
    backend: PostgresBackend, store: Store, calm: Worker
) -> None:
    """A gate marks its lanes and raises their version in one transaction; either alone keeps jobs from starting."""
    await submit(store)
    await backend.execute("UPDATE tidewheel.lane SET gate = 'hold'")
    assert await claim(store, calm) == []
    await backend.execute("UPDATE tidewheel.lane SET gate = 'open'")
    assert len(await claim(store, calm)) == 1


async def test_lanes_that_came_up_meanwhile_are_served(store: Store, calm: Worker) -> None:
    job = await submit(store, "new")
    assert in_order(await claim(store, calm)) == [job]


async def test_a_claim_of_few_after_one_of_many_lanes_takes_no_more_than_it_asked_for(
    store: Store, calm: Worker
) -> None:
    many = [a_job(f"k{n}", priority=level, needs=needing({"gpu": 1})) for n in range(30) for level in Priority]
    await store.submit(many)
    assert len(await claim(store, calm, 200, free={"gpu": 90})) == 90
    await store.submit(some_jobs(2))
    assert len(await claim(store, calm, 1, free={"gpu": 0})) == 1


async def test_with_many_lanes_a_look_back_is_not_forgotten(
    backend: PostgresBackend, store: Store, worker: Worker, connect: Connect
) -> None:
    """Four times a second a peek begins before the marks, for submits that took longer to commit."""
    await store.submit([a_job(f"k{n}") for n in range(30)])
    await finish(store, worker, await claim(store, worker, 100))
    late = await connect(backend.url)
    async with late.transaction():
        (answer,) = await store.submit_within(late, [a_job("k0")], waits=True)
        await backend.clock.advance(SECOND / 2)
        assert await _claim_of_all_lanes(store, worker) == []  # which moves the marks
    assert in_order(await _claim_of_all_lanes(store, worker)) == [answer.job_id]


async def _claim_of_all_lanes(store: Store, worker: Worker) -> list[Run]:
    """Claim after so long that those without jobs are looked at again."""
    assert isinstance(store, PostgresStore)
    for memory in store._memories[worker.id].values():
        memory.active_until = float("-inf")
    return await claim(store, worker, 100)


async def test_what_was_seen_is_told_once_however_much_is_taken(
    backend: PostgresBackend, store: Store, calm: Worker
) -> None:
    await store.submit(some_jobs(20))
    version = (await backend.execute("SELECT lanes FROM tidewheel.meta"))[0][0]
    lane = (await backend.execute("SELECT id FROM tidewheel.lane WHERE kind = 'echo'"))[0][0]
    pairs = [lane] * 3, [0, 1, 2], [BEGINNING.run_at] * 3, [BEGINNING.job_id] * 3, [True] * 3
    rows = await backend.execute(SQL["take_all"], *pairs, 20, calm.id, version)
    assert [row["id"] is not None for row in rows] == [True] * 20
    assert [len(row["run_ats"]) for row in rows if row["now"] is not None] == [20]


async def test_limits_hold(store: Store, calm: Worker) -> None:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(3, "keyed", limit_keys=("l",)))
    assert len(await claim(store, calm)) == 1
    await store.submit(some_jobs(3, "keyed", limit_keys=("l",)))
    plain = await submit(store)
    assert in_order(await claim(store, calm)) == [plain]


async def test_slow_gates_hold(store: Store, calm: Worker) -> None:
    await store.close_gate(GateSpec(mode=GateMode.SLOW, kind="echo", rate=1.0))
    await claim(store, calm)
    await store.submit(some_jobs(3))
    assert len(await claim(store, calm)) == 1


async def test_needs_are_held_against_what_is_free(store: Store, calm: Worker) -> None:
    await claim(store, calm, free={"gpu": 2})
    await store.submit(some_jobs(3, needs=needing({"gpu": 1})))
    assert len(await claim(store, calm, free={"gpu": 2})) == 2
    assert await claim(store, calm, free={"gpu": 0}) == []
    assert len(await claim(store, calm)) == 1  # to whom nothing is said of what is free, it is no bound


async def test_what_failed_before_is_planned(store: Store, calm: Worker, asked: list[str]) -> None:
    run = await start(store, calm)
    await settle(store, calm, run, Cause.FAILED)
    await claim(store, calm)  # which reads the lane of retries
    await settle(store, calm, await start(store, calm), Cause.FAILED)
    asked.clear()
    assert len(await claim(store, calm)) == 1
    assert asked == ["take_all", "peek", "take"]


async def test_who_is_dead_takes_nothing(backend: PostgresBackend, store: Store, calm: Worker) -> None:
    job = await submit(store)
    await backend.clock.advance(2 * HOUR)
    with pytest.raises(LeaseLost):
        await claim(store, calm)
    other = await store.register(a_worker(ttl=HOUR))
    assert in_order(await claim(store, other)) == [job]


async def test_rows_that_somebody_holds_are_passed_over(
    backend: PostgresBackend, store: Store, calm: Worker, connect: Connect
) -> None:
    jobs = [answer.job_id for answer in await store.submit(some_jobs(3))]
    connection = await connect(backend.url)
    async with connection.transaction():
        await connection.execute("SELECT FROM tidewheel.job WHERE id = $1 FOR UPDATE", jobs[0])
        assert in_order(await claim(store, calm)) == jobs[1:]
    await backend.clock.advance(SECOND)
    assert in_order(await claim(store, calm)) == jobs[:1]


async def test_work_that_always_fits_keeps_nobody_from_sweeping(
    backend: PostgresBackend, store: Store, calm: Worker
) -> None:
    """What lies behind the marks is found within two seconds, though each claim gets all that it sees."""
    hidden = await submit(store)
    await backend.execute("UPDATE tidewheel.job SET run_at = run_at - interval '1 hour' WHERE id = $1", hidden)
    found = []
    for _ in range(9):
        await backend.clock.advance(SECOND / 4)
        await submit(store)
        runs = await claim(store, calm)
        await finish(store, calm, runs)
        found += in_order(runs)
    assert hidden in found


async def test_looking_without_finding_writes_nothing(backend: PostgresBackend, store: Store, calm: Worker) -> None:
    """Or every idle worker would wait for the disk again and again."""
    before = await backend.execute("SELECT xmax, ctid FROM tidewheel.worker")
    assert await claim(store, calm) == []
    assert await backend.execute("SELECT xmax, ctid FROM tidewheel.worker") == before
