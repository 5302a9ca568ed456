"""`tide db copy`: from SQLite to PostgreSQL, also after it was interrupted."""

import asyncio
import shutil
import signal
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tests.api.conftest import SECRETS_KEY
from tests.builders import a_claim, a_job, a_worker, outcome_of
from tests.cli.terminal import tide, tide_given
from tests.cli.test_jobs import work
from tidewheel.clock import SystemClock
from tidewheel.errors import Conflict, StoreMismatch
from tidewheel.model.alert import Finding, Rule
from tidewheel.model.audit import AuditFilter
from tidewheel.model.log_query import LogFilter
from tidewheel.model.notification import Delivery, Event
from tidewheel.model.states import Cause
from tidewheel.store import copying
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.copying import DERIVED, TABLES
from tidewheel.store.postgres.copying import PostgresTarget
from tidewheel.store.sqlite import copying as sqlite_copying
from tidewheel.store.sqlite.copying import ONLY_HERE
from tidewheel.wiring import copy_source, copy_target, open_store


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with something of everything, made once."""
    tmp_path = tmp_path_factory.mktemp("original")
    tide(tmp_path, "demo", "--no-run", "--database", "sqlite:///jobs.db")
    tide(tmp_path, "submit", "--key", "once", "--label", "a=b", "--", "ls")
    work(tmp_path, Cause.RETURNED, '{"sent": 3}', "alpha bravo", "charlie")
    tide(tmp_path, "submit", "--task", "t", "--tenant", "other")
    tide(tmp_path, "submit", "--task", "t")
    work(tmp_path, Cause.GAVE_UP)
    tide(tmp_path, "schedule", "add", "nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Paris", "--", "ls")
    tide(tmp_path, "schedule", "trigger", "nightly")
    tide(tmp_path, "limit", "set", "account=7", "--most", "2", "--rate", "10/s")
    tide(tmp_path, "limit", "set", "account", "--most", "1", "--rule")
    tide(tmp_path, "queue", "cap", "mail", "1000")
    tide(tmp_path, "key", "create", "ci", "--role", "viewer", "--rate", "5")
    tide(tmp_path, "tenant", "set", "other", "--weight", "2.5")
    tide_given(tmp_path, b"correct horse", "secret", "set", "db", TIDE_SECRETS_KEY=SECRETS_KEY)
    tide(tmp_path, "notify", "channel", "ops", "https://hooks.example/x")
    tide(tmp_path, "notify", "subscribe", "ops", "alert.firing", "alert.resolved", "cancelled")
    tide(tmp_path, "keeper", "run-once", "census")
    asyncio.run(_go_wrong(tmp_path))
    by_hand = apsw.Connection(str(tmp_path / "jobs.db"))
    by_hand.execute("UPDATE worker SET alive = 0, ended_at = lease_until")
    by_hand.pragma("wal_checkpoint(TRUNCATE)")
    by_hand.close()
    return tmp_path


async def _go_wrong(folder: Path) -> None:
    """Let an alert fire and be over, and a job be cancelled that is sent round again; all of it is told."""
    store = await open_store(f"sqlite:///{folder}/jobs.db")
    for found in ([Finding(Rule.QUEUE_AGE, "mail", "it waits")], []):
        await store.keep_alerts(found)
    (answer,) = await store.submit([a_job("cancelled")])
    await store.cancel(answer.job_id)
    await store.spread_happenings()
    await store.redrive([answer.job_id])
    await store.close()


@pytest.fixture
def filled(original: Path, tmp_path: Path) -> Path:
    shutil.copy(original / "jobs.db", tmp_path / "jobs.db")
    return tmp_path


async def seen(store: Store) -> dict[str, Any]:
    """All that readers can see of a store, however it keeps it."""
    jobs = (await store.find(JobFilter(), limit=1000)).jobs
    schedules = await store.schedules()
    counts = await store.counts()
    return {
        "jobs": jobs,
        "attempts": [await store.attempts(job.id) for job in jobs],
        "logs": [await store.logs(job.id) for job in jobs],
        "parents": [await store.parents_of(job.id) for job in jobs],
        "schedules": schedules,
        "occurrences": [await store.occurrences(schedule.id) for schedule in schedules],
        "gates": await store.gates(),
        "limits": sorted((limit.tenant, limit.key, limit.most, limit.rule) for limit in await store.limits()),
        "rules": await store.rules(),
        "caps": await store.caps(),
        "keys": await store.keys(tenant=None),
        "secrets": await store.stored_secrets(),
        "channels": await store.channels(),
        "subscriptions": await store.subscriptions(),
        "deliveries": await store.deliveries(),
        "alerts": await store.alerts(),
        "audit": (await store.audited(AuditFilter())).entries,
        "tenants": await store.tenants(),
        "workers": await store.workers(),
        "finished": sorted((row.queue, row.kind, row.state, row.jobs) for row in counts.rows if row.priority is None),
    }


def everything(url: str) -> dict[str, Any]:
    async def look() -> dict[str, Any]:
        store = await open_store(url)
        try:
            return await seen(store)
        finally:
            await store.close()

    return asyncio.run(look())


def copy(folder: Path, to: str, *words: str) -> Any:
    return tide(folder, "db", "copy", "--to", to, *words)


def test_all_that_a_reader_sees_is_the_same_afterwards(filled: Path, postgres_database: str) -> None:
    done = copy(filled, postgres_database)
    assert done.returncode == 0, done.stderr
    assert "the numbers agree" in done.stdout
    before, after = everything(f"sqlite:///{filled}/jobs.db"), everything(postgres_database)
    assert {len(before[part]) > 0 for part in before} == {True}
    for part, found in before.items():
        assert after[part] == found, part


def test_what_jobs_are_found_by_is_the_same_afterwards(filled: Path, postgres_database: str) -> None:
    assert copy(filled, postgres_database).returncode == 0
    known = "SELECT phrase.tenant, phrase.phrase, made.moment FROM {0}phrase JOIN {0}phrase_moment AS made ON "

    async def ask() -> list[Any]:
        there = await asyncpg.connect(postgres_database)
        found = await there.fetch(known.format("tidewheel.") + "made.phrase = phrase.id AND made.moment >> 16 = period")
        await there.close()
        return found

    here = apsw.Connection(str(filled / "jobs.db"))
    before = here.execute(known.format("") + "made.phrase = phrase.id").fetchall()
    here.close()
    assert "a=b" in {phrase for _, phrase, _ in before}
    assert {tuple(row) for row in asyncio.run(ask()) if row[0]} == set(before)


def test_the_copy_is_a_store_to_work_with(filled: Path, postgres_database: str) -> None:
    assert copy(filled, postgres_database).returncode == 0

    async def go_on() -> None:
        store = await open_store(postgres_database)
        [known] = [job for job in (await store.find(JobFilter(), limit=1000)).jobs if job.idempotency_key == "once"]
        again = a_job("command", args={"argv": ["ls"]}, labels={"a": "b"}, idempotency_key="once")
        with pytest.raises(Conflict):  # the key is known, and this request is another one
            await store.submit([again])
        await store.submit([a_job("brand-new", queue="fresh", tenant="newcomer")])
        worker = await store.register(a_worker(queues=("fresh", "default")))
        runs = (await store.claim(a_claim(worker.id, 100, queues=("fresh", "default")))).runs
        assert "brand-new" in {run.kind for run in runs}
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        while await store.index_logs():
            pass
        found = await store.search_logs(LogFilter(text="bravo"))
        assert known.id in {found_line.line.job_id for found_line in found.lines}
        assert store.epoch > 1
        await store.close()

    asyncio.run(go_on())


def test_what_happens_after_a_copy_is_told_beside_what_was_told_before(filled: Path, postgres_database: str) -> None:
    assert copy(filled, postgres_database).returncode == 0

    async def go_on() -> list[Delivery]:
        store = await open_store(postgres_database)
        before = {delivery.id for delivery in await store.deliveries()}
        for found in ([Finding(Rule.QUEUE_AGE, "other", "it waits, too")], []):
            await store.keep_alerts(found)
        [job] = (await store.find(JobFilter(kind="cancelled"))).jobs
        await store.cancel(job.id)
        await store.spread_happenings()
        told = [delivery for delivery in await store.deliveries() if delivery.id not in before]
        await store.close()
        return told

    told = asyncio.run(go_on())
    assert sorted(delivery.event for delivery in told) == [Event.FIRING, Event.RESOLVED, Event.CANCELLED]


def test_an_interrupted_copy_keeps_everyone_out_and_goes_on_where_it_was(
    filled: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_copying, "PIECE", 10)
    writes: list[int] = []
    write = PostgresTarget.write

    async def cut_off(self: PostgresTarget, piece: copying.Piece) -> None:
        if piece.table == "job_history" and len(writes) > 12:
            signal.raise_signal(signal.SIGINT)  # as Ctrl-C does
            await asyncio.Event().wait()
        writes.append(len(piece.rows))
        await write(self, piece)

    monkeypatch.setattr(PostgresTarget, "write", cut_off)
    stopped = copy(filled, postgres_database)
    assert (stopped.returncode, stopped.stderr) == (
        130,
        "tide: stopped in the middle; the same command goes on with it\n",
    )
    before = sum(writes)
    assert before > 0
    for words in (("job", "list"), ("db", "check"), ("db", "upgrade")):
        refused = tide(filled, *words, "--database", postgres_database)
        assert (refused.returncode, refused.stderr) == (
            1,
            "tide: a copy into this store was begun and is not complete: go on by `tide db copy`\n",
        )
    monkeypatch.setattr(PostgresTarget, "write", write)
    done = copy(filled, postgres_database)
    assert done.returncode == 0, done.stderr
    assert everything(postgres_database)["jobs"] == everything(f"sqlite:///{filled}/jobs.db")["jobs"]


def test_a_source_that_changes_meanwhile_is_noticed_and_copied_anew(
    filled: Path, postgres_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = PostgresTarget.write

    async def write_and_submit(self: PostgresTarget, piece: copying.Piece) -> None:
        await write(self, piece)
        if piece.table == "tenant":
            tide_submit(filled)

    def tide_submit(folder: Path) -> None:
        by_hand = apsw.Connection(str(folder / "jobs.db"))
        by_hand.execute("UPDATE job SET updated_at = updated_at + 1 WHERE id = (SELECT min(id) FROM job)")
        by_hand.close()

    monkeypatch.setattr(PostgresTarget, "write", write_and_submit)
    why = "tide: the source was changed since the copy began: stop all that uses it, and begin anew by"
    assert copy(filled, postgres_database).stderr.startswith(why)
    monkeypatch.setattr(PostgresTarget, "write", write)
    again = copy(filled, postgres_database)
    assert (again.returncode, again.stderr.startswith(why)) == (1, True)
    assert copy(filled, postgres_database, "--restart").returncode == 0
    assert everything(postgres_database)["jobs"] == everything(f"sqlite:///{filled}/jobs.db")["jobs"]


def test_numbers_that_differ_at_the_end_are_no_success(filled: Path, postgres_database: str) -> None:
    async def lose_one() -> None:
        source, target = copy_source(f"sqlite:///{filled}/jobs.db", SystemClock()), await copy_target(postgres_database)
        pieces = source.pieces

        def short(table: str, skip: int) -> Any:
            return (
                piece._replace(rows=piece.rows[:-1] if table == "job_history" else piece.rows)
                for piece in pieces(table, skip)
            )

        source.pieces = short  # type: ignore[method-assign]
        try:
            with pytest.raises(Conflict, match=r"the numbers differ \(\d+ of \d+ in job_history\)"):
                await copying.copy(source, target, lambda *_: None)
        finally:
            source.close()
            await target.close()
        with pytest.raises(StoreMismatch, match="is not complete"):
            await open_store(postgres_database)

    asyncio.run(lose_one())


def test_what_cannot_be_copied_is_told_in_one_line(filled: Path, tmp_path: Path, postgres_database: str) -> None:
    for words, code, why in (
        (("--to", "sqlite:///other.db"), 2, "to: must be postgresql://user@host/name"),
        (("--to", "postgresql://u:secret@127.0.0.1:1/x"), 3, "PostgreSQL cannot be reached"),
        (("--to", postgres_database, "--database", "sqlite:///nothing.db"), 3, "nothing.db cannot be opened"),
        (("--to", postgres_database, "--database", postgres_database), 2, "database: must be sqlite:///"),
    ):
        wrong = tide(filled, "db", "copy", *words)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (code, "", 1), wrong.stderr
        assert why in wrong.stderr
        assert "secret" not in wrong.stderr
    asyncio.run(_register(tmp_path))
    assert "1 workers of jobs.db are alive: stop all that uses it" in copy(filled, postgres_database).stderr


async def _register(folder: Path) -> None:
    store = await open_store(f"sqlite:///{folder}/jobs.db")
    await store.register(a_worker())
    await store.close()


def test_a_target_with_jobs_in_it_is_left_alone(filled: Path, postgres_database: str) -> None:
    assert tide(filled, "submit", "--database", postgres_database, "--", "ls").returncode == 0
    wrong = copy(filled, postgres_database)
    assert (wrong.returncode, "the target is not empty (rows: 1 in tenant, 1 in lane, 1 in job)" in wrong.stderr) == (
        1,
        True,
    )
    assert tide(filled, "job", "list", "--database", postgres_database).returncode == 0


async def test_every_table_and_column_has_its_place(tmp_path: Path, postgres_database: str) -> None:
    await (await open_store(f"sqlite:///{tmp_path}/jobs.db")).close()
    here = apsw.Connection(str(tmp_path / "jobs.db"))
    there = await asyncpg.connect(postgres_database)
    names = here.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'").fetchall()
    tables = {str(name) for (name,) in names if not str(name).startswith(("log_words_", "phrase_parts_"))}
    assert tables == {*TABLES, *DERIVED}
    for table in TABLES:
        columns = {row[1] for row in here.execute(f"PRAGMA table_info({table})")} - ONLY_HERE.get(table, set())
        query = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = 'tidewheel' AND table_name = $1"
        )
        found = {row[0] for row in await there.fetch(query, table)}
        if table == "idempotency":
            columns = columns - {"check_at"} | {"created_at"}
        assert columns <= found, table
        assert found - columns <= {"floors", "id", "stood_at", "xid"}, table
    here.close()
    await there.close()
