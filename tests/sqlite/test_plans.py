"""Every hot statement goes through the index that is meant for it, however many rows there are, analysed or not."""

import re
from collections.abc import Callable

import apsw
import pytest

from tidewheel.store.sqlite.connection import SQL
from tidewheel.store.sqlite.migrate import MIGRATIONS

BY_ROWID = r"SEARCH job USING INTEGER PRIMARY KEY \(rowid=\?\)"
BY_ID = r"SEARCH job USING (COVERING )?INDEX sqlite_autoindex_job_1 \(id=\?\)"

PLANS = {
    "active_pairs": [
        r"COVERING INDEX job_due \(lane=\? AND priority>\?\)",
        r"COVERING INDEX job_due \(lane>\?\)",
    ],
    "peek": [r"SEARCH job USING COVERING INDEX job_due \(lane=\? AND priority=\?\)"],
    "take": [BY_ROWID],
    "taken": [BY_ROWID],
    "owned": [r"job_running \(worker=\?\)"],
    "keys_of": [BY_ROWID],
    "keys_ahead": [r"INDEX job_due \(lane=\? AND priority=\? AND run_at<\?\)"],
    "make_limited": [BY_ROWID],
    "standings": [r"SEARCH limit_key USING PRIMARY KEY \(tenant=\? AND key=\?\)"],
    "set_standings": [r"SEARCH limit_key USING PRIMARY KEY \(tenant=\? AND key=\?\)"],
    "standings_and_waiters": [
        r"SEARCH limit_key USING PRIMARY KEY \(tenant=\? AND key=\?\)",
        r"job_limited \(tenant=\? AND waits_for=\?\)",
    ],
    "due_looks": [r"limit_key_look \(look_at>\? AND look_at<\?\)|limit_key_look \(look_at<\?\)"],
    "next_look": [r"limit_key_look"],
    "meta": [r"limit_key_look"],
    "aged_waiters": [BY_ROWID, r"job_limited \(tenant=\? AND waits_for=\? AND priority=\? AND run_at<\?\)"],
    "waiters": [r"job_limited \(tenant=\? AND waits_for=\?\)"],
    "release": [BY_ROWID],
    "late_jobs": [
        r"head USING INDEX job_due \(lane=\? AND priority=\? AND \(?run_at",
        r"head USING INDEX job_limited \(tenant=\? AND waits_for=\? AND priority=\? AND \(?run_at",
        BY_ROWID,
        BY_ID,
    ],
    "queue_facts": [
        r"job USING (COVERING )?INDEX job_due \(lane=\? AND priority=\?\)",
        r"first USING (COVERING )?INDEX job_limited \(tenant=\? AND waits_for=\? AND priority=\?\)",
        r"job USING COVERING INDEX job_limited \(tenant=\? AND waits_for>\?\)",
        r"job USING COVERING INDEX job_limited \(tenant>\?\)",
        BY_ROWID,
    ],
    "runs_named": [BY_ID],
    "runs_of_worker": [r"job_running \(worker=\?\)"],
    "finish_returned": [BY_ROWID],
    "finish": [BY_ROWID],
    "remove": [BY_ROWID],
    "give_back": [BY_ROWID],
    "add_attempts": [BY_ROWID],
    "find_ended": [BY_ID, r"sqlite_autoindex_job_history_1 \(id=\?\)", r"SEARCH attempt USING PRIMARY KEY"],
    "find_unique": [r"job_unique \(tenant=\? AND unique_key=\?\)"],
    "find_jobs": [BY_ID, r"sqlite_autoindex_job_history_1 \(id=\?\)"],
    "await_active": [BY_ID],
    "await_finished": [r"sqlite_autoindex_job_history_1 \(id=\?\)"],
    "open_edges": [r"dependency USING (COVERING )?INDEX dependency_parent \(parent=\? AND child>\?\)"],
    "doomed_edges": [BY_ID, r"edge USING (COVERING )?INDEX dependency_parent \(parent=\?\)"],
    "blocked_children": [BY_ID],
    "tell_edges": [
        (
            r"SEARCH dependency USING PRIMARY KEY \(child=\? AND parent=\?\)"
            r"|dependency_parent \(parent=\? AND child=\?\)"  # as good: it has both, too
        )
    ],
    "count_down": [BY_ID],
    "recount_waits": [BY_ID, r"SEARCH dependency USING PRIMARY KEY \(child=\?\)"],
    "blocked_jobs": [r"job_blocked \(\(lane,priority,id\)>|job_blocked \(lane>"],
    "edges_of_blocked": [BY_ID, r"SEARCH edge USING PRIMARY KEY \(child=\?\)"],
    "parents_page": [r"SEARCH dependency USING PRIMARY KEY \(child=\? AND parent>\?\)"],
    "children_page": [r"dependency_parent \(parent=\? AND child>\?\)"],
    "remove_edges": [r"SEARCH dependency USING PRIMARY KEY \(child=\?\)"],
    "cancelling": [r"job_running \(worker=\?\)"],
    "overdue": [r"job_start_by \(start_by>\? AND start_by<\?\)|job_start_by \(start_by<\?\)"],
    "stop_behind": [BY_ROWID, r"job_running"],
    "holders": [r"job_running"],
    "ahead": [r"job_due \(lane=\? AND priority=\? AND (run_at<\?|\(run_at,id\)<)"],
    "waiters_ahead": [r"job_limited \(tenant=\? AND waits_for=\? AND \(?priority"],
    "count_capped": [r"job_capped \(tenant=\? AND <expr>=\?\)"],
    "first_capped": [r"job_capped \(tenant=\? AND <expr>=\?\)"],
    "last_capped": [r"job_capped \(tenant=\? AND <expr>=\?\)"],
    "get": [BY_ID, r"sqlite_autoindex_job_history_1 \(id=\?\)"],
    "find": [r"sqlite_autoindex_job_1 \(id>\? AND id<\?\)", r"sqlite_autoindex_job_history_1 \(id>\? AND id<\?\)"],
    "find_of_tenant": [
        r"job_tenant \(tenant=\? AND id>\? AND id<\?\)",
        r"job_history_tenant \(tenant=\? AND id>\? AND id<\?\)",
    ],
    "find_running": [r"SCAN job USING INDEX job_running"],
    "find_few": [r"job_history_failed \(state=\? AND id>\? AND id<\?\)"],
    "edge_few": [r"COVERING INDEX job_history_failed \(state=\? AND id>\? AND id<\?\)"],
    "fresh_counts_of_tenant": [r"job_tenant \(tenant=\?\)"],
    "count_unfinished": [r"SEARCH job USING COVERING INDEX job_tenant \(tenant=\?\)"],
    "find_api_key": [r"SEARCH api_key USING INDEX sqlite_autoindex_api_key_2 \(prefix=\?\)"],
    "audited_of_tenant": [r"SEARCH audit USING (COVERING )?INDEX audit_tenant \(tenant=\? AND id<\?\)"],
    "erase_logs": [r"SEARCH log USING INDEX log_job \(job_id=\?\)"],
    "erase_deliveries": [r"SEARCH delivery USING INDEX delivery_job \(job_id=\?\)"],
    "next_lines": [r"SEARCH log USING INTEGER PRIMARY KEY \(rowid>\?\)"],
    "logs": [r"SEARCH log USING INDEX log_job \(job_id=\? AND token>\?\)"],
    "last_logs": [r"SEARCH log USING INDEX log_job \(job_id=\? AND token<\?\)"],
    "limit_waiters": [r"job_limited \(tenant=\? AND waits_for=\?\)"],
    "limit_holders": [r"SCAN job USING INDEX job_running"],
    "coming_schedules": [r"schedule_coming \(tenant=\? AND next_fire_at>\?\)"],
    "past_occurrences": [
        BY_ID,
        r"past USING PRIMARY KEY \(schedule_id=\? AND fire_at=\?\)",
        r"SEARCH attempt USING PRIMARY KEY",
    ],
    "statistics": [r"SEARCH statistic USING PRIMARY KEY \(hour=\? AND at>\? AND at<\?\)"],
    "pieces": [
        r"SEARCH log USING INTEGER PRIMARY KEY \(rowid>\? AND rowid<\?\)",
        r"SEARCH earlier USING COVERING INDEX log_job \(job_id=\? AND token=\? AND first=\? AND last>\?\)",
    ],
    "segments_with": [r"SCAN log_words VIRTUAL TABLE", r"SEARCH segment USING INTEGER PRIMARY KEY \(rowid=\?\)"],
    "note_moments": [
        r"SEARCH phrase USING COVERING INDEX sqlite_autoindex_phrase_1 \(phrase=\? AND tenant=\? AND period=\?\)"
    ],
    "phrases_that_are": [r"SEARCH phrase USING COVERING INDEX sqlite_autoindex_phrase_1 \(phrase=\?"],
    "phrases_with": [r"SCAN phrase_parts VIRTUAL TABLE", r"SEARCH phrase USING INTEGER PRIMARY KEY \(rowid=\?\)"],
    "moments_of_phrase": [r"SEARCH phrase_moment USING PRIMARY KEY \(phrase=\? AND moment>\? AND moment<\?\)"],
    "any_job_between": [
        r"sqlite_autoindex_job_1 \(id>\? AND id<\?\)",
        r"sqlite_autoindex_job_history_1 \(id>\? AND id<\?\)",
    ],
    "erase_moment": [r"SEARCH phrase_moment USING PRIMARY KEY \(phrase=\? AND moment=\?\)"],
    "next_finished": [r"job_history_age \(state=\? AND finished_at>\? AND finished_at<\?\)"],
}
SCANS_ALLOWED = {"active_pairs", "queue_facts", "stop_behind", "holders", "find_running", "limit_holders"}
"""The first step of the first two takes the first entry of an index that holds only what waits; the others look at what
runs, by an index that holds nothing else."""


