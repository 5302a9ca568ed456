"""`tide logs`: search what runs wrote, or follow it."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
import typer

from tidewheel.cli.picking import before_now
from tidewheel.cli.showing import Columns, Format, show_list
from tidewheel.cli.verb import Session, with_session
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.checks import parse_duration
from tidewheel.model.harmless_text import clean_lines
from tidewheel.model.log_query import FoundLine, LogFilter, LogKey, LogSearch
from tidewheel.store.base import Store
from tidewheel.store.log_following import follow as follow_lines

PAGE: Final = 200
MOST_PAGES: Final = 1000
PAUSE: Final = 0.25

Words = Annotated[
    list[str] | None, typer.Argument(help='Words, "a phrase", begin*, field:value; put -- before one with a minus.')
]
Kind = Annotated[str | None, typer.Option("--kind", help="Only of jobs of this kind.")]
Queue = Annotated[str | None, typer.Option("--queue", help="Only of jobs of this queue.")]
JobOption = Annotated[str | None, typer.Option("--job", help="Only of this job.")]
Level = Annotated[str | None, typer.Option("--level", help="Only this level, or one of more weight.")]
Since = Annotated[str | None, typer.Option("--since", help="Only what was stored that long ago at most, such as 2h.")]
Last = Annotated[int, typer.Option("--last", min=1, max=10_000, help="How many lines to show at most.")]
Follow = Annotated[bool, typer.Option("--follow", "-f", help="Go on with what is stored from now on, until Ctrl-C.")]

COLUMNS: Final[Columns[FoundLine]] = {
    "at": lambda found: found.line.at,
    "kind": lambda found: found.kind,
    "job": lambda found: found.line.job_id,
    "level": lambda found: found.line.level,
    "text": lambda found: found.line.text,
}


@with_session
def logs(
    session: Session,
    *,
    words: Words = None,
    kind: Kind = None,
    queue: Queue = None,
    job: JobOption = None,
    level: Level = None,
    since: Since = None,
    last: Last = 50,
    follow: Follow = False,
) -> None:
    """Search what runs wrote, the oldest of what was found first; or follow it."""
    where = LogFilter(
        text=" ".join(_quoted(words or ())),
        tenant=session.tenant,
        kind=kind,
        queue=queue,
        job_id=None if job is None else _job_id(job),
        level=level,
        since=None if since is None else before_now(parse_duration(since, "since"), since, "since"),
    )
    LogSearch(where)  # says what is wrong before anything is opened
    if follow:
        session.ask(lambda store: _follow(store, where, session.output))
    else:
        show_list(session.ask(lambda store: _find(store, where, last)), COLUMNS, session.output, _document)


async def _find(store: Store, where: LogFilter, most: int) -> list[FoundLine]:
    lines: list[FoundLine] = []
    after: LogKey | None = None
    for _ in range(MOST_PAGES):
        page = await store.search_logs(where, limit=min(PAGE, most - len(lines)), after=after)
        lines += page.lines
        after = page.next
        if after is None or len(lines) >= most:
            break
    return lines[::-1]


async def _follow(store: Store, where: LogFilter, output: Format) -> None:
    follower = await follow_lines(store, where)
    clock = SystemClock()
    try:
        while True:
            lines = await follower.news()
            for found in lines:
                typer.echo(_line(found, output))
            if not lines:
                await clock.sleep(PAUSE)
    except asyncio.CancelledError:  # Ctrl-C
        return


def _line(found: FoundLine, output: Format) -> str:
    if output is not Format.TABLE:
        return msgspec.json.encode(_document(found)).decode()
    return clean_lines(f"{found.line.at:%H:%M:%S} {found.kind} {found.line.job_id} {found.line.text}")


def _document(found: FoundLine) -> Any:
    line = msgspec.to_builtins(found.line)
    return {**line, "kind": found.kind, "queue": found.queue, "tenant": found.tenant}


def _quoted(words: Sequence[str]) -> list[str]:
    """Return words as one would write them in one line: what the shell has held together stays together."""
    return [f'"{word}"' if " " in word and '"' not in word else word for word in words]


def _job_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid("job", f"must be the id of a job, not {text[:40]!r}") from None
