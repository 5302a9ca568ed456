"""`tide db`: the schema of the database, and moving to another one."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Final

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.options import Database
from tidewheel.cli.progress import progress
from tidewheel.clock import SystemClock
from tidewheel.store.copying import copy as copy_all
from tidewheel.wiring import DEFAULT_URL, copy_source, copy_target, database_of, without_secrets

INTERRUPTED: Final = 130
"""The exit code of what was stopped by Ctrl-C."""

app = group("Look after the database: its schema, and moving to another one.")


@app.command()
def upgrade(database: Database = DEFAULT_URL) -> None:
    """Bring the schema up to date. Safe to repeat, and to run from several hosts at once."""
    applied = asyncio.run(_upgrade(database))
    for name in applied:
        typer.echo(f"applied {name}")
    typer.echo(f"{without_secrets(database)} is up to date")


@app.command()
def check(database: Database = DEFAULT_URL) -> None:
    """Tell whether this program fits the schema; exit with 1 and say what to do if it does not."""
    number = asyncio.run(_check(database))
    typer.echo(f"{without_secrets(database)} has schema {number}, which this program fits")


@app.command()
def sql(database: Database = DEFAULT_URL) -> None:
    """Print the SQL that `upgrade` would run now, for those who apply it by hand."""
    typer.echo(asyncio.run(_sql(database)) or "-- nothing to do")


@app.command()
def restored(database: Database = DEFAULT_URL) -> None:
    """Say that a backup was put back, or that a replica took over which had not heard of all: a new epoch begins.

    Before anything is started on it. Runs that were begun since the backup have tokens that will be given out again;
    the epoch, which tasks see as the first half of their fencing token, tells them apart.
    """
    typer.echo(f"{without_secrets(database)} is in epoch {asyncio.run(_begin_epoch(database))}")


@app.command()
def copy(
    *,
    to: Annotated[str, typer.Option("--to", help="An empty database on PostgreSQL: postgresql://user@host/name.")],
    database: Database = DEFAULT_URL,
    restart: Annotated[
        bool, typer.Option("--restart", help="Remove what an unfinished copy has brought there, and begin anew.")
    ] = False,
) -> None:
    """Copy all that a SQLite file has into an empty database on PostgreSQL.

    Stop all that uses the file first. If it is interrupted, run it again and it goes on. Nobody can open the new
    database before all is there and the numbers of rows were compared. The file stays as it is.
    """
    try:
        with progress("rows") as tell:
            counts = asyncio.run(_copy(database, to, tell, restart=restart))
    except KeyboardInterrupt:
        typer.echo("tide: stopped in the middle; the same command goes on with it", err=True)
        raise typer.Exit(INTERRUPTED) from None
    typer.echo(f"copied {sum(counts.values())} rows in {len(counts)} tables; the numbers agree")
    typer.echo("from now on name the new one, by --database or TIDE_DATABASE")


async def _copy(url: str, to: str, tell: Callable[[str, int, int], None], *, restart: bool) -> Mapping[str, int]:
    target = await copy_target(to)
    try:
        source = copy_source(url, SystemClock())
        try:
            return await copy_all(source, target, tell, restart=restart)
        finally:
            source.close()
    finally:
        await target.close()


async def _begin_epoch(url: str) -> int:
    store = await database_of(url).open()
    try:
        return await store.begin_epoch()
    finally:
        await store.close()


async def _upgrade(url: str) -> list[str]:
    return await database_of(url).migrate()


async def _check(url: str) -> int:
    return await database_of(url).check()


async def _sql(url: str) -> str:
    return await database_of(url).pending_sql()