ROWS = 100_000
NOW = 1_000_000_000
"""An instant of the store; of the rows that wait, one half is due then, and the other lies ahead."""
FEW = 200
"""How many run, are limited, are blocked, wait for a deadline, or are dead."""

FILL = f"""
    INSERT INTO tenant (id, name) VALUES (1, 'a'), (2, 'b');
    INSERT INTO limit_key (tenant, key, most, look_at)
    SELECT 1, 'l' || value, 1, iif(value = 7, {NOW}, NULL) FROM generate_series(1, {FEW});
    INSERT INTO job (id, lane, tenant, priority, state, run_at, due_at, args, created_at, updated_at)
    SELECT unhex(printf('%032x', value)), 1 + value % 4, 1 + (value % 4 = 3), 1, 'queued',
           {NOW} + (value - {ROWS // 2}) * 100, 0, '{{}}', 0, 0
      FROM generate_series(1, {ROWS});
    UPDATE job SET state = 'running', worker = zeroblob(16) WHERE rowid <= {FEW};
    UPDATE job SET state = 'limited', limit_keys = '["l1"]', waits_for = 'l1' WHERE rowid BETWEEN 1001 AND 1000 + {FEW};
    UPDATE job SET state = 'blocked', waits = 1, on_parent_failure = 'skip' WHERE rowid BETWEEN 2001 AND 2000 + {FEW};
    UPDATE job SET start_by = {NOW}, unique_key = 'u' || rowid WHERE rowid BETWEEN 3001 AND 3000 + {FEW};
    INSERT INTO dependency (parent, child)
    SELECT unhex(printf('%032x', 4000 + value)), unhex(printf('%032x', 2000 + value)) FROM generate_series(1, {FEW});
    INSERT INTO job_history (id, lane, tenant, priority, state, run_at, due_at, token, failures, losses, args,
                             created_at, updated_at, finished_at, cause, ran)
    SELECT unhex(printf('%032x', {ROWS} + value)), 1 + value % 4, 1 + (value % 4 = 3), 1,
           iif(value % 500, 'succeeded', 'dead'), 0, 0, 1, 0, 0, '{{}}', 0, 0, value, 'returned', 1
      FROM generate_series(1, {ROWS});
    DELETE FROM job WHERE rowid BETWEEN 10001 AND 20000;
"""


