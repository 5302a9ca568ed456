"""Millions of rows on PostgreSQL, copied from real ones inside the server with all indexes in place.

Each copy has an id of its own, a UUIDv7 of the time at which it might have been made. Afterwards comes what autovacuum
does within a minute of such a load, and a checkpoint, so that the load is not paid for during the rounds.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

import asyncpg
import msgspec

from bench.grounds.ground import DUE_SINCE, HISTORY_DAYS
from tidewheel.model.job import JobSpec

FUTURE_DAYS: Final = 30
TEMPLATES: Final = 1_000

_MAKE_ID: Final = """
    CREATE OR REPLACE FUNCTION pg_temp.id_of(at timestamptz) RETURNS uuid LANGUAGE sql VOLATILE AS $$
        SELECT (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(bits, 1, 3)
                || 'a' || substr(bits, 4, 15))::uuid
          FROM (SELECT md5(random()::text) AS bits) AS chance $$
"""


def tomorrow(specs: Sequence[JobSpec]) -> list[JobSpec]:
    return [msgspec.structs.replace(spec, delay=timedelta(days=1)) for spec in specs]


async def copy_due(connection: Any, count: int) -> None:
    """Copy the queued jobs; the copies became due one after the other."""
    at = f"(now() - interval '{DUE_SINCE.total_seconds()} seconds' * (1 - copy.n::float8 / {count}))"
    times = dict.fromkeys(("run_at", "due_at", "created_at", "updated_at"), at)
    await _copy(connection, "tidewheel.job", count, {"id": f"pg_temp.id_of({at})", **times})


async def copy_future(connection: Any, count: int) -> None:
    """Copy the queued jobs; the copies were made during the last day and become due during a month."""
    at = f"(template.run_at + interval '{FUTURE_DAYS} days' * (copy.n::float8 / {count}))"
    made = f"(now() - interval '1 day' * (1 - copy.n::float8 / {count}))"
    times = {"run_at": at, "due_at": at, "created_at": made, "updated_at": made}
    await _copy(connection, "tidewheel.job", count, {"id": f"pg_temp.id_of({made})", **times})


async def copy_history(connection: Any, count: int) -> None:
    """Copy finished jobs; the copies ended evenly over the last days, up to this moment."""
    await connection.fetchval(
        "SELECT tidewheel.prepare_days((now() AT TIME ZONE 'UTC')::date - $1::integer, $1::integer)", HISTORY_DAYS + 1
    )
    at = f"(now() - interval '{HISTORY_DAYS} days' * (1 - copy.n::float8 / {count}))"
    times = dict.fromkeys(("run_at", "due_at", "created_at", "updated_at", "started_at", "ended_at", "finished_at"), at)
    await _copy(connection, "tidewheel.job_history", count, {"id": f"pg_temp.id_of({at})", **times})


async def note_phrases(connection: Any) -> None:
    """Note kinds, labels and messages of all jobs; the ids of copies are of the time at which they were made."""
    for table, message in (("job", "NULL"), ("job_history", "job.error ->> 'message'")):
        await connection.execute(
            f"""
            WITH said AS MATERIALIZED (
                SELECT DISTINCT job.tenant, lower(said.phrase) AS phrase,
                       (extract(epoch FROM job.created_at) * 1000)::bigint >> 10 AS moment
                  FROM tidewheel.{table} AS job
                  JOIN tidewheel.lane ON lane.id = job.lane
                 CROSS JOIN LATERAL (
                       SELECT key || '=' || value FROM json_each_text(job.labels)
                       UNION ALL SELECT {message} UNION ALL SELECT lane.kind
                       ) AS said (phrase)
                 WHERE job.lane > 0 AND said.phrase IS NOT NULL
            ), named AS (
                INSERT INTO tidewheel.phrase (period, id, tenant, phrase)
                SELECT DISTINCT moment >> 16, tidewheel.phrase_id(tenant, phrase), tenant, phrase FROM said
            )
            INSERT INTO tidewheel.phrase_moment SELECT tidewheel.phrase_id(tenant, phrase), moment FROM said
            """,
            timeout=1800,
        )


async def _copy(connection: Any, table: str, count: int, changed: Mapping[str, str]) -> None:
    found = await connection.fetch(
        "SELECT attname FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped", table
    )
    names = [row["attname"] for row in found]
    values = [changed.get(name, f"template.{name}") for name in names]
    await connection.execute(_MAKE_ID)
    done = await connection.execute(
        f"WITH template AS MATERIALIZED (SELECT *, row_number() OVER () - 1 AS number FROM {table} "
        f"WHERE lane > 0 LIMIT {TEMPLATES}), "  # lane 0 is the table's keel
        f"templates AS MATERIALIZED (SELECT count(*) AS number FROM template) "
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} "
        f"FROM generate_series(1, {count}) AS copy (n) "
        f"JOIN template ON template.number = copy.n % (SELECT number FROM templates)",
        timeout=1800,
    )
    if done != f"INSERT 0 {count}":
        raise RuntimeError(f"{table} has nothing to copy: {done}")


async def settle_down(connection: Any, *statements: str) -> None:
    for statement in statements:
        await connection.execute(statement, timeout=1800)
    with suppress(asyncpg.InsufficientPrivilegeError):  # a server of the environment may not let us
        await connection.execute("CHECKPOINT", timeout=1800)
