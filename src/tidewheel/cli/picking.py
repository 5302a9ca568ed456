"""Which jobs a command is about: by their ids, or by what they have in common."""

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Annotated, Final
from uuid import UUID

import typer

from tidewheel.cli.options import parse_instant, parse_labels
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid, TideError
from tidewheel.model.checks import parse_duration
from tidewheel.model.guessing import did_you_mean, name_among
from tidewheel.model.states import FINAL, State
from tidewheel.store.base import JobFilter, Store

PAGE: Final = 500
"""How many jobs are looked up at once, and sent round in one transaction."""

JobId = Annotated[str, typer.Argument(metavar="JOB", help="The id of the job.")]
JobIds = Annotated[list[str], typer.Argument(metavar="[JOB]...", help="The ids of the jobs; or say which by options.")]
States = Annotated[list[str], typer.Option("--state", help=f"One of {', '.join(State)}; may be repeated.")]
Kind = Annotated[str | None, typer.Option("--kind", help="Only jobs of this kind: the name of their task.")]
Queue = Annotated[str | None, typer.Option("--queue", help="Only jobs of this queue.")]
Label = Annotated[str | None, typer.Option("--label", help="Only jobs with this label, such as team=web.")]
Error = Annotated[
    str | None,
    typer.Option("--error", help="Only jobs that ended with this in the message of their error, as it is written."),
]
Since = Annotated[
    str | None, typer.Option("--since", help="Only jobs made since then: an instant, or how long ago, such as 2h.")
]
Before = Annotated[str | None, typer.Option("--before", help="Only jobs made before that; written as --since is.")]
Search = Annotated[
    str | None,
    typer.Option(
        "--search",
        help="Only jobs with all these words in kind, name, description, labels or the error at their end; or an id.",
    ),
]


def job_id(text: str, field: str = "job") -> UUID:
    """Return the id that a text stands for."""
    try:
        return UUID(text)
    except ValueError:
        raise Invalid(field, f"must be the id of a job, as `tide job list` shows it, not {text[:40]!r}") from None


def parse_states(texts: Iterable[str]) -> frozenset[State] | None:
    """Return the states of these names; none given stands for all."""
    return frozenset(name_among("state", text, list(State)) for text in texts) or None


def parse_label(text: str | None) -> tuple[str, str] | None:
    """Return the name and value of a label."""
    return None if text is None else next(iter(parse_labels([text]).items()))


async def pages(store: Store, where: JobFilter) -> AsyncIterator[list[UUID]]:
    """Return the jobs that fit, page by page; those that were asked to stop already are left out."""
    after: UUID | None = None
    while where.states:
        page = await store.find(where, limit=PAGE, after=after)
        yield [job.id for job in page.jobs if not job.cancelling]
        if (after := page.next) is None:
            return


def parse_moment(text: str | None, field: str) -> datetime | None:
    """Return the instant that a text stands for, which may say how long ago that was."""
    if text is None:
        return None
    try:
        ago = parse_duration(text, field)
    except Invalid:
        return parse_instant(text, field)
    return before_now(ago, text, field)


def before_now(ago: timedelta, text: str, field: str) -> datetime:
    """Return when that was; `text` is how it was written."""
    try:
        return SystemClock().now() - ago
    except OverflowError:
        raise Invalid(field, f"must not lie before the year 1, as {text[:40]} ago does") from None


async def hint(store: Store, where: JobFilter) -> str:
    """Return which queue or kind may have been meant by a filter that names one that there is not; or nothing."""
    try:
        rows = (await store.counts(tenant=where.tenant)).rows
    except TideError:  # a server may not say, and this was only a courtesy
        return ""
    for field, given in (("queue", where.queue), ("kind", where.kind)):
        known = sorted({getattr(row, field) for row in rows})
        if given is not None and given not in known and (guess := did_you_mean(given, known)):
            return f"there is no {field} {given}{guess}"
    return ""


def unfinished(states: frozenset[State] | None) -> frozenset[State]:
    """Return those of the states in which a job can still be cancelled."""
    return (states or frozenset(State)).difference(FINAL)


def unsuccessful(states: frozenset[State] | None) -> frozenset[State]:
    """Return those of the states from which a job can be sent round again."""
    return (states or frozenset((State.DEAD,))).intersection(FINAL) - {State.SUCCEEDED}


def check_chosen(ids: Sequence[str], where: JobFilter) -> None:
    """Refuse to do something to all jobs because nothing was said."""
    chosen = (where.states, where.kind, where.queue, where.label)
    if bool(ids) == any(part is not None for part in chosen):
        raise Invalid("job", "name jobs by their ids, or say which by --state, --kind, --queue or --label")