def _fresh() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        connection.execute(migration.sql)
    return connection


def _filled() -> apsw.Connection:
    connection = _fresh()
    series = "WITH RECURSIVE n (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM n WHERE value < {most}) "
    connection.execute(
        f"CREATE TEMP TABLE numbers AS {series.format(most=ROWS)} SELECT value FROM n"
    )  # not every SQLite has generate_series
    connection.execute(re.sub(r"generate_series\(1, (\d+)\)", r"numbers WHERE value <= \1", FILL))
    return connection


def _analysed() -> apsw.Connection:
    connection = _filled()
    connection.execute("ANALYZE")  # which we never do, but someone may
    return connection


@pytest.fixture(scope="module", params=[_fresh, _filled, _analysed])
def connection(request: pytest.FixtureRequest) -> apsw.Connection:
    """A database without rows, one with many, and one in which SQLite has counted them."""
    made: apsw.Connection = request.param()
    return made


@pytest.mark.parametrize("name", PLANS)
def test_a_hot_statement_uses_its_index(connection: apsw.Connection, name: str) -> None:
    values = dict.fromkeys(re.findall(r":(\w+)", SQL[name]))
    plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + SQL[name], values)]
    for step in PLANS[name]:
        assert any(re.search(step, line) for line in plan), plan
    if name not in SCANS_ALLOWED:
        assert not [line for line in plan if re.search(r"SCAN (job|job_history|history|first|waiter|next)\b", line)], (
            plan
        )


