"""The commands, run as a user runs them."""

import signal
import socket
import subprocess
import sys
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit, urlunsplit

import apsw
import pytest

from tests.cli.terminal import TIDE, surroundings, tide, tide_process
from tests.worker.running import until
from tidewheel.cli.worker import MODULES
from tidewheel.model.retention import parse_upkeep
from tidewheel.worker.plan import WorkerPlan, members_of


def test_a_database_is_migrated_and_checked(tmp_path: Path) -> None:
    first = tide(tmp_path, "db", "upgrade")
    assert (first.returncode, first.stdout) == (
        0,
        "applied 0001_expand_kernel\nsqlite:///jobs.db is up to date\n",
    )
    again = tide(tmp_path, "db", "upgrade")
    assert again.stdout == "sqlite:///jobs.db is up to date\n"
    assert "schema 1" in tide(tmp_path, "db", "check").stdout
    assert [tide(tmp_path, "db", "restored").stdout.split()[-1] for _ in range(2)] == ["2", "3"]


def test_the_pending_sql_is_printed_before_and_empty_after(tmp_path: Path) -> None:
    assert "CREATE TABLE job" in tide_process(tmp_path, "db", "sql").stdout
    tide(tmp_path, "db", "upgrade")
    assert tide(tmp_path, "db", "sql").stdout == "-- nothing to do\n"


def test_sql_that_was_applied_by_hand_is_as_good_as_a_migration(tmp_path: Path) -> None:
    text = tide(tmp_path, "db", "sql").stdout
    by_hand = apsw.Connection(str(tmp_path / "jobs.db"))
    by_hand.execute(text).fetchall()
    by_hand.close()
    assert tide(tmp_path, "db", "check").returncode == 0
    assert tide(tmp_path, "db", "upgrade").stdout == "sqlite:///jobs.db is up to date\n"


def test_postgresql_is_migrated_by_its_url(tmp_path: Path, postgres_database: str) -> None:
    done = tide(tmp_path, "db", "check", TIDE_DATABASE=postgres_database)
    assert done.returncode == 0, done.stderr
    assert "schema 1" in done.stdout


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("foo", "database: must be sqlite:///path/to/file, postgresql://"),
        ("sqlite://", "database: must be"),
        ("mysql://root:secret@localhost/x", "database: must be"),
        ("postgresql://user:secret@127.0.0.1:1/x", "PostgreSQL cannot be reached"),
        ("sqlite:///no/such/folder/jobs.db", "there is no folder"),
        ("sqlite:///nothing.db", "there is no such file yet; `tide db upgrade` makes it"),
        ("sqlite:jobs.db", "database: must be"),
        ("sqlite:///jobs.db?mode=ro", "database: SQLite takes no options"),
        ("sqlite:///:memory:", "database: a store in memory"),
        ("postgresql://u@127.0.0.1:port/x", "database: "),
        ("postgresql://[::1/x", "database: is no URL"),
    ],
)
def test_a_database_that_cannot_be_used_is_told_in_one_line(tmp_path: Path, url: str, why: str) -> None:
    done = tide(tmp_path, "db", "check", "--database", url)
    assert done.returncode == (2 if why.startswith("database: ") else 3)
    assert why in done.stderr
    assert done.stderr.startswith("tide: ")
    assert len(done.stderr.splitlines()) == 1
    assert "secret" not in done.stderr


