"""Lists are read from a replica while it keeps up, and from the primary when it does not or is down."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.api.conftest import CLOCK, Api, serving
from tests.api.test_processes import COMMAND, tide
from tests.postgres import SharedPostgres
from tidewheel.errors import Invalid, Unavailable
from tidewheel.server.views import MOST_LAG, Views
from tidewheel.store.replica import ReplicaStore
from tidewheel.wiring import open_store, replica_of

NOWHERE = "postgresql://tide@127.0.0.1:9/none"
NIGHTLY = {"name": "nightly", "kind": "report", "cron": "@daily"}


@pytest.fixture
def other_database(postgres_server: SharedPostgres, tmp_path: Path) -> str:
    """A database of its own: a replica that is so far behind that it has nothing at all."""
    name = f"tide_replica_{tmp_path.name.replace('-', '_')}"[:60].lower()
    postgres_server.execute(f"CREATE DATABASE {name} TEMPLATE {postgres_server.template}")
    return postgres_server.database_url(name)


@asynccontextmanager
async def with_replica(api: Api, url: str) -> AsyncIterator[Views]:
    """Give a server a replica, and wait until it was looked at."""
    views = Views(api.store, CLOCK, replica_of(url))
    api.service.views = views
    views.start()
    try:
        yield views
    finally:
        await views.close()


async def until_it_keeps_up(views: Views, *, wanted: bool = True) -> None:
    async with asyncio.timeout(20):
        while views.keeps_up is not wanted:
            await CLOCK.sleep(0.02)


async def ids(api: Api, path: str = "/v1/jobs") -> list[str]:
    answer = await api.client.get(path)
    assert answer.status_code == 200, answer.text
    return [job["id"] for job in answer.json()["jobs"]]


async def test_lists_come_from_the_replica_and_what_it_lacks_from_the_primary(
    postgres_database: str, other_database: str, tmp_path: Path
) -> None:
    async with serving(postgres_database, tmp_path) as api, with_replica(api, other_database) as views:
        job_id = await api.submit()
        await until_it_keeps_up(views)

        assert await ids(api) == []  # the replica has heard of nothing
        assert (await api.get(job_id))["id"] == str(job_id)
        made = await api.client.post("/v1/schedules", json=NIGHTLY)
        changed = await api.client.patch(made.headers["location"], json={}, headers={"if-match": '"1"'})
        assert changed.status_code == 200  # whoever changes something reads it from the primary


async def test_a_replica_that_lags_is_not_asked(
    postgres_database: str, other_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(postgres_database, tmp_path) as api, with_replica(api, other_database) as views:
        job_id = await api.submit()
        await until_it_keeps_up(views)
        assert await ids(api) == []

        async def late() -> float:
            return MOST_LAG + 1

        monkeypatch.setattr(views._replica, "lag", late)
        await until_it_keeps_up(views, wanted=False)
        assert await ids(api) == [str(job_id)]


async def test_a_replica_that_breaks_down_in_the_middle_is_made_up_for_at_once(
    postgres_database: str, other_database: str, tmp_path: Path
) -> None:
    async with serving(postgres_database, tmp_path) as api, with_replica(api, other_database) as views:
        job_id = await api.submit()
        await until_it_keeps_up(views)
        assert views._replica is not None
        await views._replica.close()

        assert await ids(api) == [str(job_id)]


async def test_without_a_primary_the_replica_answers_however_late_it_is(
    postgres_database: str, other_database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = await open_store(other_database)
    async with serving(postgres_database, tmp_path) as api, with_replica(api, other_database) as views:
        await until_it_keeps_up(views)
        views._keeps_up = False

        async def gone(*_: object, **__: object) -> None:
            raise Unavailable("the primary is gone")

        monkeypatch.setattr(api.store, "find", gone)
        assert await ids(api) == []
    await replica.close()


async def test_a_real_database_is_no_standby_and_lags_by_nothing(postgres_database: str) -> None:
    replica: ReplicaStore = await replica_of(postgres_database)()
    try:
        assert await replica.lag() == 0
    finally:
        await replica.close()


def test_only_postgresql_has_replicas() -> None:
    with pytest.raises(Invalid, match="replica: must be postgresql://"):
        replica_of("sqlite:///jobs.db")


@pytest.mark.slow
def test_a_server_whose_replica_is_stopped_works(tmp_path: Path, postgres_database: str) -> None:
    words = ("server", "--port", "0", "--no-keeper", "--database", postgres_database, "--replica", NOWHERE)
    with tide(tmp_path, "server", *words) as (_, client):
        job = client.post("/v1/jobs", json=COMMAND)
        assert job.status_code == 202
        assert [one["id"] for one in client.get("/v1/jobs").json()["jobs"]] == [job.json()["id"]]
