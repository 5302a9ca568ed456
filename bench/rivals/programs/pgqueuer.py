"""PgQueuer on asyncpg and uvloop, in batches of 200."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg
import uvloop
from pgqueuer import PgQueuer, Queries
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, Send, payload, url

BATCH = 200


class Program:
    async def prepare(self) -> None:
        connection = await asyncpg.connect(url())
        await Queries(AsyncpgDriver(connection)).install()
        await connection.close()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Send]:
        connection = await asyncpg.connect(url())
        queries = Queries(AsyncpgDriver(connection))

        async def send(numbers: Sequence[int]) -> None:
            count = len(numbers)
            await queries.enqueue([NAME] * count, [payload(number) for number in numbers], [0] * count)

        yield send
        await connection.close()

    def work(self) -> None:
        uvloop.run(_work())


async def _work() -> None:
    queue = PgQueuer(AsyncpgDriver(await asyncpg.connect(url())))

    @queue.entrypoint(NAME)
    async def noop(job: Job) -> None:
        began(json.loads(job.payload or b"")["number"])

    await queue.run(batch_size=BATCH)


program = Program()
