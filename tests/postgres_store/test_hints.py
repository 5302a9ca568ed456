"""Hints by NOTIFY: after the commit, few, never in anyone's way, and back after a loss."""

import asyncio
from typing import Any

import pytest

from harness.postgres import PostgresServer
from tests.builders import HOUR, some_jobs
from tests.contract.postgres_backend import PostgresBackend
from tests.contract.steps import submit
from tests.postgres_store.tools import Connect, opened, soon, until
from tidewheel.store.base import Store
from tidewheel.store.bell import Bell
from tidewheel.store.postgres import PostgresStore, hints, migrate
from tidewheel.store.postgres.connection import SQL


async def rings(bell: Bell) -> bool:
    return await soon(bell.wait(HOUR.total_seconds()))


def healthy(bell: Bell) -> bool:
    """Ask anew each time, which a type checker does not expect of an attribute."""
    return bell.healthy


def hints_of(store: Store) -> hints.Hints:
    assert isinstance(store, PostgresStore)
    return store._hints


async def test_many_submits_make_few_notifications_and_the_last_is_told(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    """Each is told of after its commit: whoever looks when the last has come sees all jobs."""
    heard: list[int] = []
    connection = await connect(backend.url)
    other = await connect(backend.url)

    def hear(_connection: Any, pid: int, _channel: str, _payload: object) -> None:
        heard.append(pid)

    await connection.add_listener(hints.CHANNEL, hear)
    await submit(store)
    await asyncio.gather(*(store.submit(some_jobs(1)) for _ in range(200)))

    async def told() -> bool:
        return hints_of(store)._teller._task is None

    await until(told)
    await connection.execute("SELECT 1")
    assert 2 <= len(heard) < 150
    assert set(heard) == {hints_of(store)._teller.pid}
    assert await other.fetchval("SELECT count(*) FROM tidewheel.job WHERE state = 'queued'") == 201


async def test_a_notification_leaves_no_setting_behind(store: Store) -> None:
    await submit(store)
    teller = hints_of(store)._teller
    await until(lambda: _idle(teller))
    assert teller._connection is not None
    source = "SELECT source FROM pg_settings WHERE name = 'synchronous_commit'"
    assert await teller._connection.fetchval(source) != "session"
    assert "synchronous_commit = off" in SQL["notify"]


async def _idle(teller: hints.Teller) -> bool:
    return teller._task is None


async def test_no_submit_waits_for_its_notification(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hints, "GOODBYE", 0.01)
    never = asyncio.Event()

    async def dial() -> Any:
        await never.wait()

    teller = hints_of(store)._teller
    monkeypatch.setattr(teller, "_dial", dial)
    for _ in range(3):
        await soon(submit(store))
    assert teller._task is not None, "it still tries"
    await soon(store.close())


async def test_a_notification_that_fails_is_nobodys_trouble(
    store: Store, backend: PostgresBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the next one is sent: what it tells of is still there."""
    monkeypatch.setattr(hints, "AFTER_AN_ERROR", 0.001)
    teller = hints_of(store)._teller
    dial, failures = teller._dial, 0

    async def fail_at_first() -> Any:
        nonlocal failures
        failures += 1
        if failures <= 4:
            raise ConnectionRefusedError
        return await dial()

    monkeypatch.setattr(teller, "_dial", fail_at_first)
    other = await backend.open()
    async with other.listen() as bell:
        while await bell.wait(0):
            pass
        await submit(store)
        while failures <= 4:
            await submit(store)
        assert await rings(bell)


async def test_a_connection_that_was_cut_while_nothing_was_told_costs_no_hint(
    store: Store, backend: PostgresBackend
) -> None:
    await submit(store)
    teller = hints_of(store)._teller
    await until(lambda: _idle(teller))
    await backend.execute("SELECT pg_terminate_backend($1)", teller.pid)
    other = await backend.open()
    async with other.listen() as bell:
        while await bell.wait(0):
            pass
        await submit(store)
        assert await rings(bell)


LISTENING = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN%'"


async def test_a_store_listens_on_one_connection_while_anyone_listens(
    backend: PostgresBackend, store: Store, connect: Connect
) -> None:
    connection = await connect(backend.url)
    assert await connection.fetchval(LISTENING) == 0
    async with store.listen(), store.listen(), store.listen():
        assert await connection.fetchval(LISTENING) == 1

    async def none() -> bool:
        return bool(await connection.fetchval(LISTENING) == 0)

    await until(none)


@pytest.mark.chaos
async def test_a_server_that_is_down_makes_an_ailing_bell_that_recovers(private_postgres: PostgresServer) -> None:
    url = private_postgres.url()
    await migrate(url)
    async with opened(url) as store:
        private_postgres.stop("immediate")
        async with store.listen() as bell:
            assert not healthy(bell)
            private_postgres.start()
            while not healthy(bell):
                assert await rings(bell)
            async with opened(url) as other:
                while await bell.wait(0):
                    pass
                await submit(other)
                assert await rings(bell)


class Silent:
    """A connection that is open and on which no answer comes, as when a firewall has forgotten it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self.asked = asyncio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetchval(self, *_: Any, **__: Any) -> Any:
        self.asked.set()
        raise TimeoutError


async def test_a_connection_that_fell_silent_is_noticed_and_replaced(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hints, "CHECK_EVERY", 0.01)
    listener = hints_of(store)._listener
    dial = listener._dial
    dialled: list[Silent] = []

    async def dial_one_that_falls_silent() -> Any:
        if dialled:
            return await dial()
        dialled.append(Silent(await dial()))
        return dialled[0]

    monkeypatch.setattr(listener, "_dial", dial_one_that_falls_silent)
    async with store.listen() as bell:
        while not healthy(bell):
            assert await rings(bell)
        while not (dialled[0].asked.is_set() and dialled[0].is_closed()):
            assert await rings(bell)
        while not healthy(bell):
            assert await rings(bell)


async def test_who_does_not_hear_itself_does_not_rely_on_hints(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind a pooler that hands each transaction to another session."""
    monkeypatch.setitem(SQL, "notify", "SELECT 1")
    async with store.listen() as bell:
        await submit(store)
        teller = hints_of(store)._teller

        async def told() -> bool:
            return teller._task is None

        await until(told)
        assert not healthy(bell)


async def test_jobs_of_a_transaction_that_nobody_here_sees_are_told_of_until_it_may_have_ended(
    backend: PostgresBackend, store: Store
) -> None:
    other = await backend.open()
    async with other.listen() as bell:
        while not healthy(bell):
            assert await rings(bell)
        while await bell.wait(0):
            pass

        await store.expect_commit()

        for _ in range(2):
            assert await rings(bell)


async def test_what_comes_up_in_the_last_moment_of_telling_is_told(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the end of the task that tells and the word that it has ended."""
    teller = hints_of(store)._teller
    told: list[bool] = []

    async def notify() -> bool:
        told.append(True)
        return True

    class Brief:
        async def sleep(self, _: float) -> None:
            if len(told) == 1:
                asyncio.get_running_loop().call_soon(teller.tell)

    monkeypatch.setattr(teller, "_notify", notify)
    monkeypatch.setattr(teller, "_clock", Brief())
    teller.tell()

    async def twice() -> bool:
        return len(told) == 2

    await until(twice)
