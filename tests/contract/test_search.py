"""Reading: one list over active and finished jobs, without gaps or doubles, and tenants apart from one another."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.builders import HOUR, SECOND, a_job, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, finish, settle, start, submit
from tidewheel.errors import Invalid, NotFound, Unavailable
from tidewheel.model.job import Job, Options
from tidewheel.model.outcome import Failure
from tidewheel.model.priority import Priority
from tidewheel.model.states import ACTIVE, FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.pages import Page
from tidewheel.store.postgres import searching as postgres_searching
from tidewheel.store.sqlite import searching as sqlite_searching


async def test_an_unknown_job_is_not_found(store: Store) -> None:
    for ask in (store.get, store.attempts):
        with pytest.raises(NotFound):
            await ask(uuid4())


async def test_a_list_is_newest_first_over_active_and_finished(store: Store, worker: Worker) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(30))]
    runs = await claim(store, worker, 30)
    await finish(store, worker, runs[::2])
    await finish(store, worker, runs[1::4], Cause.GAVE_UP)
    jobs = await everything(store, page=7)
    assert [job.id for job in jobs] == ids[::-1]
    assert {job.state for job in jobs} == {State.SUCCEEDED, State.DEAD, State.RUNNING}


async def test_a_listed_job_is_the_same_as_one_asked_for(store: Store, worker: Worker) -> None:
    run = await start(store, worker, args={"a": 1}, labels={"x": "y"})
    await settle(store, worker, run, Cause.GAVE_UP)
    await store.submit([a_job(delay=HOUR, limit_keys=("l",), unique_key="u"), a_job("other")])
    for job in await everything(store):
        assert await store.get(job.id) == job


@pytest.mark.parametrize("page", [1, 3, 10, 50])
async def test_a_walk_has_no_gaps_and_no_doubles(store: Store, worker: Worker, page: int) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(20))]
    runs = await claim(store, worker, 20)
    await finish(store, worker, [runs[i] for i in (0, 1, 2, 7, 11, 18, 19)])
    assert [job.id for job in await everything(store, page=page)] == ids[::-1]


async def test_a_page_of_large_jobs_is_short_and_leads_on(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for searching in (postgres_searching, sqlite_searching):
        monkeypatch.setattr(searching, "PAGE_BYTES", 8_000)
    ids = [one.job_id for one in await store.submit(some_jobs(60, args={"text": "x" * 1_000}))]
    runs = await claim(store, worker, 50)
    await finish(store, worker, runs[5:20])
    await finish(store, worker, runs[20:40], Cause.GAVE_UP)
    for run in runs[40:]:
        await store.cancel(run.job_id)
    await finish(store, worker, runs[40:], Cause.STOPPED)
    newest = [await store.get(job_id) for job_id in ids[::-1]]
    some_states = ({State.QUEUED}, {State.DEAD}, {State.DEAD, State.CANCELLED}, {State.RUNNING}, {State.SUCCEEDED})
    for states in (None, *map(frozenset, some_states)):
        wanted = [job for job in newest if states is None or job.state in states]
        for tenant in (None, wanted[0].tenant):
            where = JobFilter(states=states, tenant=tenant)
            assert await walk(partial(store.find, where, limit=60)) == wanted
    dead = await walk(partial(store.dead_letters, limit=60))
    assert [job.id for job in dead] == [job.id for job in newest if job.state is State.DEAD]


async def walk(ask: Callable[..., Awaitable[Page]]) -> list[Job]:
    """Go through pages none of which is long."""
    seen, after = list[Job](), None
    while True:
        page = await ask(after=after)
        assert len(page.jobs) < 20
        seen += page.jobs
        if (after := page.next) is None:
            return seen


async def test_a_walk_is_not_disturbed_by_jobs_that_end_meanwhile(store: Store, worker: Worker) -> None:
    """Each job moves from one table to the other, yet is seen once."""
    ids = [answer.job_id for answer in await store.submit(some_jobs(20))]
    runs = await claim(store, worker, 20)
    seen: list[UUID] = []
    after: UUID | None = None
    while True:
        page = await store.find(JobFilter(), limit=3, after=after)
        seen += [job.id for job in page.jobs]
        await finish(store, worker, [runs.pop(), runs.pop(0)] if runs else [])
        await submit(store)
        if page.next is None:
            break
        after = page.next
    assert seen == ids[::-1]


@pytest.mark.native("jobs of schedules are made by the server")
async def test_every_filter_holds(backend: Backend, store: Store, worker: Worker) -> None:
    schedule = uuid4()
    began = backend.clock.now()
    first = await submit(store, "a", queue="q1", tenant="t1", labels={"x": "1", "y": "2"}, schedule_id=schedule)
    await backend.clock.advance(SECOND)
    second = await submit(store, "b", queue="q1", tenant="t2", labels={"x": "2"})
    await backend.clock.advance(SECOND)
    third = await submit(store, "a", queue="q2", tenant="t2", delay=HOUR)
    cases = [
        (JobFilter(), {first, second, third}),
        (JobFilter(tenant="t2"), {second, third}),
        (JobFilter(tenant="nobody"), set()),
        (JobFilter(kind="a"), {first, third}),
        (JobFilter(kind="none"), set()),
        (JobFilter(queue="q1"), {first, second}),
        (JobFilter(kind="a", queue="q1"), {first}),
        (JobFilter(kind="a", queue="q1", tenant="t2"), set()),
        (JobFilter(schedule_id=schedule), {first}),
        (JobFilter(schedule_id=uuid4()), set()),
        (JobFilter(label=("x", "1")), {first}),
        (JobFilter(label=("x", "2")), {second}),
        (JobFilter(label=("z", "1")), set()),
        (JobFilter(created_from=began + SECOND), {second, third}),
        (JobFilter(created_before=began + SECOND), {first}),
        (JobFilter(created_from=began + SECOND, created_before=began + 2 * SECOND), {second}),
        (JobFilter(states=frozenset()), set()),
    ]

    async def check() -> None:
        for where, expected in cases:
            found = await everything(store, where, page=1)
            assert [job.id for job in found] == sorted(expected, reverse=True), where

    await check()
    await finish(store, worker, await claim(store, worker, queues=("q1",)))
    await check()
    await store.cancel(third)
    await check()


async def test_states_are_filtered_over_both_halves(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(6))
    runs = await claim(store, worker)
    await finish(store, worker, runs[:1])
    await finish(store, worker, runs[1:3], Cause.GAVE_UP)
    await finish(store, worker, runs[3:4], Cause.STOPPED)
    await store.submit(some_jobs(3, limit_keys=("l",)))
    await claim(store, worker)
    await store.submit(some_jobs(4, delay=HOUR))
    sizes = {
        State.SUCCEEDED: 1,
        State.DEAD: 2,
        State.CANCELLED: 1,
        State.RUNNING: 3,
        State.LIMITED: 2,
        State.QUEUED: 4,
        State.EXPIRED: 0,
    }
    for state, size in sizes.items():
        found = await everything(store, JobFilter(states=frozenset({state})), page=2)
        assert [job.state for job in found] == [state] * size
    both = await everything(store, JobFilter(states=frozenset({State.DEAD, State.LIMITED})))
    assert len(both) == 4
    assert len(await everything(store, JobFilter(states=frozenset(FINAL)))) == 4
    assert len(await everything(store, JobFilter(states=frozenset(ACTIVE)))) == 9


async def test_rare_labels_are_found_behind_many_others(store: Store) -> None:
    """A page may come back short or empty while it leads on, but the walk finds everything."""
    rare = await submit(store, labels={"rare": "yes"})
    await store.submit(some_jobs(3_000, labels={"rare": "no"}))
    found = await everything(store, JobFilter(label=("rare", "yes")), page=10)
    assert [job.id for job in found] == [rare]


async def test_labels_are_compared_whole(store: Store) -> None:
    await store.submit([a_job(labels={"a": "1%"}), a_job(labels={"a": "11"}), a_job(labels={"A": "1"})])
    assert await everything(store, JobFilter(label=("a", "1"))) == []
    assert len(await everything(store, JobFilter(label=("a", "1%")))) == 1


async def test_a_tenant_sees_nothing_of_the_others(store: Store, worker: Worker) -> None:
    waiting = await submit(store, tenant="theirs", delay=HOUR)
    run = await start(store, worker, tenant="theirs")
    done = await start(store, worker, tenant="theirs")
    await finish(store, worker, [done])
    for job_id in (waiting, run.job_id, done.job_id):
        for tenant in ("mine", "nobody"):
            with pytest.raises(NotFound):
                await store.get(job_id, tenant=tenant)
            with pytest.raises(NotFound):
                await store.attempts(job_id, tenant=tenant)
        assert (await store.get(job_id, tenant="theirs")).id == job_id
        await store.attempts(job_id, tenant="theirs")
    await submit(store, tenant="mine")
    assert {job.tenant for job in await everything(store, JobFilter(tenant="mine"))} == {"mine"}


async def test_a_running_job_has_no_attempt_yet(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    assert await store.attempts(run.job_id) == []


async def test_a_closed_store_answers_no_more(backend: Backend, store: Store) -> None:
    other = await backend.open()
    await store.close()
    with pytest.raises(Unavailable):
        await store.get(uuid4())
    with pytest.raises(Unavailable):
        await store.submit([a_job()])
    assert await everything(other) == []


async def test_reading_does_not_wait_for_writing(store: Store) -> None:
    await asyncio.gather(
        *(store.submit(some_jobs(100)) for _ in range(5)), *(store.find(JobFilter()) for _ in range(20))
    )
    assert len(await everything(store)) == 500


@pytest.mark.parametrize("tenant", [None, "default"])
@pytest.mark.parametrize("page", [1, 2, 5])
async def test_a_walk_that_looks_at_little_at_a_time_passes_over_nothing(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch, tenant: str | None, page: int
) -> None:
    """The old waiting jobs fill a page while the look at the finished ones has not come to the cancelled job."""
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.searching.SCAN", 10)
    ids = [await submit(store, delay=HOUR) for _ in range(4)]
    ids.append(await submit(store, delay=HOUR))
    await store.cancel(ids[-1])
    await store.submit(some_jobs(12))
    await finish(store, worker, await claim(store, worker, 12))
    where = JobFilter(tenant=tenant, states=frozenset({State.QUEUED, State.CANCELLED}))
    assert [job.id for job in await everything(store, where, page=page)] == ids[::-1]
    assert len(await everything(store, JobFilter(tenant=tenant), page=page)) == 17
    assert len(await everything(store, JobFilter(tenant=tenant, text="ech"), page=page)) == 17
    assert await everything(store, JobFilter(tenant=tenant, text="other"), page=page) == []


async def test_a_kind_or_queue_that_no_job_ever_had_is_known_at_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.searching.SCAN", 10)
    await store.submit([*some_jobs(30, "mail", tenant="one"), a_job("report", tenant="two")])
    for where in (
        JobFilter(kind="male"),
        JobFilter(queue="fast"),
        JobFilter(kind="report", tenant="one"),
        JobFilter(tenant="nobody"),
    ):
        assert await store.find(where) == Page([]), where
    page = await store.find(JobFilter(kind="report"))
    assert page.next is not None or len(page.jobs) == 1


async def test_few_jobs_with_a_word_are_found_behind_many_others_that_failed(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.searching.SCAN", 10)
    needle = await submit(store, "needle")
    await store.submit(some_jobs(30))
    await finish(store, worker, await claim(store, worker, 31), Cause.GAVE_UP)
    failed = frozenset({State.DEAD, State.EXPIRED})

    page = await store.find(JobFilter(states=failed, text="needle"))
    assert page.jobs == []
    assert page.next is not None
    assert [job.id for job in await everything(store, JobFilter(states=failed, text="needle"))] == [needle]
    assert len(await everything(store, JobFilter(states=failed), page=7)) == 31


async def test_who_looks_for_finished_jobs_need_not_walk_over_waiting_ones_nor_the_other_way_round(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.searching.SCAN", 10)
    waiting = [await submit(store, delay=HOUR)]
    await store.submit(some_jobs(30))
    await finish(store, worker, await claim(store, worker, 30))
    waiting += [await submit(store, delay=HOUR) for _ in range(12)]

    page = await store.find(JobFilter(states=frozenset({State.SUCCEEDED})), limit=10)
    assert len(page.jobs) == 10
    assert [job.id for job in await everything(store, JobFilter(states=frozenset(ACTIVE)), page=10)] == waiting[::-1]
    page = await store.find(JobFilter(states=frozenset(ACTIVE)), limit=3, after=waiting[1])
    assert [job.id for job in page.jobs] == waiting[:1]


async def test_jobs_are_found_by_a_part_of_the_message_of_their_error(store: Store, worker: Worker) -> None:
    await store.submit(
        [*some_jobs(6, "a", labels={"zone": "x"}), *some_jobs(6, "b", tenant="t"), a_job("a", delay=HOUR)]
    )
    runs = await claim(store, worker, 12)
    for number, run in enumerate(runs):
        error = Failure(reason="error", message=f'100% of disk {number % 3} "full"')
        await settle(store, worker, run, Cause.RETURNED if number % 2 else Cause.GAVE_UP, error=error)
    cancelled = await submit(store, "a")
    await store.cancel(cancelled, reason="disk 0 is full")

    async def found(text: str, **more: Any) -> list[UUID]:
        return [job.id for job in await everything(store, JobFilter(error=text, **more), page=2)]

    dead = [run for number, run in enumerate(runs) if number % 2 == 0]
    assert set(await found('disk 1 "full"')) == {run.job_id for run in (runs[4], runs[10])}
    assert set(await found("100% of")) == {run.job_id for run in dead}
    assert set(await found("disk 0")) == {runs[0].job_id, runs[6].job_id, cancelled}
    assert await found("disk 0", states=frozenset({State.CANCELLED})) == [cancelled]
    assert await found("disk", states=frozenset({State.SUCCEEDED, State.QUEUED})) == []
    assert set(await found("disk", tenant="t")) == {run.job_id for run in dead if run.kind == "b"}
    assert set(await found("100% of", kind="a", label=("zone", "x"))) == {run.job_id for run in dead if run.kind == "a"}
    assert await found("DISK") == await found("_") == await found("disk", tenant="nobody") == []


async def found_by(store: Store, text: str, **fields: Any) -> set[UUID]:
    return {job.id for job in await everything(store, JobFilter(text=text, **fields))}


async def test_jobs_are_found_by_words_in_what_people_know_them_by(store: Store, worker: Worker) -> None:
    run = await start(store, worker, "thumbnail")
    options = Options(name="Monthly Report", description="for the board, 100% of it")
    report = await submit(store, "report.build", options=options, labels={"team": "blue", "city": "Köln"})
    other = await submit(store, "report.send", labels={"team": "red"}, queue="elsewhere")
    assert await found_by(store, "thumb") == {run.job_id}
    error = Failure(reason="error", message="no such file: Cat_1.png", detail="board")
    await settle(store, worker, run, Cause.GAVE_UP, error=error)
    for text, expected in {
        "report": {report, other},
        "REPORT.b": {report},
        "monthly board": {report},
        "report board": {report},
        '"monthly report"': {report},
        '"report monthly"': set(),
        "team=blue": {report},
        "team=": {report, other},
        "Köln": {report},
        "100%": {report},
        "1%0": set(),
        "cat_1": {run.job_id},
        "cat?1": set(),
        "cat.1": set(),
        '"such file: cat"': {run.job_id},
        "nothing": set(),
        str(other): {other},
        str(run.job_id).upper(): {run.job_id},
        str(uuid4()): set(),
    }.items():
        assert await found_by(store, text) == expected, text
    assert await found_by(store, "report", queue="elsewhere") == {other}
    assert await found_by(store, "cat_1", states=frozenset({State.DEAD})) == {run.job_id}
    assert await found_by(store, "cat_1", states=frozenset({State.RUNNING})) == set()
    assert await found_by(store, str(run.job_id), states=frozenset({State.DEAD})) == {run.job_id}
    assert await found_by(store, "report", tenant="nobody") == set()
    assert await found_by(store, "report", tenant="default") == {report, other}


@pytest.mark.parametrize("text", ["", "  ", "x" * 401, " ".join(map(str, range(21)))])
async def test_words_that_cannot_be_read_are_refused(store: Store, text: str) -> None:
    with pytest.raises(Invalid) as refused:
        await store.find(JobFilter(text=text))
    assert refused.value.field == "text"


async def test_fresh_numbers_need_no_census(
    backend: Backend, store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    await start(store, worker)
    await store.submit([*some_jobs(3, "default"), a_job("other", tenant="acme", priority=Priority.HIGH)])
    assert (await store.counts()).rows == []

    counted = await store.counts(fresh=True)

    assert counted.as_of == backend.clock.now()
    told = {(row.tenant, row.state, row.priority): row.jobs for row in counted.rows}
    assert told == {
        ("acme", State.QUEUED, Priority.HIGH): 1,
        ("default", State.QUEUED, Priority.MEDIUM): 3,
        ("default", State.RUNNING, Priority.MEDIUM): 1,
    }
    assert sum(row.jobs for row in (await store.counts(tenant="acme", fresh=True)).rows) == 1
    assert (await store.counts(tenant="nobody", fresh=True)).rows == []
    for dialect in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tidewheel.store.{dialect}.searching.MOST_FRESH", 4)
    assert (await store.counts(fresh=True)).rows == []
    assert (await store.counts(tenant="acme", fresh=True)).rows != []
    await store.take_census()
    assert {row.jobs for row in (await store.counts(fresh=True)).rows} == {1, 3}
