"""Hot statements reach the table of jobs only by the index that is meant for them, whatever is or was in it.

A plan is made from statistics, and statistics are of another moment. So each statement is looked at where this went
wrong once: in a new database, after a vacuum of the empty table, with half a million jobs of the future, and with a
hundred thousand dead rows that a held snapshot keeps. Rows and pages are counted, never milliseconds.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import pytest

from tests.postgres_store.plans import MODES, Mode, Plan, Prepared
from tests.postgres_store.scene import HOT, LOOK_AT_MUCH, Scene
from tests.postgres_store.tools import FUTURE, Connect, Raw, opened
from tidewheel.clock import SystemClock
from tidewheel.model.ids import make_id, time_of
from tidewheel.store.pages import LINES_BYTES
from tidewheel.store.postgres.connection import SQL

pytestmark = pytest.mark.slow

Plans = Mapping[tuple[Mode, str], Plan]
NOBODY = uuid4()
EMPTY = Scene(datetime(2030, 1, 1, tzinfo=UTC), 1, 2, 1, 2, NOBODY, [], [], [NOBODY], NOBODY)
"""Values that fit an empty table."""


async def _scene(url: str, connection: Raw) -> Scene:
    async with opened(url) as store:
        return await Scene.make(store, connection)


async def _prepare(url: str, connect: Connect) -> dict[Mode, Prepared]:
    """Prepare all statements in two sessions: one plans them for their values, one for all values."""
    return {mode: await Prepared.all(await connect(url), list(HOT), mode) for mode in MODES}


async def _explain(prepared: Mapping[Mode, Prepared], scene: Scene) -> Plans:
    return {
        (mode, name): await session.explain(name, HOT[name].values(scene))
        for mode, session in prepared.items()
        for name in HOT
    }


def _astray(plans: Plans) -> Iterator[str]:
    for (mode, name), plan in plans.items():
        if wrong := plan.ways_to("job") - HOT[name].by:
            meant = ", ".join(sorted(HOT[name].by)) or "not at all"
            yield f"{name} ({mode[6:]}) goes by {', '.join(sorted(wrong))}, meant: {meant}"


def _past_the_edges(plans: Plans) -> Iterator[str]:
    """Edges are many and are reached by their indexes alone."""
    for (mode, name), plan in plans.items():
        if wrong := plan.ways_to("dependency") - {"dependency_pkey", "dependency_parent", "Tid Scan"}:
            yield f"{name} ({mode[6:]}) goes to the edges by {', '.join(sorted(wrong))}"


def _greedy(plans: Plans) -> Iterator[str]:
    for (mode, name), plan in plans.items():
        if (rows := plan.rows_of("job")) > HOT[name].most_rows:
            yield f"{name} ({mode[6:]}) looks at {rows} rows, meant: {HOT[name].most_rows}"


def _check(plans: Mapping[str, Plans]) -> None:
    """Let a test fail with all that is wrong, not just with the first of it."""
    found = [
        f"{when}: {line}"
        for when, each in plans.items()
        for line in (*_astray(each), *_past_the_edges(each), *_greedy(each))
    ]
    assert not found, "\n".join(["", *found])


def test_every_statement_that_names_the_table_of_jobs_is_looked_at_here() -> None:
    naming = {name for name, text in SQL.items() if re.search(r"tidewheel\.(active_)?job\b", text)}

    assert naming - set(HOT) == LOOK_AT_MUCH


async def test_in_a_new_database_every_statement_keeps_to_its_index(
    new_postgres_database: str, connect: Connect
) -> None:
    scene = await _scene(new_postgres_database, await connect(new_postgres_database))
    plans = await _explain(await _prepare(new_postgres_database, connect), scene)

    assert [*_astray(plans), *_past_the_edges(plans)] == []


async def test_a_plan_made_for_the_empty_table_stays_right_when_it_fills(
    new_postgres_database: str, connect: Connect
) -> None:
    """The statistics say that there is no row, and go on saying so until the next vacuum."""
    connection = await connect(new_postgres_database)
    await connection.execute("ALTER TABLE tidewheel.job SET (autovacuum_enabled = off)")
    await connection.execute("VACUUM ANALYZE tidewheel.job, tidewheel.dependency")
    kept = await _prepare(new_postgres_database, connect)
    await _explain(kept, EMPTY)
    scene = await _scene(new_postgres_database, connection)
    await connection.execute(FUTURE, scene.lane, scene.tenant, 200_000)

    old = await _explain(kept, scene)
    new = await _explain(await _prepare(new_postgres_database, connect), scene)

    _check({"a plan that was kept": old, "a plan made anew": new})


@pytest.mark.proof
async def test_with_half_a_million_jobs_of_the_future_no_statement_looks_at_them(
    new_postgres_database: str, connect: Connect
) -> None:
    connection = await connect(new_postgres_database)
    scene = await _scene(new_postgres_database, connection)
    await connection.execute(FUTURE, scene.lane, scene.tenant, 500_000)
    before = await _explain(await _prepare(new_postgres_database, connect), scene)
    await connection.execute("ANALYZE tidewheel.job")
    after = await _explain(await _prepare(new_postgres_database, connect), scene)

    _check({"before they were counted": before, "after": after})
    assert max(plan.buffers for (_, name), plan in after.items() if name == "peek") < 100


@pytest.mark.proof
async def test_dead_rows_that_a_held_snapshot_keeps_cost_the_hot_statements_nothing(
    new_postgres_database: str, connect: Connect
) -> None:
    connection = await connect(new_postgres_database)
    scene = await _scene(new_postgres_database, connection)
    await connection.execute("VACUUM ANALYZE tidewheel.job")
    before = await _explain(await _prepare(new_postgres_database, connect), scene)
    await _hold_a_snapshot(await connect(new_postgres_database))
    await _run_jobs(connection, scene, 100_000)
    await connection.execute("VACUUM ANALYZE tidewheel.job")
    after = await _explain(await _prepare(new_postgres_database, connect), scene)

    _check({"with dead rows": after})
    assert {
        name: (before[mode, name].buffers, plan.buffers)
        for (mode, name), plan in after.items()
        if HOT[name].flat and plan.buffers > 2 * before[mode, name].buffers + 100
    } == {}
    assert max(plan.buffers for (_, name), plan in after.items() if name == "peek") < 100


async def _hold_a_snapshot(connection: Raw) -> None:
    await connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
    await connection.fetchval("SELECT count(*) FROM tidewheel.lane")


async def _run_jobs(connection: Raw, scene: Scene, count: int) -> None:
    """Let many jobs be queued, run by the worker, and end, all before the mark."""
    await connection.execute(
        "INSERT INTO tidewheel.job (id, lane, tenant, priority, state, run_at, due_at, args, created_at, updated_at) "
        "SELECT uuidv7(), $1, $2, 1, 'queued', now() - interval '1 hour' * (1 + random()), now(), '{}', now(), now() "
        "FROM generate_series(1, $3)",
        scene.lane,
        scene.tenant,
        count,
    )
    old = "run_at < now() - interval '1 hour'"
    await connection.execute(
        f"UPDATE tidewheel.job SET state = 'running', waits = 0, worker = $1 WHERE {old}", scene.worker
    )
    await connection.execute(f"DELETE FROM tidewheel.job WHERE {old}")


async def test_a_finished_job_is_looked_for_only_in_the_days_since_it_was_made(
    new_postgres_database: str, connect: Connect
) -> None:
    connection = await connect(new_postgres_database)
    scene = await _scene(new_postgres_database, connection)
    await connection.execute("SELECT tidewheel.prepare_days(current_date - 60, 59)")
    plans = await _explain(await _prepare(new_postgres_database, connect), scene)
    made = time_of(scene.ended[0].job_id).date()
    for (mode, name), plan in plans.items():
        if name in {"get_finished", "find_ended", "logs"}:
            days = _days(plan)
            assert len(days) > 0
            assert min(days) >= made - timedelta(days=1), (mode, name)


async def test_a_page_of_lines_reads_no_more_than_it_shows(new_postgres_database: str, connect: Connect) -> None:
    connection = await connect(new_postgres_database)
    job_id = make_id(int(SystemClock().now().timestamp() * 1000), 0)
    await connection.execute(
        "INSERT INTO tidewheel.log (job_id, token, first, last, stored_at, lines) "
        "SELECT CASE WHEN n % 2 = 0 THEN $1 ELSE uuidv7() END, 1 + n % 3, n, n, now() + n % 2 * interval '1 day', '[]' "
        "FROM generate_series(1, 60000) AS n",
        job_id,
    )
    await connection.execute("ANALYZE tidewheel.log")
    for mode in MODES:
        session = await Prepared.all(await connect(new_postgres_database), ["logs"], mode)
        plan = await session.explain("logs", [job_id, time_of(job_id), 2, 30_000, 100, LINES_BYTES])
        tables = {str(node["Relation Name"]) for node in plan.nodes() if "Relation Name" in node}
        assert 100 <= sum(plan.rows_of(table) for table in tables) <= 110, mode


async def test_whether_a_piece_came_before_is_looked_up_by_its_place_in_two_days(
    new_postgres_database: str, connect: Connect
) -> None:
    connection = await connect(new_postgres_database)
    await _scene(new_postgres_database, connection)
    await connection.execute("SELECT tidewheel.prepare_days(current_date - 20, 20)")
    await connection.execute(
        "INSERT INTO tidewheel.log (job_id, token, first, last, stored_at, lane, lines) "
        "SELECT $1, 1, n, n, now() - n % 10 * interval '1 day', 1, '[]' FROM generate_series(1, 30000) AS n",
        NOBODY,
    )
    await connection.execute("ANALYZE tidewheel.log")
    now = SystemClock().now()
    named = [[NOBODY] * 50, [1] * 50, list(range(10, 510, 10))]
    for mode in MODES:
        session = await Prepared.all(await connect(new_postgres_database), ["pieces"], mode)
        plan = await session.explain("pieces", [*named, now - timedelta(hours=1), now, None, None, None])
        scans = [node for node in plan.nodes() if str(node.get("Alias", "")).startswith("other")]
        used = [node for node in scans if node["Actual Loops"]]
        assert 1 <= len(used) <= 2, mode
        assert all("job_id" in node["Index Cond"] and "first" in node["Index Cond"] for node in used), mode
        assert sum(node["Actual Loops"] for node in used) <= 100, mode


@pytest.mark.parametrize("name", ["segments_news", "fresh_news"])
async def test_whoever_follows_lines_reads_what_was_noted_since_the_last_look_alone(
    new_postgres_database: str, connect: Connect, name: str
) -> None:
    connection = await connect(new_postgres_database)
    await _scene(new_postgres_database, connection)
    notes = (
        "INSERT INTO tidewheel.{} (first_at, last_at, jobs, tokens, firsts, {}) "
        "SELECT now(), now(), $1, '{{1}}', '{{1}}', {}"
    )
    table, columns, given = {
        "segments_news": ("log_segment", "words", "'loud'"),
        "fresh_news": ("log_fresh", "lines, chars, lanes", "1, 1, '{1}'"),
    }[name]
    many = f"{notes.format(table, columns, given)} FROM generate_series(1, $2)"
    await connection.execute(many, [NOBODY], 5000)
    await connection.execute(f"ANALYZE tidewheel.{table}")
    next_one = await connection.fetchval("SELECT pg_snapshot_xmax(pg_current_snapshot())::text")
    seen = f"{next_one}:{next_one}:"  # of whatever others do on this server nothing is under way
    await connection.execute(many, [NOBODY], 7)
    now = SystemClock().now()
    span = [now - timedelta(days=1), now + timedelta(hours=1), 30]
    values = {"segments_news": [None, *span, seen], "fresh_news": [*span, None, seen]}
    for mode in MODES:
        session = await Prepared.all(await connect(new_postgres_database), [name], mode)
        plan = await session.explain(name, values[name])
        tables = {str(node["Relation Name"]) for node in plan.nodes() if "Relation Name" in node}
        assert sum(plan.rows_of(table) for table in tables) == 7, mode


def _days(plan: Plan) -> list[date]:
    names = [str(node.get("Relation Name", "")) for node in plan.nodes() if node["Actual Loops"]]
    return [date.fromisoformat(name[-8:]) for name in names if name[-8:].isdigit()]
