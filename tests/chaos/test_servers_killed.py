"""Servers and workers are killed again and again under load: what was acknowledged is there, once, and runs."""

import asyncio
import random
import secrets

import pytest

from harness.arena import Arena
from harness.kinds import spec_of
from harness.nemesis import kill_server, kill_tree
from harness.reading import active
from tests.chaos.verdict import safe
from tidewheel.clock import SystemClock
from tidewheel.store.base import JobFilter

pytestmark = [pytest.mark.chaos, pytest.mark.proof]
CLOCK = SystemClock()
SECONDS = 8.0
CLIENTS = 4


async def load(arena: Arena, chance: random.Random, over: asyncio.Event) -> int:
    """Submit one job after the other; every fourth as if its answer had been lost. Return how many there were."""
    number = 0
    while not over.is_set():
        kind, args = chance.choice([("quick", {}), ("doze", {"seconds": 0.3}), ("nap", {"seconds": 0.3})])
        spec = spec_of(kind, arena.memory, secrets.token_hex(8), args)
        [first] = await arena.client.submit([spec])
        if chance.random() < 0.25:
            [again] = await arena.client.submit([spec])
            assert again == first
        number += 1
        await CLOCK.sleep(0.1)
    return number


async def kill_one_of_each(arena: Arena, chance: random.Random, over: asyncio.Event) -> None:
    until = CLOCK.monotonic() + SECONDS
    while CLOCK.monotonic() < until:
        await kill_server(arena, chance)
        await kill_tree(arena, chance)
        await CLOCK.sleep(chance.uniform(0.5, 1.5))
    over.set()


async def test_no_acknowledged_job_is_lost_or_doubled_while_servers_and_workers_die() -> None:
    chance, over = random.Random(17), asyncio.Event()
    async with Arena("postgres", workers=4, servers=2) as arena:
        # The first answer comes when a server is up.
        await arena.submit("quick")
        async with asyncio.TaskGroup() as group:
            clients = [group.create_task(load(arena, random.Random(turn), over)) for turn in range(CLIENTS)]
            group.create_task(kill_one_of_each(arena, chance, over))
        submitted = 1 + sum(client.result() for client in clients)
        await arena.until(lambda: _idle(arena), "all jobs to end")

        assert await _stored(arena) == submitted
        await safe(arena, kills=4, succeeded=20)


async def _idle(arena: Arena) -> bool:
    return await active(arena.store) == 0


async def _stored(arena: Arena) -> int:
    found, after = 0, None
    while True:
        page = await arena.store.find(JobFilter(), limit=500, after=after)
        found += len(page.jobs)
        if (after := page.next) is None:
            return found
