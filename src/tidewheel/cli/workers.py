"""`tide workers`: who is there to run jobs."""

from typing import Annotated, Final

import typer

from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, with_session
from tidewheel.model.worker import Worker


def _offer(worker: Worker) -> str:
    named = [f"{name}={amount}" for name, amount in sorted(worker.offer.resources.items())]
    return " ".join([*named, *(f"{name}={value}" for name, value in sorted(worker.offer.labels.items()))])


COLUMNS: Final[Columns[Worker]] = {
    "id": lambda worker: worker.id,
    "name": lambda worker: worker.name,
    "alive": lambda worker: worker.alive,
    "queues": lambda worker: " ".join(worker.queues),
    "offers": _offer,
    "since": lambda worker: worker.registered_at,
    "last beat": lambda worker: worker.beat_at,
    "ended": lambda worker: worker.ended_at,
}


@with_session
def workers(
    session: Session, *, everyone: Annotated[bool, typer.Option("--all", help="Also those of the last day.")] = False
) -> None:
    """List the workers that are alive, newest first."""
    found = session.ask(lambda store: store.workers(alive=None if everyone else True))
    show_list(found, COLUMNS, session.output)
