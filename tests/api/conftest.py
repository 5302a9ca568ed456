"""A real server over loopback, on each of the stores."""

import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.builders import a_claim, a_worker, outcome_of
from tidewheel.blobs import Blobs, open_blobs
from tidewheel.clock import SystemClock
from tidewheel.model.log import LogLine
from tidewheel.model.states import Cause
from tidewheel.server import Address, Service, Serving, build_app
from tidewheel.server.access import Door, Keyless
from tidewheel.server.app import App
from tidewheel.server.serving import Certificate, Reservation
from tidewheel.store.base import Store
from tidewheel.wiring import open_store

CLOCK = SystemClock()
SECRETS_KEY = "MTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTE="


@dataclass
class Api:
    """A server, a client that speaks to it, and what is behind it."""

    client: httpx.AsyncClient
    service: Service
    app: App
    store: Store
    blobs: Blobs
    address: Address
    door: Door

    async def submit(self, **fields: Any) -> UUID:
        """Submit a job and return its id."""
        answer = await self.client.post("/v1/jobs", json={"kind": "mail"} | fields)
        assert answer.status_code == 202, answer.text
        return UUID(answer.json()["id"])

    async def get(self, job_id: object) -> dict[str, Any]:
        answer = await self.client.get(f"/v1/jobs/{job_id}")
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    async def run(self, cause: Cause = Cause.RETURNED, lines: Sequence[str] = (), **fields: Any) -> UUID:
        """Claim one job, let it say something, and end it."""
        worker = await self.store.register(a_worker())
        claimed = await self.store.claim(a_claim(worker.id, 1))
        [run] = claimed.runs
        now = CLOCK.now()
        await self.store.append_logs(
            [LogLine(run.job_id, run.token, number, now, "stdout", None, text) for number, text in enumerate(lines)]
        )
        await self.store.settle(worker.id, [outcome_of(run, cause, **fields)])
        return run.job_id


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Return the problem that an answer must be."""
    assert answer.headers["content-type"] == "application/problem+json", answer.text
    found: dict[str, Any] = answer.json()
    assert (answer.status_code, found["status"], found["code"]) == (status, status, code), answer.text
    assert found["request_id"] == answer.headers["x-request-id"]
    return found


def make_certificate(folder: Path) -> Certificate:
    """Make a certificate for 127.0.0.1 and 127.0.0.2 that nobody but its file vouches for."""
    made = Certificate(folder / "cert.pem", folder / "key.pem")
    words = ["-subj", "/CN=tidewheel", "-addext", "subjectAltName=IP:127.0.0.1,IP:127.0.0.2", "-days", "1", "-nodes"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    files = ["-keyout", str(made.key), "-out", str(made.chain)]
    subprocess.run(["openssl", "req", "-x509", *kind, *words, *files], check=True, capture_output=True, timeout=60)
    return made


@asynccontextmanager
async def serving(
    database: str, folder: Path, certificate: Certificate | None = None, blobs_url: str | None = None
) -> AsyncIterator[Api]:
    """Serve a database on a port of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIDE_SECRETS_KEY", SECRETS_KEY)
        store = await open_store(database)
    blobs = open_blobs(blobs_url or (folder / "blobs").as_uri())
    service = Service(store, blobs, CLOCK)
    reserved = Reservation(Address(port=0))
    door = Door(store, CLOCK, keyless=Keyless.UNTIL_A_KEY)
    app = build_app(service, door)
    server = Serving(app, service, reserved.address, CLOCK, certificate)
    url = reserved.address.url_by("http" if certificate is None else "https")
    await server.start()
    try:
        async with httpx.AsyncClient(base_url=url, timeout=30, verify=False) as client:
            yield Api(client, service, app, store, blobs, reserved.address, door)
    finally:
        await server.stop(5)
        reserved.close()
        await service.close()
        await door.close()
        await store.close()


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/tide.db"
    url: str = request.getfixturevalue("postgres_database")
    return url


@pytest.fixture
async def api(database: str, tmp_path: Path) -> AsyncIterator[Api]:
    """On both stores."""
    async with serving(database, tmp_path) as served:
        yield served


@pytest.fixture
async def lone_api(tmp_path: Path) -> AsyncIterator[Api]:
    """On SQLite alone, for what has nothing to do with a store."""
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as served:
        yield served


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out what takes each process of a run seconds to collect, if none of it is asked for."""
    if collection_path.name == "test_whole_schema.py" and "not proof" in config.option.markexpr:
        return True
    return None
