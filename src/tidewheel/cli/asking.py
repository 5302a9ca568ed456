"""What a job is to run: a command, or a task by its name. For single jobs and for schedules alike."""

import asyncio
import os
import re
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from tidewheel.blobs import open_blobs
from tidewheel.cli.options import Blobs, parse_labels
from tidewheel.cli.verb import Session
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.guessing import name_among
from tidewheel.model.job import JobSpec
from tidewheel.model.resources import parse_resources
from tidewheel.sdk import builtin
from tidewheel.sdk.app import App
from tidewheel.sdk.options import JobOptions, spec_of
from tidewheel.sdk.task import Signature
from tidewheel.tasks.binding import ENDLESS
from tidewheel.tasks.builtin import check_call
from tidewheel.tasks.definition import TaskOptions
from tidewheel.tasks.loading import load_registry
from tidewheel.wiring import blobs_url

Argv = Annotated[list[str], typer.Argument(metavar="[-- COMMAND...]", help="The command and its arguments, after --.")]
TaskName = Annotated[
    str | None, typer.Option("--task", help="In place of a command: the kind of a task, such as shop.greet.")
]
Args = Annotated[str | None, typer.Option("--args", help='The arguments of the task, as JSON: {"name": "Ada"}.')]
AppName = Annotated[
    str | None,
    typer.Option("--app", help="The app of the task, as package.module:attribute; its arguments are checked then."),
]
Artifact = Annotated[
    str | None,
    typer.Option(
        help="A file that is sent along and is the program, or named {artifact} in the command; or its SHA-256."
    ),
]
Wants = Annotated[
    list[str], typer.Option("--resource", help="What a worker must have free for it, such as memory=2GiB; repeatable.")
]
Apart = Annotated[
    str | None,
    typer.Option(
        "--isolation",
        help="How far a command is kept apart: none, standard or strict, and never less than its worker demands.",
    ),
]
Yielding = Annotated[
    str | None,
    typer.Option(
        "--preempt",
        help="What may happen to a command for a more urgent job: never, pause or requeue.  [default: never]",
    ),
]
Level = Annotated[str | None, typer.Option("--priority", help="high, medium or low.  [default: medium]")]
QueueName = Annotated[str | None, typer.Option("--queue", help="The queue to put it in.  [default: default]")]
Labels = Annotated[list[str], typer.Option("--label", help="A label, such as team=web; may be repeated.")]
Timeout = Annotated[str | None, typer.Option("--timeout", help="How long one attempt may take.  [default: 5m]")]
Attempts = Annotated[int | None, typer.Option("--attempts", help="How often it is tried in all.  [default: 5]", min=1)]

_is_digest: Final = re.compile(r"[0-9a-f]{64}").fullmatch


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, as it was typed."""

    argv: Argv = []
    task: TaskName = None
    args: Args = None
    app: AppName = None
    artifact: Artifact = None
    blobs: Blobs = None
    resource: Wants = []
    isolation: Apart = None
    preempt: Yielding = None

    @property
    def given(self) -> bool:
        """Whether anything was."""
        others = (self.task, self.artifact, *self.standing.values())
        return bool(self.argv or self.resource) or any(other is not None for other in others)

    @property
    def standing(self) -> dict[str, str]:
        """How a command stands to the machine and to other runs, as far as that was given."""
        given = {"isolation": self.isolation, "preempt": self.preempt}
        return {name: value for name, value in given.items() if value is not None}


class Wishes(msgspec.Struct, frozen=True, kw_only=True):
    """How to run it, as it was typed."""

    priority: Level = None
    queue: QueueName = None
    label: Labels = []
    timeout: Timeout = None
    attempts: Attempts = None

    @property
    def options(self) -> JobOptions:
        """The options of a job that were given."""
        given = {"priority": self.priority, "queue": self.queue, "timeout": self.timeout, "retry": self.attempts}
        wishes: Any = {name: value for name, value in given.items() if value is not None}
        if self.label:
            wishes["labels"] = parse_labels(self.label)
        return wishes  # type: ignore[no-any-return] # of just these names


def job_of(session: Session, work: Work, wishes: JobOptions) -> JobSpec:
    """Return the job that was asked for."""
    spec = _job_of(session, work, wishes)
    if not work.resource:
        return spec
    if not all(text.strip() for text in work.resource):
        raise Invalid("resource", "must be name=amount, such as memory=2GiB")
    wanted = parse_resources(",".join(work.resource), "resource")
    resources = {**spec.needs.resources, **wanted}
    return msgspec.structs.replace(spec, needs=msgspec.structs.replace(spec.needs, resources=resources))


def _job_of(session: Session, work: Work, wishes: JobOptions) -> JobSpec:
    if work.task is None:
        return _command(session, work, wishes)
    if work.argv or work.artifact is not None:
        raise Invalid("task", "cannot be given together with a command")
    for option in work.standing:
        raise Invalid(option, "is for a command: a task has what it is declared with")
    args = {} if work.args is None else parse_arguments(work.args)
    if work.app is None:
        check_call(work.task, args)
        now = SystemClock().now()
        return spec_of(work.task, args, TaskOptions(), wishes, now, tenant=session.tenant)
    app = load_registry(work.app)
    assert isinstance(app, App)
    definition = app.registry.get(name_among("task", work.task, sorted(each.kind for each in app.registry)))
    assert definition is not None
    whose: JobOptions = {"tenant": session.tenant, **wishes}
    return Signature[Any](app, definition, whose, (), args, immutable=True).spec()


def parse_arguments(text: str) -> dict[str, Any]:
    """Return arguments that were given as JSON."""
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise Invalid("args", f'must be a JSON object such as {{"order": 7}}: {error}') from None
    except RecursionError:
        raise Invalid("args", ENDLESS) from None


def _command(session: Session, work: Work, wishes: JobOptions) -> JobSpec:
    if work.args is not None:
        raise Invalid("args", "are for a task: name it by --task, or put the command's arguments after --")
    options: Any = {**wishes, **work.standing}
    if work.artifact is not None:
        options["artifact"] = _digest(session, work.artifact, work.blobs)
    return builtin.command(session.app(), list(work.argv), options).spec


def _digest(session: Session, artifact: str, blobs: str | None) -> str:
    """Return the digest of an artifact, and send the file first if one was named."""
    if _is_digest(artifact):
        return artifact
    if not os.path.isfile(artifact):  # noqa: PTH113 - of a path, it raises for what can be no name
        raise Invalid("artifact", f"must be a file or a SHA-256, and there is no file {artifact[:200]}")
    path = Path(artifact)
    if session.on_server:
        with session.client() as tide:
            return tide.put_artifact(path).digest
    return asyncio.run(open_blobs(blobs_url(session.database, blobs)).put_file(path))
