"""`tide keeper`: the chores, all of them until it is told to stop, or a piece of one now."""

from typing import Annotated, Any, Final

import msgspec
import typer
from typer.core import TyperGroup

from tidewheel.cli.options import Blobs, Database, default
from tidewheel.cli.verb import Session, verb
from tidewheel.cli.worker import (
    AlertBounds,
    KeepFor,
    LogFormat,
    LogLevel,
    MaxAge,
    MetricsHost,
    MetricsPortNumber,
    NotifyPrivate,
    OtelEndpoint,
    plan_of,
    run_worker,
)
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.keeper import Chore, chore_named, chores_of
from tidewheel.model.guessing import name_among
from tidewheel.model.retention import parse_upkeep
from tidewheel.observe.own_log import log_setup
from tidewheel.observe.tracing import check_endpoint
from tidewheel.store.base import Store
from tidewheel.wiring import is_server

DRAIN: Final = 5.0
"""Seconds that chores under way get to end after SIGTERM or Ctrl-C."""
_PATIENCE: Final = 60.0
"""Seconds for what a chore has left under way."""


class RunsByDefault(TyperGroup):
    """A group whose command `run` need not be named: `tide keeper --database …` is `tide keeper run --database …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Name it, if no other was."""
        named = bool(args) and (not args[0].startswith("-") or args[0] == "--help")
        return super().parse_args(ctx, args if named else ["run", *args])


app = typer.Typer(
    cls=RunsByDefault,
    help="Do the chores until SIGTERM or Ctrl-C; every server and worker does its share of them, too.",
    rich_markup_mode=None,
    add_completion=False,
)


@app.command()
def run(
    *,
    database: Database = default("database"),
    blobs: Blobs = default("blobs"),
    keep: KeepFor = default("keep"),
    max_age: MaxAge = default("max_age"),
    notify_private: NotifyPrivate = default("notify_private"),
    alert: AlertBounds = default("alert"),
    log_format: LogFormat = default("log_format"),
    log_level: LogLevel = default("log_level"),
    otel_endpoint: OtelEndpoint = default("otel_endpoint"),
    metrics_port: MetricsPortNumber = default("metrics_port"),
    metrics_host: MetricsHost = default("metrics_host"),
) -> None:
    """Do the chores until SIGTERM or Ctrl-C, and no jobs; `tide keeper` alone does the same.

    Any number of keepers may share one database. One is needed only where all servers and workers have --no-keeper.
    """
    if is_server(database):
        raise Invalid("database", "must be the database itself: the chores behind a server are done where that is")
    plan = msgspec.structs.replace(
        plan_of(database, app=None, blobs=blobs, slots=0),
        queues=(),
        inline=0,
        log=log_setup(log_format, log_level),
        otel=check_endpoint(otel_endpoint),
        metrics=None if metrics_port is None else (metrics_host, metrics_port),
        upkeep=parse_upkeep(keep, max_age, notify_private, alert),
    )
    run_worker(plan, DRAIN)


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
