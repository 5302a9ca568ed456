"""Of kinds that were noted in transactions of others, or of which nobody knows the end, nothing is remembered."""

import asyncio

import pytest

from tests.builders import MINUTE, a_job, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import submit
from tests.postgres_store.tools import Connect
from tidewheel.errors import OutcomeUnknown
from tidewheel.store.base import JobFilter, Store

KIND = "needle"
CUT_OFF = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


async def _is_found_behind_others(backend: PostgresBackend, store: Store) -> bool:
    job_id = await submit(store, KIND)
    for _ in range(3):
        await backend.clock.advance(MINUTE)
        await (await backend.open()).submit(some_jobs(30))
    return [job.id for job in (await store.find(JobFilter(kind=KIND))).jobs] == [job_id]


@pytest.fixture(autouse=True)
def _pages_look_at_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidewheel.store.postgres.searching.SCAN", 10)


async def test_what_a_caller_rolls_back_hides_no_job_of_the_same_second(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    await store.make_lanes([a_job(KIND)])
    theirs = await connect(backend.url)
    transaction = theirs.transaction()
    await transaction.start()
    await store.submit_within(theirs, [a_job(KIND)], waits=True)
    await transaction.rollback()
    assert await _is_found_behind_others(backend, store)


async def test_a_submit_whose_end_is_unknown_hides_no_job_of_the_same_second(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    """It waits in the middle of its statement when the connection is cut, and is undone."""
    await store.make_lanes([a_job(KIND)])
    blocker = await connect(backend.url)
    async with blocker.transaction():
        await blocker.execute("LOCK TABLE tidewheel.job IN SHARE MODE")
        waiting = asyncio.create_task(store.submit([a_job(KIND)]))
        async with asyncio.timeout(20):
            while not await backend.execute(CUT_OFF):
                assert not waiting.done()
        with pytest.raises(OutcomeUnknown):
            await waiting
    assert await _is_found_behind_others(backend, store)


async def test_only_the_first_submit_of_a_kind_in_a_second_notes_it(backend: PostgresBackend, store: Store) -> None:
    """Where what it noted is taken away, the others do not bring it back."""
    await store.make_lanes([a_job(KIND)])
    await submit(store, KIND)
    await backend.execute("DELETE FROM tidewheel.phrase_moment WHERE phrase = tidewheel.phrase_id(1, $1)", KIND)
    before = await backend.count("phrase_moment")
    for count in (1, 5):
        await store.submit(some_jobs(count, kind=KIND))
    assert await backend.count("phrase_moment") == before
    await backend.clock.advance(MINUTE)
    await submit(await backend.open(), KIND)
    assert await backend.count("phrase_moment") == before + 1
