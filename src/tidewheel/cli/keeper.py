"""`tide keeper`: the chores, for those who want to see one done."""

import asyncio
from typing import Annotated

import typer

from tidewheel.cli.options import Database
from tidewheel.clock import SystemClock
from tidewheel.keeper import Chore, chore_named, chores_of
from tidewheel.store.base import Store
from tidewheel.wiring import DEFAULT_URL, open_store

app = typer.Typer(
    help="Look at the chores that every worker does beside its jobs, unless told not to.", no_args_is_help=True
)


@app.command("chores")
def list_chores(database: Database = DEFAULT_URL) -> None:
    """Print the names of the chores."""

    async def names() -> list[str]:
        store = await open_store(database)
        try:
            return [chore.name for chore in _chores(store)]
        finally:
            await store.close()

    typer.echo("\n".join(asyncio.run(names())))


@app.command("run-once")
def run_once(
    chore: Annotated[str, typer.Argument(help="One of the names that `tide keeper chores` prints.")],
    database: Database = DEFAULT_URL,
) -> None:
    """Do one piece of a chore now, whoever has its duty: a chore that is done twice does no harm."""

    async def do() -> int:
        store = await open_store(database)
        try:
            return await chore_named(_chores(store), chore).run_once()
        finally:
            await store.close()

    typer.echo(f"{chore}: {asyncio.run(do())}")


def _chores(store: Store) -> list[Chore]:
    return chores_of(store, SystemClock())
