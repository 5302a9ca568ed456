"""`tide keeper`: the chores, for those who want to see one done."""

from typing import Annotated, Final

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.keeper import Chore, chore_named, chores_of
from tidewheel.model.guessing import name_among
from tidewheel.store.base import Store

_PATIENCE: Final = 60.0
"""Seconds for what a chore has left under way."""

app = group("Look at the chores that every worker does beside its jobs.")


@verb(app, "chores")
def list_chores(session: Session) -> None:
    """Print the names of the chores."""

    async def names(store: Store) -> list[str]:
        return [chore.name for chore in _chores(store)]

    typer.echo("\n".join(session.ask(names)))


@verb(app, "run-once")
def run_once(
    session: Session, chore: Annotated[str, typer.Argument(help="One of the names that `tide keeper chores` prints.")]
) -> None:
    """Do one piece of a chore now, whoever has its duty: a chore that is done twice does no harm."""

    async def do(store: Store) -> int:
        chores = _chores(store)
        name_among("chore", chore, [each.name for each in chores])
        wanted = chore_named(chores, chore)
        done = await wanted.run_once()
        await wanted.stop(_PATIENCE)
        return done

    typer.echo(f"{chore}: {session.ask(do)}")


def _chores(store: Store) -> list[Chore]:
    return chores_of(store, SystemClock())
