"""`tide up`: everything that is needed on one machine, in one command."""

import asyncio
import contextlib
import logging
import signal
import uuid
from collections.abc import Coroutine

import typer
import uvloop

from tidewheel.cli.options import Database
from tidewheel.clock import SystemClock
from tidewheel.keeper import Keeper, chores_of
from tidewheel.wiring import DEFAULT_URL, database_of, without_secrets


def up(database: Database = DEFAULT_URL) -> None:
    """Start Tidewheel: bring the database up to date and keep it, until Ctrl-C.

    Takes back the runs of workers that died, lets start deadlines expire, and removes finished jobs: successes after
    7 days, others after 30.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    uvloop.run(_until_told(_up(database)))


async def _up(url: str) -> None:
    await database_of(url).migrate()
    store = await database_of(url).open()
    try:
        clock = SystemClock()
        keeper = Keeper(store, chores_of(store, clock), clock, uuid.uuid4())
        typer.echo(f"Tidewheel keeps {without_secrets(url)}. It runs no jobs yet: workers come next. Ctrl-C stops it.")
        await keeper.run()
    finally:
        await store.close()


async def _until_told(work: Coroutine[None, None, None]) -> None:
    """Do something until a signal comes, from its very beginning on."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, told.set)
    working, waiting = asyncio.ensure_future(work), asyncio.create_task(told.wait())
    await asyncio.wait((working, waiting), return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    working.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await working
    typer.echo("stopped")
