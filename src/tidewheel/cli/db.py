"""`tide db`: the schema of the database, and moving to another one."""

import asyncio

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.options import Database
from tidewheel.wiring import DEFAULT_URL, database_of, without_secrets

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


async def _upgrade(url: str) -> list[str]:
    return await database_of(url).migrate()


async def _check(url: str) -> int:
    return await database_of(url).check()


async def _sql(url: str) -> str:
    return await database_of(url).pending_sql()
