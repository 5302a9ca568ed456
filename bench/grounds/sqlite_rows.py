"""Millions of rows on SQLite, copied from real ones by one statement with all indexes in place.

Each copy has an id of its own, a UUIDv7 of the time at which it might have been made. The log is then copied into the
file, so that the load is not paid for during the rounds.
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import apsw
import msgspec

from bench.grounds.ground import DUE_SINCE, HISTORY_DAYS
from tidewheel.clock import SystemClock
from tidewheel.model.job import JobSpec
from tidewheel.store.sqlite.connection import connect
from tidewheel.store.sqlite.values import micros, span

FUTURE: Final = timedelta(days=30)
CHUNK: Final = 100_000
TEMPLATES: Final = 1_000
_ID: Final = "unhex(printf('%012x7%03xa', ({at}) / 1000, abs(random() % 4096)) || substr(hex(randomblob(8)), 1, 15))"


def tomorrow(specs: Sequence[JobSpec]) -> list[JobSpec]:
    return [msgspec.structs.replace(spec, delay=timedelta(days=1)) for spec in specs]


def copy_due(path: Path, count: int) -> None:
    """Copy the queued jobs; the copies became due one after the other."""
    at = _evenly(-span(DUE_SINCE), 0, count)
    times = dict.fromkeys(("run_at", "due_at", "created_at", "updated_at"), at)
    _copy(path, "job", count, {"id": _ID.format(at=at), **times})


def copy_future(path: Path, count: int) -> None:
    """Copy the queued jobs; the copies were made during the last day and become due during a month."""
    day = timedelta(days=1)
    at, made = _evenly(span(day), span(day + FUTURE), count), _evenly(-span(day), 0, count)
    times = {"run_at": at, "due_at": at, "created_at": made, "updated_at": made}
    _copy(path, "job", count, {"id": _ID.format(at=made), **times})


def copy_history(path: Path, count: int) -> None:
    """Copy finished jobs; the copies ended evenly over the last days, up to this moment."""
    at = _evenly(-span(timedelta(days=HISTORY_DAYS)), 0, count)
    names = ("run_at", "due_at", "created_at", "updated_at", "started_at", "ended_at", "finished_at")
    _copy(path, "job_history", count, {"id": _ID.format(at=at), **dict.fromkeys(names, at)})


def note_phrases(path: Path) -> None:
    """Note kinds, labels and messages of all jobs; the ids of copies are of the time at which they were made."""
    connection = connect(path)
    try:
        connection.execute("CREATE TEMP TABLE said (phrase, tenant, moment)")
        label = "SELECT label.key || '=' || label.value AS phrase, {} FROM {}, json_each({}.labels) AS label"
        message = "SELECT error ->> 'message' AS phrase, {} FROM {} WHERE error ->> 'message' IS NOT NULL"
        kind = "SELECT (SELECT kind FROM lane WHERE lane.id = job.lane) AS phrase, {} FROM {} AS job"
        made = "tenant, created_at / 1000 >> 10 AS moment"
        for asked in (
            *(t.format(made, *["job"] * 2) for t in (label, kind)),
            *(t.format(made, *["job_history"] * 2) for t in (label, message, kind)),
        ):
            connection.execute(f"INSERT INTO temp.said SELECT DISTINCT lower(phrase), tenant, moment FROM ({asked})")
        connection.execute(
            "INSERT OR IGNORE INTO phrase (phrase, tenant, period) "
            "SELECT DISTINCT phrase, tenant, moment >> 16 FROM temp.said; "
            "INSERT OR IGNORE INTO phrase_moment SELECT phrase.id, said.moment FROM temp.said AS said JOIN phrase "
            "ON phrase.phrase = said.phrase AND phrase.tenant = said.tenant AND phrase.period = said.moment >> 16"
        )
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _evenly(first: int, last: int, count: int) -> str:
    """Return the expression of a time that moves on from copy to copy, in microseconds."""
    now = micros(SystemClock().now())
    return f"{now + first} + copy.n * {last - first} / {count}"


def _copy(path: Path, table: str, count: int, changed: Mapping[str, str]) -> None:
    connection = connect(path)
    try:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = [changed.get(name, f"template.{name}") for name in names]
        connection.execute(
            "CREATE TEMP TABLE template AS "
            f"SELECT *, row_number() OVER () - 1 AS number FROM {table} LIMIT {TEMPLATES}; "
            "CREATE UNIQUE INDEX temp.template_number ON template (number)"
        )
        if not connection.execute("SELECT count(*) FROM template").get:
            raise RuntimeError(f"{table} has nothing to copy")
        for first in range(1, count + 1, CHUNK):
            _copy_chunk(connection, table, names, values, range(first, min(count, first + CHUNK - 1) + 1))
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
    finally:
        connection.close()


def _copy_chunk(
    connection: apsw.Connection, table: str, names: Sequence[str], values: Sequence[str], copies: range
) -> None:
    connection.execute(
        "WITH RECURSIVE copy (n) AS "
        f"(SELECT {copies.start} UNION ALL SELECT n + 1 FROM copy WHERE n < {copies.stop - 1}) "
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM copy "
        "CROSS JOIN temp.template ON template.number = copy.n % (SELECT count(*) FROM temp.template)"
    )
    connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
