"""Following lines on PostgreSQL, where a commit may come long after the lines were stored."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from harness.postgres import PostgresServer
from tests.builders import a_job
from tests.contract.test_log_search import say
from tests.postgres_store.tools import Connect, Raw, opened, until
from tidewheel.clock import SystemClock
from tidewheel.model.log_query import LogFilter
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.log_following import Follower, follow
from tidewheel.store.postgres import log_lines
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.migrate import migrate
from tidewheel.store.postgres.store import open_replica

LONG = 3.0
"""Seconds for which a transaction stays open."""
EVERYTHING = LogFilter()


async def a_run(store: Store) -> UUID:
    [answer] = await store.submit([a_job()])
    return answer.job_id


async def append(connection: Raw, job_id: UUID, number: int, texts: Sequence[str]) -> None:
    """Append lines as a store does, within whatever transaction there is."""
    lines = "\n".join([f'[1,{[0] * len(texts)},"{"o" * len(texts)}"]', *texts])
    places = ("{1}", f"{{{number}}}", f"{{{number + len(texts) - 1}}}", "{NULL}")
    await connection.execute(SQL["append_logs"], [job_id], *places, [lines], len(texts), len(lines), "{NULL}")


async def told(follower: Follower) -> list[str]:
    return [one.line.text for one in await follower.news()]


async def test_lines_whose_commit_takes_seconds_are_told_once(postgres_database: str, connect: Connect) -> None:
    slow, clock = await connect(postgres_database), SystemClock()
    async with opened(postgres_database) as store:
        job_id = await a_run(store)
        follower = await follow(store, EVERYTHING)
        held = slow.transaction()
        await held.start()
        await append(slow, job_id, 0, ["late 0", "late 1"])
        heard: list[str] = []
        end, number = clock.monotonic() + LONG, 10
        while clock.monotonic() < end:
            await say(store, job_id, [f"quick {number}"], number)
            heard += await told(follower)
            await store.index_logs()
            await clock.sleep(0.05)
            number += 1
        assert heard == [f"quick {n}" for n in range(10, number)]
        await held.commit()
        assert await told(follower) == ["late 0", "late 1"]
        assert await told(follower) == []


async def test_who_begins_while_a_commit_is_awaited_hears_its_lines_and_no_others(
    postgres_database: str, connect: Connect
) -> None:
    slow = await connect(postgres_database)
    async with opened(postgres_database) as store:
        job_id = await a_run(store)
        await say(store, job_id, ["old"])
        held = slow.transaction()
        await held.start()
        await append(slow, job_id, 5, ["late"])
        await say(store, job_id, ["old as well"], 1)
        follower = await follow(store, EVERYTHING)
        assert await told(follower) == []
        await held.commit()
        assert await told(follower) == ["late"]
        await say(store, job_id, ["new"], 2)
        assert await told(follower) == ["new"]


async def test_what_was_stored_twice_is_told_once_whichever_commit_came_first(
    postgres_database: str, connect: Connect
) -> None:
    """After an error with unknown outcome lines are sent again, and the first ones may be stored after all."""
    slow = await connect(postgres_database)
    async with opened(postgres_database) as store:
        job_id = await a_run(store)
        follower = await follow(store, EVERYTHING)
        held = slow.transaction()
        await held.start()
        await append(slow, job_id, 0, ["once"])
        await append(await connect(postgres_database), job_id, 0, ["once"])
        assert await told(follower) == ["once"]
        await held.commit()
        assert await told(follower) == []
        await say(store, job_id, ["next"], 1)
        assert await told(follower) == ["next"]


async def test_a_transaction_that_is_given_up_keeps_nobody_waiting(postgres_database: str, connect: Connect) -> None:
    slow = await connect(postgres_database)
    async with opened(postgres_database) as store:
        job_id = await a_run(store)
        follower = await follow(store, EVERYTHING)
        held = slow.transaction()
        await held.start()
        await append(slow, job_id, 0, ["never"])
        await held.rollback()
        await say(store, job_id, ["line"])
        assert await told(follower) == ["line"]
        assert await told(follower) == []


@pytest.mark.parametrize("named", [5, 100])
async def test_many_transactions_under_way_lose_and_double_nothing(
    postgres_database: str, connect: Connect, monkeypatch: pytest.MonkeyPatch, named: int
) -> None:
    """If they are more than a sight names, it says less than could be seen, and lines are told when it is certain."""
    monkeypatch.setattr(log_lines, "MOST_UNDER_WAY", named)
    heard: list[str] = []
    async with opened(postgres_database) as store:
        job_id = await a_run(store)
        follower = await follow(store, EVERYTHING)
        connections = [await connect(postgres_database) for _ in range(20)]
        for number, connection in enumerate(connections):
            await connection.execute("BEGIN")
            await append(connection, job_id, number, [f"held {number}"])
        for number, connection in enumerate(reversed(connections)):
            await say(store, job_id, [f"quick {number}"], 100 + number)
            heard += await told(follower)
            await connection.execute("COMMIT")

        async def all_told() -> bool:
            heard.extend(await told(follower))
            return len(heard) >= 40

        await until(all_told)
        assert sorted(heard) == sorted(f"{how} {n}" for how in ("held", "quick") for n in range(20))
        assert await told(follower) == []


@pytest.mark.slow
async def test_at_a_standby_each_line_is_told_once_too(private_postgres: PostgresServer, connect: Connect) -> None:
    """It does not say which transactions are under way."""
    url = private_postgres.url()
    await migrate(url)
    with PostgresServer(standby_of=private_postgres) as standby:
        slow = await connect(url)
        replica = await open_replica(standby.url())
        heard: list[str] = []
        async with opened(url) as store:
            job_id = await a_run(store)

            async def has_the_job() -> bool:
                return bool((await replica.find(JobFilter())).jobs)

            await until(has_the_job)
            follower = await follow(replica, EVERYTHING)
            held = slow.transaction()
            await held.start()
            await append(slow, job_id, 0, ["late"])
            for number in range(1, 4):
                await say(store, job_id, [f"quick {number}"], number)

            async def has_the_others() -> bool:
                heard.extend(await told(follower))
                return len((await replica.search_logs(EVERYTHING)).lines) == 3

            await until(has_the_others)
            await held.commit()

            async def all_told() -> bool:
                heard.extend(await told(follower))
                return len(heard) >= 4

            await until(all_told)
            assert sorted(heard) == ["late", "quick 1", "quick 2", "quick 3"]
            assert await told(follower) == []
        await replica.close()
        await slow.close()