def test_a_worker_loads_nothing_that_only_a_server_needs() -> None:
    code = "import sys, tidewheel.cli.worker; print({'granian', 'starlette'} & {*sys.modules})"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_up_keeps_the_database_until_it_is_told_to_stop(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [TIDE, "up", "--database", "sqlite:///up.db", "--port", "0"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("Tidewheel keeps sqlite:///up.db. ")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out.splitlines()[-1]) == (0, "stopped")
    assert "Traceback" not in err
    assert not (tmp_path / "up.db-wal").exists()


@pytest.mark.parametrize(
    ("change", "why"),
    [(("/tide", "/no_such_db"), "no_such_db"), (("postgres", "nobody_we_know"), "nobody_we_know")],
)
def test_a_wrong_name_on_postgresql_is_told_in_one_line(
    tmp_path: Path, postgres_database: str, change: tuple[str, str], why: str
) -> None:
    parts = urlsplit(postgres_database)
    if change[0] == "/tide":
        url = urlunsplit(parts._replace(path=change[1]))
    else:
        url = urlunsplit(parts._replace(netloc=f"{change[1]}@{parts.netloc.rpartition('@')[2]}"))
    done = tide(tmp_path, "db", "upgrade", "--database", url)
    assert done.returncode == 3
    assert why in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_up_can_be_stopped_while_it_waits_for_a_server_that_does_not_answer(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"postgresql://u@127.0.0.1:{deaf.getsockname()[1]}/x"
        with subprocess.Popen(
            [TIDE, "up", "--database", url, "--port", "0"], cwd=tmp_path, stdout=subprocess.PIPE, text=True
        ) as process:
            connection, _ = deaf.accept()
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=5)
            connection.close()
    assert (process.returncode, out) == (0, "stopped\n")


def test_a_chore_is_done_once_by_its_name(tmp_path: Path) -> None:
    tide(tmp_path, "db", "upgrade")
    assert "expiry" in tide(tmp_path, "keeper", "chores").stdout.split()
    done = tide(tmp_path, "keeper", "run-once", "expiry")
    assert (done.returncode, done.stdout) == (0, "expiry: 0\n")
    unknown = tide(tmp_path, "keeper", "run-once", "dusting")
    assert (unknown.returncode, unknown.stderr.count("\n")) == (2, 1)
    assert unknown.stderr.startswith("tide: chore: must be one of ")


def test_a_keeper_does_the_chores_until_it_is_told_to_stop(tmp_path: Path) -> None:
    tide(tmp_path, "submit", "--", "ls")
    (tmp_path / "tidewheel.toml").write_text('max_age = "1d"\n')
    words = [str(TIDE), "keeper", "--keep", "dead=1d"]
    with subprocess.Popen(words, cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: tide(tmp_path, "queue", "list").stdout.count("default") == 1, "the waiting to be counted")
        finally:
            process.send_signal(signal.SIGTERM)
            out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1]) == (0, "stopped")
    assert "does the chores" in out


def test_a_keeper_is_told_what_a_file_and_options_say(tmp_path: Path) -> None:
    (tmp_path / "tidewheel.toml").write_text('max_age = "3d"\n')
    for words in (("keeper",), ("keeper", "run")):
        with patch("tidewheel.cli.keeper.run_worker") as run_worker:
            assert tide(tmp_path, *words, "--keep", "dead=1d").returncode == 0
        plan: WorkerPlan = run_worker.call_args.args[0]
        assert (plan.inline, plan.slots, plan.servers, plan.keeper) == (0, 0, 0, True)
        assert plan.upkeep == parse_upkeep(["dead=1d"], "3d")
        assert [member.module for member in members_of(plan, [], MODULES)] == [MODULES.keeper]
    behind = tide(tmp_path, "keeper", "--database", "http://127.0.0.1:1")
    assert (behind.returncode, "must be the database itself" in behind.stderr) == (2, True)
    assert "chores" in tide(tmp_path, "keeper", "--help").stdout


@pytest.mark.parametrize("command", ["up", "worker", "keeper"])
def test_ages_that_make_no_sense_are_refused_before_anything_runs(tmp_path: Path, command: str) -> None:
    wrong = tide(tmp_path, command, "--keep", "dead=soon")
    assert (wrong.returncode, wrong.stderr.startswith("tide: keep: ")) == (2, True)
    wrong = tide(tmp_path, command, TIDE_KEEP="dead=90d asleep=3d")
    assert (wrong.returncode, "asleep=3d" in wrong.stderr) == (2, True)
    wrong = tide(tmp_path, command, TIDE_MAX_AGE="never")
    assert (wrong.returncode, wrong.stderr.startswith("tide: max_age: ")) == (2, True)
    assert list(tmp_path.iterdir()) == []
