"""`tide submit`: hand over a command or a task to be run, and wait for it if wished."""

import os
from typing import Annotated, Any

import msgspec
import typer

from tidewheel.cli import following
from tidewheel.cli.asking import Wishes, Work, job_of
from tidewheel.cli.options import IdempotencyKey, parse_instant
from tidewheel.cli.picking import job_id
from tidewheel.cli.showing import Format, show_value
from tidewheel.cli.verb import Session, with_session
from tidewheel.errors import Invalid
from tidewheel.model.job import Job, JobSpec
from tidewheel.model.states import State
from tidewheel.model.trace import trace_of
from tidewheel.observe.tracing import sending
from tidewheel.store.base import Store
from tidewheel.tasks.definition import COMMAND
from tidewheel.tasks.scheduling import schedule_of

At = Annotated[str | None, typer.Option(help="When to run it, such as 2030-01-01T12:00:00+01:00.")]
Delay = Annotated[str | None, typer.Option("--in", help="After how long to run it, such as 5m.")]
CronText = Annotated[
    str | None, typer.Option("--cron", help='Run it again and again: "0 5 * * *" or @daily. Makes a schedule.')
]
Every = Annotated[str | None, typer.Option("--every", help="Run it again and again, such as every 10m: a schedule.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="The zone of --cron, such as Europe/Paris.")]
Name = Annotated[str | None, typer.Option("--name", help="The name of the job, or of the schedule.")]
After = Annotated[list[str], typer.Option("--after", help="The id of a job that must have ended before; repeatable.")]
Wait = Annotated[bool, typer.Option("--wait", help="Wait for its end and print its output; exit with 1 if it failed.")]
Follow = Annotated[bool, typer.Option("--follow", help="As --wait, and say how it stands whenever that changes.")]


class When(msgspec.Struct, frozen=True, kw_only=True):
    """When to run it, as it was typed."""

    at: At = None
    delay: Delay = None
    cron: CronText = None
    every: Every = None
    timezone: Timezone = None

    @property
    def again(self) -> bool:
        """Whether it is to run again and again."""
        return self.cron is not None or self.every is not None


class Once(msgspec.Struct, frozen=True, kw_only=True):
    """What only a single job has, as it was typed."""

    after: After = []
    key: IdempotencyKey = None
    wait: Wait = False
    follow: Follow = False


@with_session
def submit(session: Session, work: Work, when: When, wishes: Wishes, once: Once, *, name: Name = None) -> None:
    """Hand over a command or a task to be run; print the id of the job.

    Examples: `tide submit --wait -- echo hello`, `tide submit --task shop.greet --args '{"name": "Ada"}'`,
    `tide submit --cron "0 5 * * *" --timezone Europe/Paris -- backup.sh`
    """
    if when.again:
        alien = {"at": when.at, "in": when.delay, **msgspec.structs.asdict(once)}
        if option := next((option for option, value in alien.items() if value), None):
            raise Invalid(option, "is for a single job, and --cron and --every make a schedule")
        plan = {"cron": when.cron, "every": when.every, "timezone": when.timezone, "name": name or _name_of(work)}
        _schedule(session, job_of(session, work, wishes.options), plan)
        return
    single = {
        "run_at": None if when.at is None else parse_instant(when.at, "at"),
        "delay": when.delay,
        "after": [job_id(each, "after") for each in once.after] or None,
        "idempotency_key": once.key,
        "name": name,
    }
    options: Any = {**wishes.options, **{option: value for option, value in single.items() if value is not None}}
    _submit(session, job_of(session, work, options), wait=once.wait or once.follow, tell=once.follow)


def _schedule(session: Session, job: JobSpec, when: dict[str, Any]) -> None:
    spec = schedule_of(job, {option: value for option, value in when.items() if value is not None})
    made = session.ask(lambda store: store.create_schedule(spec))
    if session.output is not Format.TABLE:
        show_value(made, session.output)
        return
    typer.echo(made.id)
    typer.echo(f"schedule {made.name} runs next at {made.next_fire_at}; see `tide schedule show {made.name}`", err=True)


def _name_of(work: Work) -> str | None:
    """Return a name for a schedule: that of the program; a task gives its own."""
    if work.task is not None or not work.argv:
        return None
    return work.argv[0].rpartition("/")[2]


def _submit(session: Session, spec: JobSpec, *, wait: bool, tell: bool) -> None:
    async def hand_over(store: Store) -> tuple[Any, Job | None]:
        with sending([spec], trace_of(os.environ.get("TRACEPARENT"), os.environ.get("TRACESTATE"))) as specs:
            [answer] = await store.submit(specs)
        if session.output is Format.TABLE:
            typer.echo(answer.job_id, err=wait)
        told = (lambda text: typer.echo(f"tide: {text}", err=True)) if tell else None
        return answer, await following.follow(store, answer.job_id, told) if wait else None

    answer, job = session.ask(hand_over)
    if session.output is not Format.TABLE:
        show_value(answer if job is None else job, session.output)
    elif job is not None and job.state is State.SUCCEEDED and job.kind != COMMAND:
        show_value(job.result)
    if job is not None and (code := following.exit_code(job)):
        raise typer.Exit(code)
