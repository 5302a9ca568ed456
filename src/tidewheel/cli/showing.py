"""How short commands ask the store, and show what they found: as columns for people, or as JSON for programs."""

import asyncio
import enum
import getpass
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Annotated, Any, TypeVar

import msgspec
import typer

from tidewheel.model.access import Actor, Role
from tidewheel.store.base import Store
from tidewheel.wiring import open_store

T = TypeVar("T")


class Format(enum.StrEnum):
    """What a command prints."""

    TEXT = "text"
    JSON = "json"


Output = Annotated[Format, typer.Option("--output", "-o", help="text for people, json for programs.")]


def with_store(url: str, work: Callable[[Store], Awaitable[T]]) -> T:
    """Open a store for one piece of work."""

    async def run() -> T:
        store = await open_store(url)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


def show_json(value: Any) -> None:
    """Print a value as JSON."""
    typer.echo(msgspec.json.format(msgspec.json.encode(value)).decode())


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns as wide as they must be."""
    cells = [list(head), *([_text(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def whoever_types() -> Actor:
    """Return who acts at this machine: whoever reaches the database itself may do all there is."""
    try:
        return Actor(role=Role.ADMIN, name=f"cli:{getpass.getuser()}")
    except (KeyError, OSError):  # a user without a name, as in a container
        return Actor(role=Role.ADMIN, name="cli")


def _text(cell: Any) -> str:
    if cell is None:
        return "-"
    return cell.isoformat(sep=" ", timespec="minutes") if isinstance(cell, datetime) else str(cell)
