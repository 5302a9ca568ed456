"""The PostgreSQL server of a test run, shared by all its processes, and a database of its own for each test.

The server belongs to the process that controls the run, and is started when the first test asks for it. The other
processes ask the controller by a socket, so there is one server, one template, and one place that takes them away.
"""

import asyncio
import functools
import os
import secrets
import threading
from collections.abc import Coroutine, Iterator
from contextlib import suppress
from importlib import import_module
from multiprocessing.connection import Client, Listener
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import pytest

from harness.postgres import DURABLE, FAST, PostgresServer
from tests.database_pool import DatabasePool, maintenance, prepare_restoring

MIGRATE: Final = ("tidewheel.store.postgres.migrate", "migrate")
"""Module and coroutine function that bring an empty database, given by its URL, to the current schema."""

SESSIONS: Final = 400
"""Tests of races open several stores, and as many such tests run at once as the run has processes."""

_DESK: Final = pytest.StashKey["ServerDesk"]()
_ADDRESS: Final = "postgres_desk"


class SharedPostgres(NamedTuple):
    """A server with a migrated template on it."""

    url: str
    template: str

    def database_url(self, name: str) -> str:
        """Return the URL of another database of this server."""
        return urlunsplit(urlsplit(self.url)._replace(path=f"/{name}"))

    def execute(self, statement: str) -> None:
        """Run one statement in the server's maintenance database."""
        maintenance(self.url).execute(statement.encode())

    def pool(self, template: str | None = None) -> DatabasePool:
        """Return the databases of this process that are copies of a template, of the migrated one if not told."""
        return _pool(self.url, template or self.template)

    def leave(self) -> None:
        """End the session of this process."""
        maintenance(self.url).close()
        maintenance.cache_clear()


class ServerDesk:
    """Lives in the controller: starts the server at the first question, answers all, and clears up."""

    def __init__(self) -> None:
        self._listener = Listener(family="AF_UNIX")
        self._lock = threading.Lock()
        self._own: PostgresServer | None = None
        self._shared: SharedPostgres | None = None
        # The thread lasts as long as the process, which matters: the server ends with the thread that started it.
        threading.Thread(target=self._serve, daemon=True, name="postgres-desk").start()

    @property
    def address(self) -> str:
        return str(self._listener.address)

    def close(self) -> None:
        with self._lock:  # not while the server is being started
            if self._shared is not None and self._own is None:
                self._shared.execute(f"DROP DATABASE IF EXISTS {self._shared.template} WITH (FORCE)")
            if self._shared is not None:
                self._shared.leave()
            if self._own is not None:
                self._own.destroy()

    def _serve(self) -> None:
        while True:
            with suppress(OSError, EOFError), self._listener.accept() as connection:
                try:
                    with self._lock:
                        connection.send(self._server())
                except Exception as failure:  # noqa: BLE001 - the test that asked shall report it
                    connection.send(RuntimeError(f"no PostgreSQL for this run: {failure!r}"))

    def _server(self) -> SharedPostgres:
        if self._shared is None:
            url = os.environ.get("TIDE_TEST_POSTGRES_URL")
            if not url:
                self._own = PostgresServer({**FAST, "max_connections": str(SESSIONS)}, in_memory=True)
                self._own.start()
                url = self._own.url()
            shared = SharedPostgres(url, f"tide_template_{secrets.token_hex(4)}")
            shared.execute(f"CREATE DATABASE {shared.template}")
            prepare_template(shared.database_url(shared.template))
            self._shared = shared
        return self._shared


def prepare_template(url: str) -> None:
    """Migrate the database from which those of the tests are copied."""
    module, function = MIGRATE
    try:
        migrate = getattr(import_module(module), function)
    except ModuleNotFoundError as missing:
        if missing.name is None or not module.startswith(missing.name):
            raise
        return  # the store is still to come: the template stays empty
    _complete(migrate(url))
    prepare_restoring(url)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.stash[_DESK] = ServerDesk()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Run at the end of the controller, after Ctrl-C too."""
    if _DESK in config.stash:
        config.stash[_DESK].close()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process of the run where to ask; called in the controller."""
    node.workerinput[_ADDRESS] = node.config.stash[_DESK].address


@pytest.fixture(scope="session")
def postgres_server(pytestconfig: pytest.Config) -> Iterator[SharedPostgres]:
    """The server that all tests share; do not stop it, take `private_postgres` for that."""
    worker: dict[str, str] | None = getattr(pytestconfig, "workerinput", None)
    address = worker[_ADDRESS] if worker is not None else pytestconfig.stash[_DESK].address
    with Client(address, family="AF_UNIX") as connection:
        answer = connection.recv()
    if isinstance(answer, Exception):
        raise answer
    assert isinstance(answer, SharedPostgres)
    yield answer
    answer.pool().close()
    answer.leave()


@pytest.fixture
def postgres_database(postgres_server: SharedPostgres) -> Iterator[str]:
    """The URL of a migrated database that is as good as new."""
    pool = postgres_server.pool()
    name = pool.take()
    yield postgres_server.database_url(name)
    pool.give_back(name)


@pytest.fixture
def new_postgres_database(postgres_server: SharedPostgres) -> Iterator[str]:
    """The URL of a migrated database that nobody has used: what others counted and left in theirs is part of plans."""
    pool = postgres_server.pool()
    name = pool.make()
    yield postgres_server.database_url(name)
    pool.drop(name)


@pytest.fixture
def private_postgres() -> Iterator[PostgresServer]:
    """A durable server for one test alone, which may stop and kill it. Takes half a second; has no template."""
    with PostgresServer(DURABLE) as server:
        yield server


@functools.cache
def _pool(url: str, template: str) -> DatabasePool:
    return DatabasePool(url, template)


def _complete(work: Coroutine[Any, Any, None]) -> None:
    # asyncio.run would take the place of the loop that pytest-asyncio has set for this thread; a factory does not.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        runner.run(work)
