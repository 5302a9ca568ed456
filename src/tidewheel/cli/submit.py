"""`tide submit`: hand over a command to be run, and wait for it if wished."""

from datetime import datetime
from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer
import uvloop

from tidewheel.cli.options import Database, parse_labels
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.job import Job, JobSpec, Options
from tidewheel.model.log import LogLine
from tidewheel.model.priority import parse_priority
from tidewheel.model.states import FINAL, State
from tidewheel.store.base import Store
from tidewheel.tasks.builtin import CommandCall, check_command
from tidewheel.tasks.definition import COMMAND
from tidewheel.tasks.durations import parse_duration
from tidewheel.wiring import DEFAULT_URL, open_store

FAILED: Final = 1
"""The exit code for a job that did not succeed and has none of its own."""
FIRST_PAUSE: Final = 0.02
LONGEST_PAUSE: Final = 0.25
PAGE: Final = 1000

Argv = Annotated[list[str], typer.Argument(help="The command and its arguments, after --.")]
At = Annotated[str | None, typer.Option(help="When to run it, such as 2030-01-01T12:00:00+01:00.")]
After = Annotated[str | None, typer.Option("--in", help="After how long to run it, such as 5m.")]
Level = Annotated[str, typer.Option(help="high, medium or low.")]
Queue = Annotated[str, typer.Option(help="The queue to put it in.")]
Key = Annotated[str | None, typer.Option(help="An idempotency key: the same key twice makes one job.")]
Label = Annotated[list[str], typer.Option(help="A label, such as team=web; may be given several times.")]
Timeout = Annotated[str, typer.Option(help="How long one attempt may take.")]
Attempts = Annotated[int, typer.Option(help="How often it is tried in all.", min=1)]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end, print its output, and end with its exit code.")]


def submit(
    argv: Argv,
    *,
    database: Database = DEFAULT_URL,
    at: At = None,
    after: After = None,
    priority: Level = "medium",
    queue: Queue = "default",
    key: Key = None,
    label: Label = [],  # noqa: B006 - typer copies it
    timeout: Timeout = "5m",
    attempts: Attempts = 5,
    wait: Wait = False,
) -> None:
    """Hand over a command to be run by a worker; print the id of the job.

    Example: tide submit --wait -- echo hello
    """
    options = Options(timeout=parse_duration(timeout, "timeout"))
    options = msgspec.structs.replace(options, retry=msgspec.structs.replace(options.retry, max_attempts=attempts))
    spec = JobSpec(
        kind=COMMAND,
        args=msgspec.to_builtins(check_command(CommandCall(argv=argv))),
        queue=queue,
        priority=parse_priority(priority),
        labels=parse_labels(label),
        options=options,
        run_at=None if at is None else _instant(at),
        delay=None if after is None else parse_duration(after, "in"),
        idempotency_key=key,
    )
    code = uvloop.run(_submit(database, spec, wait=wait))
    if code:
        raise typer.Exit(code)


async def _submit(url: str, spec: JobSpec, *, wait: bool) -> int:
    store = await open_store(url)
    try:
        [answer] = await store.submit([spec])
        typer.echo(answer.job_id, err=wait)
        return await _follow(store, answer.job_id) if wait else 0
    finally:
        await store.close()


async def _follow(store: Store, job_id: UUID) -> int:
    """Print the output of a job as it comes, and return its exit code."""
    clock, pause = SystemClock(), FIRST_PAUSE
    seen: tuple[int, int] | None = None
    while True:
        job = await store.get(job_id)  # before its lines: what it said is stored before its end
        lines = await store.logs(job_id, after=seen, limit=PAGE)
        for line in lines:
            _print(line)
            seen = (line.token, line.number)
        if job.state in FINAL and len(lines) < PAGE:
            return _exit_code(job)
        await clock.sleep(pause)
        pause = FIRST_PAUSE if lines else min(2 * pause, LONGEST_PAUSE)


def _print(line: LogLine) -> None:
    typer.echo(line.text, err=line.stream != "stdout")


def _exit_code(job: Job) -> int:
    if job.state is State.SUCCEEDED:
        return 0
    reason = "" if job.error is None else f": {job.error.message or job.error.reason}"
    typer.echo(f"tide: job {job.id} is {job.state}{reason}", err=True)
    code = None if job.error is None else job.error.exit_code
    return code if code is not None and 0 < code < 256 else FAILED  # noqa: PLR2004 - what a process can say


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except ValueError as error:
        raise Invalid("at", f"must be a date and time such as 2030-01-01T12:00:00Z, not {text[:40]!r}") from error
    return instant if instant.tzinfo is not None else instant.astimezone()