def test_nothing_looks_through_the_hot_table_row_by_row(connection: apsw.Connection) -> None:
    """Statements that count may walk a partial index, but never the whole table, except those of a copy of it all."""
    for name, statement in SQL.items():
        if name.startswith("copy_"):
            continue
        values = dict.fromkeys(re.findall(r":(\w+)", statement))
        plan = [row[3] for row in connection.execute("EXPLAIN QUERY PLAN " + statement, values)]
        assert not [line for line in plan if re.fullmatch(r"SCAN (job|job_history)", line)], (name, plan)


def _effort(connection: apsw.Connection, name: str, **values: object) -> int:
    """Return how many steps SQLite takes for a statement, in hundreds."""
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    connection.set_progress_handler(count, 100)
    try:
        list(connection.execute(SQL[name], values))
    finally:
        connection.set_progress_handler(None)
    return steps


@pytest.mark.parametrize("make", [_filled, _analysed])
def test_a_claim_takes_no_more_effort_with_many_rows(make: Callable[[], apsw.Connection]) -> None:
    connection = make()
    pairs = [lane * 4 + 1 for lane in range(1, 5)]
    places = [row[0] for row in connection.execute("SELECT rowid FROM job WHERE state = 'queued' LIMIT 50")]

    assert _effort(connection, "active_pairs") < 10
    assert _effort(connection, "peek", pairs=str(pairs), depth=50) < 100
    assert _effort(connection, "keys_ahead", pairs=str(pairs), depth=50, now=NOW) < 200
    assert _effort(connection, "take", places=str(places), worker=bytes(16), now=NOW) < 200
    assert _effort(connection, "taken", places=str(places)) < 200
    ends = str([[place, 1] for place in places])
    assert _effort(connection, "finish_returned", ends=ends, now=NOW) < 300
    assert _effort(connection, "remove", ends=ends) < 300
    assert _effort(connection, "overdue", now=NOW, limit=50) < 100
