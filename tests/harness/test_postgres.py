"""The tests' own PostgreSQL keeps its promises."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import asyncpg
import psutil
import pytest

from harness.postgres import FAST, PostgresServer, alive, wait_for
from tests.postgres import SharedPostgres

ROOT = Path(__file__).parents[2]


async def _value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


@pytest.mark.parametrize("turn", [1, 2])
async def test_each_test_has_a_database_of_its_own(postgres_database: str, turn: int) -> None:
    connection = await asyncpg.connect(postgres_database)

    await connection.execute("CREATE TABLE mine (turn int)")
    await connection.execute("INSERT INTO mine VALUES ($1)", turn)

    assert await connection.fetchval("SELECT sum(turn) FROM mine") == turn
    await connection.close()


async def test_a_database_is_dropped_though_a_connection_was_left_open(postgres_database: str) -> None:
    left_open = await asyncpg.connect(postgres_database)
    left_open.terminate()

    assert await _value(postgres_database, "SELECT 1") == 1


def test_the_shared_server_is_one_for_the_run(postgres_server: SharedPostgres) -> None:
    assert postgres_server.template in postgres_server.database_url(postgres_server.template)


@pytest.mark.chaos
async def test_what_was_committed_survives_a_kill(private_postgres: PostgresServer) -> None:
    url = private_postgres.url()
    await _value(url, "CREATE TABLE kept AS SELECT 42 AS answer")
    family = psutil.Process(private_postgres.pid).children()

    private_postgres.kill()

    assert not private_postgres.running
    assert not any(alive(member) for member in family)
    private_postgres.start()
    assert await _value(url, "SELECT answer FROM kept") == 42


async def test_a_restart_keeps_data_and_address(private_postgres: PostgresServer) -> None:
    url = private_postgres.url(tcp=True)
    await _value(url, "CREATE TABLE kept AS SELECT 42 AS answer")

    private_postgres.restart("immediate")

    assert await _value(url, "SELECT answer FROM kept") == 42


async def test_settings_are_a_parameter(private_postgres: PostgresServer) -> None:
    assert await _value(private_postgres.url(), "SHOW fsync") == "on"
    private_postgres.settings |= FAST
    private_postgres.restart()
    assert await _value(private_postgres.url(), "SHOW fsync") == "off"


def test_nothing_is_left_after_destroy() -> None:
    server = PostgresServer(FAST)
    server.start()
    folder, process = server.folder, psutil.Process(server.pid)

    server.destroy()

    assert not folder.exists()
    assert not alive(process)


@pytest.mark.chaos
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_the_server_does_not_outlive_its_parent() -> None:
    code = (
        "from harness.postgres import FAST, PostgresServer, _pristine\n"
        "server = PostgresServer(FAST)\n"
        "server.start()\n"
        "print(server.pid, server.folder, _pristine().data.parent, flush=True)\n"
        "input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        pid, *folders = parent.stdout.readline().split()
        server = psutil.Process(int(pid))
        os.kill(parent.pid, signal.SIGKILL)

    wait_for(lambda: not alive(server))
    for folder in folders:
        shutil.rmtree(folder)

    assert not alive(server)
