"""A page of jobs reads about as many rows as it shows, however many a tenant has and on how many days they ended."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.builders import DAY, HOUR, MINUTE, a_worker, some_jobs
from tests.contract.steps import claim, finish
from tests.postgres_store.tools import Connect, opened
from tidewheel.clock import SystemClock
from tidewheel.model.states import State
from tidewheel.model.statistics import StatFilter
from tidewheel.store.base import JobFilter
from tidewheel.store.postgres import PostgresStore

PAGE = 50
MOST_READ = 5 * PAGE
"""Of jobs, lanes and tenants together."""
MORE_HISTORY = """
    INSERT INTO tidewheel.job_history (
           id, lane, tenant, token, failures, losses, priority, state, run_at, due_at, args, created_at, updated_at,
           finished_at, cause, ran)
    SELECT uuidv7(-n * interval '20 seconds'), lane, tenant, token, failures, losses, priority, state, run_at, due_at,
           args, created_at, updated_at, now() - n * interval '20 seconds', cause, ran
      FROM (SELECT * FROM tidewheel.job_history WHERE state = 'succeeded' AND lane > 0 LIMIT 1) AS one,
           generate_series(1, 20000) AS n
"""


async def _rows_read(store: PostgresStore) -> int:
    await store._db.read(lambda connection: connection.fetchval("SELECT pg_stat_force_next_flush()"))
    number: int = await store._db.read(
        lambda connection: connection.fetchval(
            "SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables"
        )
    )
    return number


@pytest.mark.slow
@pytest.mark.parametrize(
    "where",
    [
        JobFilter(tenant="default"),
        JobFilter(tenant="default", states=frozenset({State.SUCCEEDED})),
        JobFilter(tenant="default", states=frozenset({State.QUEUED}), kind="test.job"),
        JobFilter(tenant="default", states=frozenset({State.SUCCEEDED}), kind="test.job"),
        JobFilter(tenant="default", states=frozenset({State.RUNNING})),
        JobFilter(),
    ],
)
async def test_a_page_reads_about_as_much_as_it_shows(
    postgres_database: str, connect: Connect, where: JobFilter
) -> None:
    async with opened(postgres_database, pool_size=1) as store:
        worker = await store.register(a_worker())
        await store.submit(some_jobs(1, kind="test.job"))
        await finish(store, worker, await claim(store, worker, 1))
        await store.submit(some_jobs(PAGE, kind="test.job"))
        await claim(store, worker, PAGE)
        await store.submit(some_jobs(2_000, kind="test.job", delay=HOUR))
        connection = await connect(postgres_database)
        await connection.fetchval("SELECT tidewheel.prepare_days((now() AT TIME ZONE 'UTC')::date - 7, 8)")
        await connection.execute(MORE_HISTORY)
        await connection.execute("ANALYZE tidewheel.job, tidewheel.job_history")
        await store.find(where, limit=PAGE)
        before = await _rows_read(store)

        page = await store.find(where, limit=PAGE)

        assert len(page.jobs) == PAGE
        assert await _rows_read(store) - before < MOST_READ


SCAN = 500
"""How many jobs of each of the two tables are looked at: with their lanes, and once more to tell where to go on."""
NOWHERE: tuple[dict[str, Any], ...] = (
    {"label": ("rare", "yes")},
    {"error": "needle"},
    {"text": "needle"},
    {"kind": "rare"},
    {"queue": "rare"},
    {"states": frozenset({State.SUCCEEDED}), "label": ("rare", "yes")},
    {"states": frozenset({State.DEAD, State.SUCCEEDED}), "kind": "rare"},
    {"states": frozenset({State.DEAD}), "label": ("rare", "yes")},
    {"label": ("rare", "yes"), "kind": "test.job", "created_from": SystemClock().now() - 6 * DAY},
    {"created_from": datetime(2001, 1, 1, tzinfo=UTC), "created_before": datetime(2001, 1, 2, tzinfo=UTC)},
)


@pytest.mark.slow
async def test_a_page_that_finds_nothing_among_many_reads_a_bounded_number_and_leads_on(
    postgres_database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SCAN", SCAN), ("FIRST_LOOK", SCAN // 10)):
        monkeypatch.setattr(f"tidewheel.store.postgres.searching.{name}", value)
    async with opened(postgres_database, pool_size=1) as store:
        worker = await store.register(a_worker())
        await store.submit(some_jobs(1, kind="test.job"))
        await finish(store, worker, await claim(store, worker, 1))
        await store.submit(some_jobs(1, kind="rare", queue="rare"))
        await store.submit(some_jobs(2_000, kind="test.job", labels={"rare": "no"}, delay=HOUR))
        connection = await connect(postgres_database)
        await connection.fetchval("SELECT tidewheel.prepare_days((now() AT TIME ZONE 'UTC')::date - 7, 8)")
        await connection.execute(MORE_HISTORY)
        await connection.execute("ANALYZE tidewheel.job, tidewheel.job_history")
        for case in NOWHERE:
            for tenant in (None, "default"):
                where = JobFilter(tenant=tenant, **case)
                await store.find(where, limit=PAGE)
                before = await _rows_read(store)
                page = await store.find(where, limit=PAGE)
                read = await _rows_read(store) - before
                assert (page.jobs, read < 8 * SCAN) == ([], True), (where, read)


THIRTY_DAYS = """
    INSERT INTO tidewheel.statistic (hour, at, lane, state, jobs, delays, runs)
    SELECT $1::interval = '1 hour', date_trunc('hour', now(), 'UTC') - n * $1::interval, lane.id, 'succeeded', 7, '{}',
           '{}'
      FROM generate_series(0, $2::integer - 1) AS n, tidewheel.lane
"""


async def test_a_chart_of_thirty_days_reads_hours_and_neither_minutes_nor_jobs(
    postgres_database: str, connect: Connect
) -> None:
    async with opened(postgres_database, pool_size=1) as store:
        for number in range(5):
            await store.submit(some_jobs(20, kind=f"kind-{number}"))
        connection = await connect(postgres_database)
        await connection.execute(THIRTY_DAYS, MINUTE, 2 * 24 * 60)
        await connection.execute(THIRTY_DAYS, HOUR, 30 * 24)
        await connection.execute("ANALYZE tidewheel.statistic")
        now = SystemClock().now()
        where = StatFilter(since=now - 31 * DAY, before=now + HOUR, step=HOUR)
        await store.statistics(where)
        before = await _rows_read(store)

        points = await store.statistics(where)

        assert sum(point.jobs for point in points) == 7 * 5 * 30 * 24
        assert await _rows_read(store) - before < 5 * 30 * 24 + 500
