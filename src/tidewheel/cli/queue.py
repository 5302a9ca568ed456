"""`tide queue`: what waits where, and how much may."""

from collections import Counter
from datetime import timedelta
from typing import Annotated, Final, get_args

import msgspec
import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.options import OverflowName
from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import NotFound
from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.guessing import did_you_mean, name_among
from tidewheel.model.priority import Priority
from tidewheel.model.states import State
from tidewheel.store.base import Counts, Store

app = group("See what waits in which queue, and bound how much may.")

STALE: Final = timedelta(minutes=2)
"""The age of numbers that nobody seems to renew."""

Name = Annotated[str, typer.Argument(metavar="QUEUE", help="The queue.")]


class QueueLine(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of one queue."""

    queue: str
    high: int
    medium: int
    low: int
    running: int
    succeeded: int
    dead: int
    most: int | None = None
    """How many may wait."""


COLUMNS: Final[Columns[QueueLine]] = {
    "queue": lambda line: line.queue,
    "high": lambda line: line.high,
    "medium": lambda line: line.medium,
    "low": lambda line: line.low,
    "running": lambda line: line.running,
    "succeeded": lambda line: line.succeeded,
    "dead": lambda line: line.dead,
    "cap": lambda line: line.most,
}
CAPS: Final[Columns[QueueCap]] = {
    "queue": lambda cap: cap.queue,
    "cap": lambda cap: cap.most,
    "overflow": lambda cap: cap.overflow,
}


@verb(app, "list")
def list_queues(session: Session) -> None:
    """List the queues: how many jobs wait by priority, run, and have ended. Those that wait are up to 10 s old."""

    async def look(store: Store) -> tuple[Counts, list[QueueCap]]:
        return await store.counts(tenant=session.tenant), await store.caps(tenant=session.tenant)

    counts, caps = session.ask(look)
    show_list(_lines(counts, {cap.queue: cap.most for cap in caps}), COLUMNS, session.output)
    if SystemClock().now() - counts.as_of > STALE:
        typer.echo("tide: waiting jobs were counted long ago: no worker does the chores; start one", err=True)


@verb(app)
def cap(
    session: Session,
    queue: Name,
    most: Annotated[int, typer.Argument(metavar="MOST", min=1, help="How many jobs may wait in it.")],
    *,
    overflow: OverflowName = "reject",
) -> None:
    """Let at most so many jobs wait in a queue."""
    made = QueueCap(session.tenant, queue, most, name_among("overflow", overflow, get_args(Overflow)))
    session.ask(lambda store: store.set_cap(made))
    show_list([made], CAPS, session.output)


@verb(app)
def uncap(session: Session, queue: Name) -> None:
    """Let any number of jobs wait in a queue."""

    async def take_away(store: Store) -> None:
        try:
            await store.remove_cap(queue, tenant=session.tenant)
        except NotFound:
            known = [each.queue for each in await store.caps(tenant=session.tenant)]
            raise NotFound("cap on queue", f"{queue}{did_you_mean(queue, known)}") from None

    session.ask(take_away)
    typer.echo(f"{queue} has no cap")


def _lines(counts: Counts, caps: dict[str, int]) -> list[QueueLine]:
    numbers: Counter[tuple[str, str]] = Counter()
    for row in counts.rows:
        waits = row.state in (State.QUEUED, State.LIMITED, State.BLOCKED)
        column = Priority(row.priority).name.lower() if waits and row.priority is not None else row.state.value
        numbers[row.queue, column] += row.jobs
    shown = ("high", "medium", "low", "running", "succeeded", "dead")
    queues = sorted({queue for queue, _ in numbers} | caps.keys())
    return [
        QueueLine(queue=queue, most=caps.get(queue), **{column: numbers[queue, column] for column in shown})
        for queue in queues
    ]
