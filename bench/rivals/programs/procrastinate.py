"""Procrastinate on psycopg, twenty jobs at once; finished jobs stay, as they do by default."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from procrastinate import App, PsycopgConnector

from bench.rivals.programs.marks import began
from bench.rivals.programs.program import NAME, PAD, Send, url

CONCURRENCY = 20
app = App(connector=PsycopgConnector(conninfo=url(), min_size=1, max_size=CONCURRENCY + 4))


@app.task(name=NAME)
async def noop(number: int, pad: str) -> None:  # noqa: ARG001 - a row like real ones
    began(number)


class Program:
    async def prepare(self) -> None:
        async with app.open_async():
            await app.schema_manager.apply_schema_async()

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Send]:
        async def send(numbers: Sequence[int]) -> None:
            await noop.batch_defer_async(*[{"number": number, "pad": PAD} for number in numbers])

        async with app.open_async():
            yield send

    def work(self) -> None:
        asyncio.run(_work())


async def _work() -> None:
    async with app.open_async():
        await app.run_worker_async(concurrency=CONCURRENCY)


program = Program()
