"""The writer: groups share a commit, a piece that fails hurts only itself, and a failed commit is heard by all."""

import asyncio
from collections.abc import Coroutine
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.builders import a_job, some_jobs
from tests.contract.steps import everything
from tests.sqlite.conftest import Grip
from tidewheel.errors import KeyReused, NotFound, StoreFull, Unavailable
from tidewheel.model.job import Submitted
from tidewheel.store.sqlite import SqliteStore, check, open_store
from tidewheel.store.sqlite.writer import CHECKPOINT_PAGES
from tidewheel.testing import FakeClock


async def together(grip: Grip, *calls: Coroutine[Any, Any, Any]) -> list[Any]:
    """Ask for all this in one group, and return the answers and errors."""
    async with grip:
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, in which they are asked for
    return await asyncio.gather(*tasks, return_exceptions=True)


async def test_submits_at_the_same_time_share_commits(store: SqliteStore) -> None:
    before = store.commits
    answers = await asyncio.gather(*(store.submit([a_job()]) for _ in range(150)))
    assert len({answer[0].job_id for answer in answers}) == 150
    assert store.commits - before <= 10
    assert len(await everything(store)) == 150


async def test_what_waits_together_is_one_commit(store: SqliteStore) -> None:
    before = store.commits
    answers = await together(Grip(store), *(store.submit([a_job()]) for _ in range(100)))
    assert all(isinstance(answer, list) for answer in answers)
    assert store.commits - before == 1


async def test_a_piece_that_fails_hurts_only_itself(store: SqliteStore) -> None:
    before = store.commits
    first, reused, unknown, last = await together(
        Grip(store),
        store.submit([a_job(idempotency_key="k")]),
        store.submit([a_job("new.lane"), a_job(idempotency_key="k", args={"n": 2})]),
        store.open_gate(uuid4()),
        store.submit([a_job("new.lane")]),
    )
    assert isinstance(reused, KeyReused)
    assert isinstance(unknown, NotFound)
    assert store.commits - before == 1
    stored = {job.id: job.kind for job in await everything(store)}
    assert stored == {first[0].job_id: "echo", last[0].job_id: "new.lane"}


async def test_a_failed_commit_is_heard_by_the_whole_group_and_stores_nothing(store: SqliteStore) -> None:
    calls = [store.submit([a_job(f"kind-{n}", idempotency_key=str(n))]) for n in range(5)]
    calls.append(store.open_gate(uuid4()))  # type: ignore[arg-type]
    grip = Grip(store)
    grip.at_the_end = lambda session: session.connection.set_commit_hook(lambda: True)
    *submits, unknown = await together(grip, *calls)
    assert [type(answer) for answer in submits] == [Unavailable] * 5
    assert isinstance(unknown, NotFound), "its own fault stays its own"
    store._connection.set_commit_hook(None)
    assert await everything(store) == []
    answers = await store.submit([a_job(f"kind-{n}", idempotency_key=str(n)) for n in range(5)])
    assert all(answer.created for answer in answers)
    assert len(await everything(store)) == 5


async def test_a_full_disk_leaves_all_or_nothing_and_work_goes_on_after_it(store: SqliteStore, path: Path) -> None:
    kept = await store.submit(some_jobs(10))
    pages = store._connection.pragma("page_count")
    store._connection.pragma("max_page_count", pages + 20)
    with pytest.raises(StoreFull):
        await store.submit(some_jobs(2_000, args={"text": "x" * 500}))
    assert [job.id for job in await everything(store)] == [answer.job_id for answer in reversed(kept)]
    store._connection.pragma("max_page_count", 1_000_000)
    assert len(await store.submit(some_jobs(2_000))) == 2_000
    await store.close()
    assert check(path) == 1


async def test_a_full_disk_is_heard_by_those_who_did_not_fit(store: SqliteStore) -> None:
    pages = store._connection.pragma("page_count")
    store._connection.pragma("max_page_count", pages + 20)
    small, large, after = await together(
        Grip(store),
        store.submit([a_job()]),
        store.submit(some_jobs(2_000, args={"text": "x" * 500})),
        store.submit([a_job()]),
    )
    assert isinstance(large, StoreFull)
    stored = {job.id for job in await everything(store)}
    told = {answer[0].job_id for answer in (small, after) if isinstance(answer, list)}
    assert stored == told, "who heard of success is stored, and nobody else"


async def test_a_caller_who_went_away_disturbs_nobody(store: SqliteStore) -> None:
    async with Grip(store):
        gone = asyncio.ensure_future(store.submit([a_job("gone")]))
        stays = asyncio.ensure_future(store.submit([a_job("stays")]))
        await asyncio.sleep(0)  # noqa: TID251 - as above
        gone.cancel()
    assert isinstance((await stays)[0], Submitted)
    assert [job.kind for job in await everything(store)] == ["stays"]


async def test_closing_finishes_what_was_asked_for_and_refuses_more(path: Path, clock: FakeClock) -> None:
    store = await open_store(path, clock)
    submits = [asyncio.ensure_future(store.submit([a_job()])) for _ in range(20)]
    await asyncio.sleep(0)  # noqa: TID251 - as above
    await store.close()
    await store.close()
    assert len(await asyncio.gather(*submits)) == 20
    for call in (store.submit([a_job()]), store.workers()):
        with pytest.raises(Unavailable, match="closed"):
            await call
    again = await open_store(path, clock)
    assert len(await everything(again)) == 20
    await again.close()


async def test_the_log_stays_bounded(store: SqliteStore, path: Path) -> None:
    for _ in range(12):
        await store.submit(some_jobs(2_000, args={"text": "x" * 400}))
    log = path.with_name(path.name + "-wal")
    assert log.stat().st_size < 3 * CHECKPOINT_PAGES * 4096


async def test_after_a_clean_end_only_the_file_is_left(path: Path, clock: FakeClock) -> None:
    store = await open_store(path, clock)
    await store.submit(some_jobs(3))
    await store.close()
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]
