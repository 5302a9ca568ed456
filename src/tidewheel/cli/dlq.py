"""`tide dlq`: dead letters, by what they died of, and sending them round again."""

from typing import Annotated, Any, Final

import typer

from tidewheel.cli.asking import parse_arguments
from tidewheel.cli.job import COLUMNS as JOBS
from tidewheel.cli.job import Limit
from tidewheel.cli.lazy import group
from tidewheel.cli.picking import JobId, Kind, Queue, job_id
from tidewheel.cli.progress import progress
from tidewheel.cli.showing import Columns, Yes, confirm, show_list
from tidewheel.cli.verb import Session, verb
from tidewheel.model.checks import clean_text
from tidewheel.model.dead_letter import DeadGroup
from tidewheel.sdk.dead_letters import DeadOptions

app = group("Look after dead letters: jobs that ended without success.")

Fingerprint = Annotated[str | None, typer.Option(help="Only those with this fingerprint, as `groups` shows it.")]

GROUPS: Final[Columns[DeadGroup]] = {
    "fingerprint": lambda dead: dead.fingerprint,
    "jobs": lambda dead: dead.jobs,
    "last seen": lambda dead: dead.last_seen,
    "kind": lambda dead: dead.kind,
    "error": lambda dead: None if dead.error is None else clean_text(dead.error.message.partition("\n")[0], 100),
}


@verb(app)
def groups(session: Session, *, kind: Kind = None, queue: Queue = None, limit: Limit = 50) -> None:
    """Show what died of what, the largest group first."""
    with session.app() as tide:
        found = tide.dead_letters.groups(limit=limit, **_where(kind=kind, queue=queue))
    show_list(found, GROUPS, session.output)


@verb(app, "list")
def list_dead(
    session: Session,
    *,
    kind: Kind = None,
    queue: Queue = None,
    fingerprint: Fingerprint = None,
    limit: Limit = 50,
) -> None:
    """List dead letters, newest first."""
    with session.app() as tide:
        found = tide.dead_letters.list(limit=limit, **_where(kind=kind, queue=queue, fingerprint=fingerprint))
    show_list(found, JOBS, session.output)


@verb(app)
def redrive(
    session: Session,
    *,
    kind: Kind = None,
    queue: Queue = None,
    fingerprint: Fingerprint = None,
    rate: Annotated[
        float | None, typer.Option(help="How many become due in a second; all at once if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    yes: Yes = False,
) -> None:
    """Send dead letters round again. Interrupted, it may be begun anew: what went is no longer there."""
    where = _where(kind=kind, queue=queue, fingerprint=fingerprint)
    with session.app() as tide:
        number = tide.dead_letters.redrive(rate=rate, dry_run=True, **where)
        if dry_run:
            typer.echo(f"{number} would go")
            return
        if not confirm(number, "dead letters would go round again", yes=yes):
            raise typer.Abort
        with progress() as tell:
            sent = tide.dead_letters.redrive(
                rate=rate, told=lambda done: tell("dead letters", done, max(done, number)), **where
            )
    typer.echo(f"{sent} sent round again")


@verb(app)
def retry(
    session: Session,
    job: JobId,
    *,
    args: Annotated[str | None, typer.Option(help='Other arguments, as JSON: {"order": 7}.')] = None,
) -> None:
    """Send one dead letter round again, with other arguments if some are given."""
    with session.app() as tide:
        info = tide.dead_letters.retry(job_id(job), None if args is None else parse_arguments(args))
    typer.echo(f"{info.id} {info.state}")


def _where(**given: str | None) -> DeadOptions:
    chosen: Any = {name: value for name, value in given.items() if value is not None}
    return chosen  # type: ignore[no-any-return] # of just these names
