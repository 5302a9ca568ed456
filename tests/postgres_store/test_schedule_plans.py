"""Statements about schedules and occurrences keep to their indexes, with very many of both, planned before or after."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.postgres_store.plans import MODES, Mode, Plan, Prepared
from tests.postgres_store.tools import Connect, Raw

pytestmark = pytest.mark.slow

MINUTE = timedelta(minutes=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)
SCHEDULES, EACH = 2_000, 25
UNDECIDED = SCHEDULES // 40
"""Occurrences of a shard that are still to be decided."""
FILL = """
    INSERT INTO tidewheel.schedule (id, tenant, name, shard, definition, next_fire_at, created_at, updated_at)
    SELECT uuidv7(), $1, 'schedule-' || n, n % 8, '{}', now() + n % 3600 * interval '1 second', now(), now()
      FROM generate_series(1, $2) AS n
"""
FILL_OCCURRENCES = """
    INSERT INTO tidewheel.occurrence (schedule_id, fire_at, source, outcome, job_id, undecided, recorded_at)
    SELECT id, now() - n * interval '1 minute', 'planned', 'made', uuidv7(),
           CASE WHEN n = 1 AND number % 40 < 8 THEN shard END, now() - n * interval '2 days'
      FROM (SELECT id, shard, row_number() OVER (ORDER BY id) AS number FROM tidewheel.schedule) AS schedule,
           generate_series(1, $1::integer) AS n
"""

Look = tuple[str, Sequence[Any], Mapping[str, set[str]], int]
"""A statement, its values, the only ways to each table, and how many occurrences it may look at."""


def looks(schedule: UUID) -> list[Look]:
    return [
        ("schedules_near", [3, MINUTE, 200], {"schedule": {"schedule_next"}}, 0),
        (
            "next_instants",
            [3, MINUTE],
            {"schedule": {"schedule_next"}, "occurrence": {"occurrence_undecided"}},
            UNDECIDED,
        ),
        ("undecided", [3, 20], {"occurrence": {"occurrence_undecided"}}, UNDECIDED),
        ("list_occurrences", [schedule, None, 10], {"occurrence": {"occurrence_pkey"}}, 10),
        ("coming_schedules", ["t", 8], {"schedule": {"schedule_coming"}}, 0),
        (
            "past_occurrences",
            [[schedule], 10, None],
            {"schedule": {"schedule_pkey"}, "occurrence": {"occurrence_pkey"}, "job": {"job_pkey"}},
            10,
        ),
        ("lock_schedules", [[schedule]], {"schedule": {"schedule_pkey"}}, 0),
        ("take_back", [schedule, []], {"occurrence": {"occurrence_pkey"}}, 0),
        ("retire_occurrences", [timedelta(days=30), 100], {"occurrence": {"occurrence_age", "Tid Scan"}}, 200),
        ("advance_schedules", [[schedule], [1], [NOW], [NOW], [1]], {"schedule": {"schedule_pkey"}}, 0),
        ("still_undecided", [[schedule], [NOW]], {"occurrence": {"occurrence_pkey"}}, 1),
        ("note_decided", [[schedule], [NOW], [None]], {"occurrence": {"occurrence_pkey"}}, 1),
        ("recorded_before", [schedule, [NOW]], {"occurrence": {"occurrence_pkey"}}, 1),
    ]


async def _explain(prepared: Mapping[Mode, Prepared], schedule: UUID) -> dict[tuple[Mode, str], tuple[Plan, Look]]:
    return {
        (mode, look[0]): (await session.explain(look[0], look[1]), look)
        for mode, session in prepared.items()
        for look in looks(schedule)
    }


async def _prepare(url: str, connect: Connect) -> dict[Mode, Prepared]:
    names = [look[0] for look in looks(UUID(int=0))]
    return {mode: await Prepared.all(await connect(url), names, mode) for mode in MODES}


async def _fill(connection: Raw) -> UUID:
    await connection.execute("INSERT INTO tidewheel.tenant (name) VALUES ('many')")
    tenant = await connection.fetchval("SELECT id FROM tidewheel.tenant WHERE name = 'many'")
    await connection.execute(FILL, tenant, SCHEDULES)
    await connection.execute(FILL_OCCURRENCES, EACH)
    found: UUID = await connection.fetchval("SELECT id FROM tidewheel.schedule LIMIT 1")
    return found


@pytest.mark.parametrize("counted", [True, False])
async def test_with_many_schedules_and_occurrences_each_statement_keeps_to_its_index(
    new_postgres_database: str, connect: Connect, *, counted: bool
) -> None:
    """Whether or not they were counted since they came."""
    connection = await connect(new_postgres_database)
    schedule = await _fill(connection)
    if counted:
        await connection.execute("ANALYZE tidewheel.schedule, tidewheel.occurrence")

    plans = await _explain(await _prepare(new_postgres_database, connect), schedule)

    astray = [
        f"{name} ({mode[6:]}) goes to {table} by {plan.ways_to(table)}"
        for (mode, name), (plan, look) in plans.items()
        for table, meant in look[2].items()
        if not plan.ways_to(table) <= meant
    ]
    assert astray == []
    greedy = {
        name: plan.rows_of("occurrence")
        for (_, name), (plan, look) in plans.items()
        if plan.rows_of("occurrence") > look[3]
    }
    assert greedy == {}
