"""`tide job`: look at jobs and steer them."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import typer

from tidewheel.cli import bulk, following
from tidewheel.cli.lazy import group
from tidewheel.cli.outputs import outputs
from tidewheel.cli.picking import (
    PAGE,
    Before,
    Error,
    JobId,
    JobIds,
    Kind,
    Label,
    Queue,
    Search,
    Since,
    States,
    check_chosen,
    hint,
    job_id,
    parse_label,
    parse_moment,
    parse_states,
    unfinished,
    unsuccessful,
)
from tidewheel.cli.showing import Columns, Format, Yes, confirm, plain, show_list, show_one, show_value
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import Conflict
from tidewheel.model.job import Attempt, Job
from tidewheel.model.statuses import shown_as
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.pages import Page, fills_page
from tidewheel.tasks.durations import parse_duration

app = group("Look at jobs and steer them.")

Limit = Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many to show at most.")]
Cursor = Annotated[str | None, typer.Option("--cursor", help="Where to go on, as the page before said.")]


def _error(job: Job) -> str:
    return "" if job.error is None else (job.error.message or job.error.reason).partition("\n")[0][:80]


def _json(value: Any) -> str:
    return "" if value in (None, {}) else msgspec.json.encode(value).decode()


COLUMNS: Final[Columns[Job]] = {
    "id": lambda job: job.id,
    "kind": lambda job: job.name or job.kind,
    "queue": lambda job: job.queue,
    "priority": lambda job: job.priority.name.lower(),
    "state": lambda job: shown_as(job, SystemClock().now()),
    "due": lambda job: job.due_at,
    "runs": lambda job: job.token,
    "error": _error,
}
TRAITS: Final[Columns[Job]] = {
    **COLUMNS,
    "kind": lambda job: job.kind,
    "name": lambda job: job.name,
    "description": lambda job: job.description,
    "arguments": lambda job: _json(job.args),
    "labels": lambda job: " ".join(f"{name}={value}" for name, value in sorted(job.labels.items())),
    "limits": lambda job: " ".join(job.limit_keys),
    "after": lambda job: " ".join(map(str, job.after)),
    "schedule": lambda job: job.schedule_id,
    "trace": lambda job: job.traceparent,
    "timeout": lambda job: job.timeout,
    "attempts at most": lambda job: job.retry.max_attempts,
    "created": lambda job: job.created_at,
    "may run": lambda job: job.run_at,
    "last start": lambda job: job.last_started_at,
    "last end": lambda job: job.last_ended_at,
    "last worker": lambda job: job.last_worker,
    "progress": lambda job: None if job.progress is None else f"{job.progress:.0%} {job.progress_message}".rstrip(),
    "finished": lambda job: job.finished_at,
    "result": lambda job: job.result_location or _json(job.result),
}
ATTEMPTS: Final[Columns[Attempt]] = {
    "run": lambda attempt: attempt.token,
    "started": lambda attempt: attempt.started_at,
    "ended": lambda attempt: attempt.ended_at,
    "how": lambda attempt: attempt.cause,
    "error": lambda attempt: "" if attempt.error is None else attempt.error.message.partition("\n")[0][:80],
}


@verb(app, "list")
def list_jobs(
    session: Session,
    *,
    state: States = [],  # noqa: B006 - typer copies it
    kind: Kind = None,
    queue: Queue = None,
    label: Label = None,
    error: Error = None,
    search: Search = None,
    since: Since = None,
    before: Before = None,
    limit: Limit = 50,
    cursor: Cursor = None,
) -> None:
    """List jobs, newest first."""
    where = JobFilter(
        tenant=session.tenant,
        states=parse_states(state),
        kind=kind,
        queue=queue,
        label=parse_label(label),
        error=error,
        text=search,
        created_from=parse_moment(since, "since"),
        created_before=parse_moment(before, "before"),
    )
    after = None if cursor is None else job_id(cursor, "cursor")
    page, note = session.ask(partial(_page, where, limit, after))
    show_list(page.jobs, COLUMNS, session.output)
    if page.next is not None:
        typer.echo(f"there may be more: --cursor {page.next}", err=True)
    if note:
        typer.echo(f"tide: {note}", err=True)


async def _page(where: JobFilter, limit: int, after: Any, store: Store) -> tuple[Page, str]:
    page = await store.find(where, limit=limit, after=after)
    return page, "" if page.jobs else await hint(store, where)


@verb(app)
def show(session: Session, job: JobId) -> None:
    """Show all that is known of a job, and its attempts."""

    async def look(store: Store) -> tuple[Job, list[Attempt]]:
        return await store.get(job_id(job)), await store.attempts(job_id(job))

    info, attempts = session.ask(look)
    if session.output is Format.TABLE:
        show_one(info, TRAITS, session.output)
        if attempts:
            typer.echo("")
            show_list(attempts, ATTEMPTS, session.output)
        return
    show_value({**plain(info), "attempts": plain(attempts)}, session.output)


@verb(app)
def logs(
    session: Session,
    job: JobId,
    *,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job ends.")] = False,
) -> None:
    """Print what a job wrote, to the stream that it wrote to."""
    if follow:
        session.ask(lambda store: following.follow(store, job_id(job)))
        return
    for line in session.ask(partial(_all_lines, job)):
        following.print_line(line)


async def _all_lines(job: str, store: Store) -> list[Any]:
    lines = page = await store.logs(job_id(job), limit=following.PAGE)
    while fills_page(page, following.PAGE):
        page = await store.logs(job_id(job), after=(page[-1].token, page[-1].number), limit=following.PAGE)
        lines = [*lines, *page]
    return lines


@verb(app, "why")
def why_not(session: Session, job: JobId) -> None:
    """Say why a job does not run: each reason in a sentence."""
    reasons = session.ask(lambda store: store.why(job_id(job))).reasons
    if session.output is Format.TABLE:
        for reason in reasons:
            typer.echo(reason.sentence)
    else:
        show_value(reasons, session.output)


@verb(app)
def result(
    session: Session,
    job: JobId,
    *,
    wait: Annotated[str | None, typer.Option("--wait", help="How long to wait for its end, such as 5m.")] = None,
) -> None:
    """Print the result of a job as JSON; exit with 1 if it ended without one, or has not ended yet."""
    with session.app() as tide:
        handle = tide.job(job_id(job))
        try:
            found = handle.result(timeout=0 if wait is None else parse_duration(wait, "wait"))
        except TimeoutError as error:
            raise Conflict(f"{error}: wait for it by --wait 5m") from None
    show_value(found, session.output)


verb(app)(outputs)


@verb(app)
def cancel(
    session: Session,
    jobs: JobIds = [],  # noqa: B006 - typer copies it
    *,
    state: States = [],  # noqa: B006
    kind: Kind = None,
    queue: Queue = None,
    label: Label = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who look at the job.")] = "",
    yes: Yes = False,
) -> None:
    """Cancel jobs: those that wait never start, those that run are asked to stop.

    Of jobs that are named by their ids, one that there is not keeps no other from it; then it exits with 1.
    """
    where = JobFilter(
        tenant=session.tenant, states=parse_states(state), kind=kind, queue=queue, label=parse_label(label)
    )
    check_chosen(jobs, where)
    open_ones = msgspec.structs.replace(where, states=unfinished(where.states))
    if jobs:
        _cancel_named(session, [job_id(each) for each in jobs], reason)
        return
    number = bulk.count(session, open_ones)
    if not confirm(number, "jobs would be cancelled", yes=yes):
        raise typer.Abort
    _cancel_matching(session, open_ones, number, reason)


def _cancel_named(session: Session, ids: Sequence[UUID], reason: str) -> None:
    """Cancel each, whatever becomes of the others, and say what became of each."""
    done = session.ask(lambda store: bulk.cancel_all(store, ids, reason))
    show_list(done.ends, bulk.COLUMNS, session.output)
    for error in done.refused:
        typer.echo(f"tide: {error}", err=True)
    if done.refused:
        raise typer.Exit(following.FAILED)


def _cancel_matching(session: Session, where: JobFilter, number: int, reason: str) -> None:
    """Cancel all that fit; people are told how many there were, and programs which."""
    states: Counter[str] = Counter()
    ends: list[bulk.Cancelled] = []

    async def act(store: Store, ids: Sequence[UUID]) -> None:
        done = (await bulk.cancel_all(store, ids, reason)).ends
        states.update(end.state for end in done)
        ends.extend(done if session.output is not Format.TABLE else ())

    bulk.act_on_pages(session, where, number, act)
    if session.output is not Format.TABLE:
        show_value(ends, session.output)
    else:
        typer.echo(f"{states['cancelled']} cancelled, {states['cancelling']} asked to stop")


@verb(app)
def retry(
    session: Session,
    jobs: JobIds = [],  # noqa: B006 - typer copies it
    *,
    state: States = [],  # noqa: B006
    kind: Kind = None,
    queue: Queue = None,
    label: Label = None,
    yes: Yes = False,
) -> None:
    """Send jobs round again that ended without success: the dead ones, unless --state says others, too."""
    where = JobFilter(
        tenant=session.tenant, states=parse_states(state), kind=kind, queue=queue, label=parse_label(label)
    )
    check_chosen(jobs, where)
    ended = msgspec.structs.replace(where, states=unsuccessful(where.states))
    chosen = [job_id(each) for each in jobs]
    number = len(chosen) or bulk.count(session, ended)
    if not jobs and not confirm(number, "jobs would be sent round again", yes=yes):
        raise typer.Abort
    tried, sent = 0, 0

    async def send(store: Store, ids: Sequence[UUID]) -> None:
        nonlocal tried, sent
        tried, sent = tried + len(ids), sent + len(await store.redrive(ids))

    async def send_named(store: Store) -> None:
        for first in range(0, len(chosen), PAGE):
            await send(store, chosen[first : first + PAGE])

    if jobs:
        session.ask(send_named)
    else:
        bulk.act_on_pages(session, ended, number, send)
    typer.echo(f"{sent} sent round again")
    if sent < tried:
        typer.echo(f"tide: {tried - sent} were left alone: they succeeded, have not ended, or are gone", err=True)
        raise typer.Exit(following.FAILED)
