"""Keys that appear or go in the middle of a submit, room under limits that nobody had, and the time of a census."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg
import pytest

from tests.builders import SECOND, a_job, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import claim, everything, finish, start, state_of, submit
from tests.postgres_store.tools import Connect, soon, until_blocked
from tidewheel.model.job import Submitted
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.postgres.connection import SQL


def _after(patch: pytest.MonkeyPatch, query: str, then: Callable[[], Awaitable[Any]]) -> None:
    """Let something happen once, right after the next run of a statement."""
    fetch = asyncpg.Connection.fetch
    todo = [then]

    async def fetch_and_then(self: Any, text: str, *values: Any, **options: Any) -> Any:
        rows = await fetch(self, text, *values, **options)
        if text == SQL[query] and todo:
            await todo.pop()()
        return rows

    patch.setattr(asyncpg.Connection, "fetch", fetch_and_then)


@pytest.mark.parametrize("query", ["find_keys", "add_keys"])
async def test_a_key_that_is_retired_during_a_submit_does_no_harm(
    backend: PostgresBackend, store: Store, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    first = await submit(store, idempotency_key="k")
    _after(monkeypatch, query, lambda: backend.execute("DELETE FROM tidewheel.idempotency"))
    assert await soon(store.submit([a_job(idempotency_key="k")])) == [Submitted(first, created=False)]


async def test_a_key_that_is_taken_during_a_submit_is_seen(
    backend: PostgresBackend, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await submit(store)  # so that the lane is there
    other = await backend.open()
    taken: list[Submitted] = []

    async def take() -> None:
        taken.extend(await other.submit([a_job(idempotency_key="k")]))

    _after(monkeypatch, "find_keys", take)
    (answer,) = await soon(store.submit([a_job(idempotency_key="k")]))
    assert [Submitted(answer.job_id, created=True)] == taken
    assert not answer.created
    assert len(await everything(store)) == 2


async def test_a_census_is_as_old_as_the_beginning_of_its_count(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    began = backend.clock.now()
    holder, watcher = await connect(backend.url), await connect(backend.url)
    await holder.execute(
        "CREATE FUNCTION tidewheel.hold() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN PERFORM pg_advisory_xact_lock(4711); RETURN NULL; END $$; "
        "CREATE TRIGGER hold BEFORE INSERT ON tidewheel.census FOR EACH STATEMENT EXECUTE FUNCTION tidewheel.hold()"
    )
    await holder.execute("BEGIN; SELECT pg_advisory_xact_lock(4711)")
    counting = asyncio.create_task(store.take_census())
    await until_blocked(watcher)
    await backend.clock.advance(SECOND)
    await holder.execute("COMMIT")
    await soon(counting)
    assert (await store.counts()).as_of == began


async def test_a_limited_job_that_ends_passes_nothing_on(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    ids = [answer.job_id for answer in await store.submit(some_jobs(3, limit_keys=("l",)))]
    assert await claim(store, worker) == []
    await finish(store, worker, [run])
    await store.cancel(ids[1])
    states = [await state_of(store, job_id) for job_id in ids]
    assert states == [State.QUEUED, State.CANCELLED, State.LIMITED]
