"""A server with a real hot standby, which follows its primary by streaming."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import psycopg
import pytest

from harness.postgres import PostgresServer
from tests.api.test_processes import COMMAND, tide
from tests.postgres import prepare_template
from tests.worker.running import until

pytestmark = pytest.mark.proof


@pytest.fixture
def standby(private_postgres: PostgresServer) -> Iterator[PostgresServer]:
    """A standby of the private server, with the schema."""
    prepare_template(private_postgres.url())
    with PostgresServer(standby_of=private_postgres) as server:
        yield server


def tell(server: PostgresServer, statement: str) -> None:
    with psycopg.connect(server.url(), autocommit=True) as connection:
        connection.execute(statement)


def has(server: PostgresServer, job_id: str) -> bool:
    with psycopg.connect(server.url()) as connection:
        return connection.execute("SELECT FROM tidewheel.job WHERE id = %s", [job_id]).fetchone() is not None


def submit(client: httpx.Client) -> str:
    answer = client.post("/v1/jobs", json=COMMAND)
    assert answer.status_code == 202, answer.text
    job_id: str = answer.json()["id"]
    return job_id


def listed(client: httpx.Client) -> set[str]:
    answer = client.get("/v1/jobs?limit=200")
    assert answer.status_code == 200, answer.text
    return {job["id"] for job in answer.json()["jobs"]}


def stale(client: httpx.Client, standby: PostgresServer) -> str:
    """Stop the standby's replay just after it had heard something; return a job that only the primary has."""

    def not_listed() -> str | None:
        tell(standby, "SELECT pg_wal_replay_resume()")
        heard = submit(client)
        until(lambda: has(standby, heard), "the standby to hear of it")
        tell(standby, "SELECT pg_wal_replay_pause()")
        unheard = submit(client)
        return None if unheard in listed(client) else unheard

    return until(not_listed, "a list that comes from the standby")


def test_lists_come_from_a_standby_until_it_lags_or_dies(
    tmp_path: Path, private_postgres: PostgresServer, standby: PostgresServer
) -> None:
    words = ("server", "--port", "0", "--no-keeper", "--database", private_postgres.url(), "--replica", standby.url())
    with tide(tmp_path, "server", *words) as (_, client):
        unheard = stale(client, standby)
        assert client.get(f"/v1/jobs/{unheard}").status_code == 200, "what a standby lacks may be new"
        until(lambda: unheard in listed(client), "the primary to be asked in place of a standby that lags")
        assert not has(standby, unheard), "it lags still"

        unheard = stale(client, standby)  # once it keeps up it is asked again
        standby.kill()
        assert unheard in listed(client), "one that dies is made up for at once"
        standby.start()
        stale(client, standby)

        tell(standby, "SELECT pg_wal_replay_resume()")
        last = submit(client)
        until(lambda: has(standby, last), "the standby to hear of it")
        private_postgres.kill()
        until(lambda: client.post("/v1/jobs", json=COMMAND).status_code == 503, "the primary to be gone")
        assert last in listed(client), "without its primary the standby answers"
