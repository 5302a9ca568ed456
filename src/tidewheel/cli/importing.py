"""`tide import`: make schedules of what another scheduler runs."""

import importlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from tidewheel.cli.foreign.celery_beat import read_beat
from tidewheel.cli.foreign.crontab import read_crontab
from tidewheel.cli.foreign.plan import Planned
from tidewheel.cli.lazy import group
from tidewheel.cli.showing import Columns, Yes, confirm, show_list
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid, NameTaken
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.sdk.options import JobOptions, spec_of
from tidewheel.store.base import Store
from tidewheel.tasks.binding import ENDLESS
from tidewheel.tasks.definition import TaskOptions
from tidewheel.tasks.scheduling import schedule_of
from tidewheel.triggers import describe
from tidewheel.triggers.planning import trigger_of

app = group("Make schedules of what another scheduler runs.")

UTC_NAME: Final = "UTC"

File = Annotated[str, typer.Argument(metavar="FILE", help="The file; - reads what is piped in.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="The zone that is meant.  [default: this machine's]")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be made.")]


class Made(msgspec.Struct, frozen=True, kw_only=True):
    """What becomes of one entry."""

    source: str
    name: str
    when: str
    runs: str
    outcome: str


COLUMNS: Final[Columns[Made]] = {
    "from": lambda made: made.source,
    "schedule": lambda made: made.name,
    "when": lambda made: made.when,
    "runs": lambda made: made.runs,
    "outcome": lambda made: made.outcome,
}


@verb(app)
def crontab(
    session: Session,
    file: File,
    *,
    system: Annotated[
        bool, typer.Option("--system", help="A file such as /etc/crontab, with a column for the user.")
    ] = False,
    timezone: Timezone = None,
    timeout: Annotated[str, typer.Option("--timeout", help="How long one run may take.")] = "1d",
    overlap: Annotated[str, typer.Option("--overlap", help="What to do while the last still runs.")] = "allow",
    misfire: Annotated[str, typer.Option("--misfire", help="What to do with what was missed.")] = "skip",
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make a schedule of each line: `crontab -l | tide import crontab - --dry-run`.

    As with cron, a run is not tried again, may overlap with the one before, and is not made up for if it was missed.
    """
    planned = read_crontab(_text(file), timezone=timezone or local_zone(), system=system)
    wishes: JobOptions = {"timeout": timeout, "retry": False}
    _bring_in(session, planned, wishes, {"overlap": overlap, "misfire": misfire}, dry_run=dry_run, yes=yes)


@verb(app, "celery-beat")
def celery_beat(
    session: Session,
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="package.module:attribute, a JSON file, or - for JSON piped in.")
    ],
    *,
    timezone: Timezone = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make a schedule of each entry of a beat_schedule: `tide import celery-beat shop.celery:app --dry-run`.

    The attribute is the Celery app, its configuration, or the beat_schedule itself.
    """
    if source == "-" or source.endswith(".json"):
        schedule, zone = _json(_text(source)), UTC_NAME
    else:
        schedule, zone = _from_module(source)
    _bring_in(session, read_beat(schedule, timezone=timezone or zone), {}, {}, dry_run=dry_run, yes=yes)


def _bring_in(
    session: Session,
    planned: Sequence[Planned],
    wishes: JobOptions,
    recurrence: dict[str, Any],
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    """Make what can be made, after all of it was checked; say what became of each."""
    specs = {entry.name: _spec(session, entry, wishes, recurrence) for entry in planned if not entry.note}
    if dry_run:
        outcomes = dict.fromkeys(specs, "would be made")
    elif confirm(len(specs), "schedules would be made", yes=yes):
        outcomes = session.ask(lambda store: _make(store, list(specs.values())))
    else:
        raise typer.Abort
    made = [_made(entry, specs.get(entry.name), outcomes.get(entry.name, entry.note)) for entry in planned]
    show_list(made, COLUMNS, session.output)
    left = sum(bool(entry.note) for entry in planned)
    if left:
        typer.echo(f"tide: {left} of {len(planned)} cannot be taken over; see their outcome", err=True)


def _spec(session: Session, entry: Planned, wishes: JobOptions, recurrence: dict[str, Any]) -> ScheduleSpec:
    whose: Any = {**wishes, **entry.options}
    job = spec_of(entry.kind, entry.args, TaskOptions(), whose, SystemClock().now(), tenant=session.tenant)
    return schedule_of(job, {"name": entry.name, **entry.when, **recurrence})


async def _make(store: Store, specs: Sequence[ScheduleSpec]) -> dict[str, str]:
    outcomes = {}
    for spec in specs:
        try:
            await store.create_schedule(spec)
        except NameTaken:
            outcomes[spec.name] = "was there already, and is left as it is"
        else:
            outcomes[spec.name] = "made"
    return outcomes


def _made(entry: Planned, spec: ScheduleSpec | None, outcome: str) -> Made:
    when = "" if spec is None else describe(trigger_of(spec).rule)
    runs = " ".join(entry.args["argv"][2:]) if "argv" in entry.args else entry.kind
    return Made(source=entry.source, name=entry.name, when=when, runs=runs, outcome=outcome)


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("utf-8")
    except UnicodeDecodeError:
        raise Invalid("file", f"{'what is piped in' if file == '-' else file} is no text in UTF-8") from None
    except OSError as error:
        raise Invalid("file", f"{file[:200]} cannot be read: {error.strerror}") from None
    except ValueError:
        raise Invalid("file", f"{file[:200]!r} can be the name of no file") from None


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise Invalid("source", f"is no JSON: {error}") from None
    except RecursionError:
        raise Invalid("source", ENDLESS) from None


def _from_module(source: str) -> tuple[object, str]:
    """Return the beat_schedule that `package.module:attribute` names, and the zone that it is meant in."""
    module_name, _, attribute = source.partition(":")
    if not attribute:
        raise Invalid("source", f"must be package.module:attribute, a JSON file or -, not {source[:60]!r}")
    if (here := os.getcwd()) not in sys.path:  # noqa: PTH109 - entries of sys.path are text
        sys.path.insert(0, here)
    try:
        found = getattr(importlib.import_module(module_name), attribute)
    except Exception as error:  # noqa: BLE001 - a module of someone else may raise anything
        raise Invalid("source", f"{source} cannot be loaded: {type(error).__name__}: {error}") from None
    configuration = getattr(found, "conf", found)
    zone = str(getattr(configuration, "timezone", None) or UTC_NAME)
    return getattr(configuration, "beat_schedule", found), zone


def local_zone() -> str:
    """Return the IANA name of this machine's zone, or UTC if it does not tell."""
    if named := os.environ.get("TZ", "").removeprefix(":"):
        return named
    _, _, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    return name or UTC_NAME
