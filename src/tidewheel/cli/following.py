"""Watching a job until it ends: what it prints, and what becomes of it."""

from collections.abc import Callable
from typing import Final
from uuid import UUID

import typer

from tidewheel.clock import SystemClock
from tidewheel.model.harmless_text import clean_lines
from tidewheel.model.job import Job
from tidewheel.model.log import LogLine
from tidewheel.model.states import FINAL, State
from tidewheel.model.statuses import shown_as
from tidewheel.store.base import Store
from tidewheel.store.pages import fills_page

FAILED: Final = 1
"""The exit code for a job that did not succeed."""
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.25
PAGE: Final = 1000


async def follow(store: Store, job_id: UUID, tell: Callable[[str], None] | None = None) -> Job:
    """Print the lines of a job as they come, tell how it stands if someone wants to know, and return it at its end."""
    clock, pause, last = SystemClock(), FIRST_PAUSE, ""
    seen: tuple[int, int] | None = None
    while True:
        job = await store.get(job_id)  # before its lines: what it said is stored before its end
        if tell is not None and (now := standing(job)) != last:
            tell(last := now)
        lines = await store.logs(job_id, after=seen, limit=PAGE)
        for line in lines:
            print_line(line)
            seen = (line.token, line.number)
        if job.state in FINAL and not fills_page(lines, PAGE):
            return job
        await clock.sleep(pause)
        pause = FIRST_PAUSE if lines else min(2 * pause, LONGEST_PAUSE)


def standing(job: Job) -> str:
    """Return how a job stands, in a few words."""
    word = shown_as(job, SystemClock().now())
    why = "" if job.error is None else f": {job.error.message or job.error.reason}"
    return clean_lines(f"{word}, run {job.token}{why}" if job.token else f"{word}{why}")


def print_line(line: LogLine) -> None:
    """Print a line where the job had printed it."""
    typer.echo(clean_lines(line.text), err=line.stream != "stdout")


def exit_code(job: Job) -> int:
    """Return the exit code that stands for the end of a job, and say why if it is not a success."""
    if job.state is State.SUCCEEDED:
        return 0
    reason = "" if job.error is None else f": {job.error.message or job.error.reason}"
    typer.echo(clean_lines(f"tide: job {job.id} is {job.state}{reason}"), err=True)
    return FAILED
