"""`tide schedule`: make schedules, look at them and steer them."""

from typing import Annotated, Any, Final

import msgspec
import typer

from tidewheel.cli import timing
from tidewheel.cli.asking import Level, Wishes, Work, job_of, parse_instant
from tidewheel.cli.lazy import group
from tidewheel.cli.options import IdempotencyKey
from tidewheel.cli.progress import progress
from tidewheel.cli.showing import Columns, Format, Yes, confirm, plain, show_list, show_one, show_value
from tidewheel.cli.timing import Timing
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import NotFound
from tidewheel.model.guessing import did_you_mean
from tidewheel.model.schedule import Occurrence, Schedule
from tidewheel.sdk.schedules import Schedules
from tidewheel.store.base import Store
from tidewheel.store.scheduling import MAX_PAGE
from tidewheel.tasks.scheduling import changed, schedule_of
from tidewheel.triggers import describe
from tidewheel.triggers.bounds import LATEST
from tidewheel.triggers.planning import trigger_of
from tidewheel.triggers.preview import Preview, preview_of

app = group("Make schedules, look at them and steer them.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name of the schedule.")]
Count = Annotated[int, typer.Option("--count", min=1, max=1000, help="How many to show.")]


def _runs(schedule: Schedule) -> str:
    argv = schedule.args.get("argv")
    return " ".join(map(str, argv)) if schedule.kind == "command" and argv else schedule.kind


COLUMNS: Final[Columns[Schedule]] = {
    "name": lambda schedule: schedule.name,
    "when": lambda schedule: describe(trigger_of(schedule).rule),
    "runs": _runs,
    "next": lambda schedule: "paused" if schedule.paused else schedule.next_fire_at,
    "fired": lambda schedule: schedule.fired,
}
TRAITS: Final[Columns[Schedule]] = {
    **COLUMNS,
    "id": lambda schedule: schedule.id,
    "description": lambda schedule: schedule.description,
    "queue": lambda schedule: schedule.queue,
    "priority": lambda schedule: schedule.priority.name.lower(),
    "arguments": lambda schedule: msgspec.json.encode(schedule.args).decode(),
    "overlap": lambda schedule: schedule.overlap.value,
    "at once": lambda schedule: schedule.most_alive,
    "misfire": lambda schedule: schedule.misfire.policy,
    "grace": lambda schedule: schedule.misfire.grace,
    "version": lambda schedule: schedule.version,
    "declared by": lambda schedule: schedule.declared_by,
}
OCCURRENCES: Final[Columns[Occurrence]] = {
    "fired": lambda occurrence: occurrence.fire_at,
    "outcome": lambda occurrence: occurrence.outcome.value,
    "source": lambda occurrence: occurrence.source,
    "job": lambda occurrence: occurrence.job_id,
    "reason": lambda occurrence: occurrence.reason,
}
PREVIEWS: Final[Columns[Preview]] = {
    "utc": lambda coming: coming.fire_at,
    "local": lambda coming: coming.local.isoformat(sep=" ", timespec="seconds"),
    "note": lambda coming: coming.note,
}


@verb(app)
def add(session: Session, name: Name, work: Work, wishes: Wishes, when: Timing) -> None:
    """Make a schedule: `tide schedule add nightly --cron "0 3 * * *" --timezone Europe/Paris -- backup.sh`."""
    spec = schedule_of(job_of(session, work, wishes.options), {"name": name, **when.options})
    _show(session, session.ask(lambda store: store.create_schedule(spec)))


@verb(app)
def edit(
    session: Session,
    name: Name,
    work: Work,
    wishes: Wishes,
    when: Timing,
    *,
    rename: Annotated[str | None, typer.Option("--rename", help="Another name for it.")] = None,
) -> None:
    """Change a schedule; what is not given stays as it is. Options of its jobs go with the command or task."""
    job = job_of(session, work, wishes.options) if work.given or wishes.options else None
    options = when.options | ({} if rename is None else {"name": rename})

    async def change(store: Store) -> Schedule:
        known = await _find(store, session, name)
        spec = changed(known.definition, job, options)
        return await store.change_schedule(known.id, spec, version=known.version, tenant=session.tenant)

    _show(session, session.ask(change))


@verb(app, "list")
def list_schedules(session: Session) -> None:
    """List the schedules, oldest first."""
    show_list(session.ask(lambda store: _all(store, session)), COLUMNS, session.output)


@verb(app)
def show(session: Session, name: Name, *, count: Count = 10) -> None:
    """Show a schedule, and what became of its last occurrences."""

    async def look(store: Store) -> tuple[Schedule, list[Occurrence]]:
        known = await _find(store, session, name)
        return known, await store.occurrences(known.id, limit=count, tenant=session.tenant)

    known, occurrences = session.ask(look)
    if session.output is not Format.TABLE:
        show_value({**plain(known), "occurrences": plain(occurrences)}, session.output)
        return
    show_one(known, TRAITS, session.output)
    if occurrences:
        typer.echo("")
        show_list(occurrences, OCCURRENCES, session.output)


@verb(app)
def preview(
    session: Session,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A schedule; or give --cron or --every.")] = None,
    *,
    cron: timing.CronText = None,
    every: timing.Every = None,
    timezone: timing.Timezone = None,
    count: Count = 10,
) -> None:
    """Show when a schedule fires next, or one would that is not made yet; with a note where clocks are set."""
    if name is not None:
        found = session.ask(lambda store: _find(store, session, name))
        with session.app() as tide:
            coming = tide.schedules.preview(found, count)
    else:
        trigger = timing.trigger(cron=cron, every=every, timezone=timezone)
        times = trigger.between(SystemClock().now(), LATEST, limit=count, key="preview")
        coming = preview_of(trigger, times)
    show_list(coming, PREVIEWS, session.output)


@verb(app)
def pause(session: Session, name: Name) -> None:
    """Let a schedule fire no more, until it is resumed."""
    _steer(session, name, "pause")


@verb(app)
def resume(session: Session, name: Name) -> None:
    """Let a paused schedule fire again, from now on."""
    _steer(session, name, "resume")


@verb(app)
def trigger(session: Session, name: Name, *, key: IdempotencyKey = None) -> None:
    """Make a job of a schedule now, also if it is paused, and print its id; its plan stays as it is."""
    found = session.ask(lambda store: _find(store, session, name))
    made = session.ask(lambda store: store.trigger_schedule(found.id, key=key, tenant=session.tenant)).occurrence
    if session.output is Format.TABLE:
        typer.echo(made.job_id)
    else:
        show_value(made, session.output)


@verb(app)
def backfill(
    session: Session,
    name: Name,
    *,
    since: Annotated[str, typer.Option("--since", help="The beginning, such as 2030-01-01T00:00:00Z.")],
    until: Annotated[str | None, typer.Option("--until", help="The end.  [default: now]")] = None,
    spacing: Annotated[str, typer.Option("--spacing", help="How far the jobs are apart, such as 10s.")] = "0s",
    priority: Level = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would run.")] = False,
    yes: Yes = False,
) -> None:
    """Run what a schedule would have run in the past, and did not."""
    found = session.ask(lambda store: _find(store, session, name))
    first = parse_instant(since, "since")
    last = SystemClock().now() if until is None else parse_instant(until, "until")
    options: Any = {"every": spacing, "priority": priority}
    with session.app() as tide:
        schedules: Schedules = tide.schedules
        would = schedules.backfill(found, first, last, dry_run=True, **options)
        if dry_run:
            show_list(would, OCCURRENCES, session.output)
            return
        if not confirm(len(would), "occurrences would run", yes=yes):
            raise typer.Abort
        with progress() as tell:
            tell("occurrences", 0, len(would))
            made = schedules.backfill(found, first, last, **options)
            tell("occurrences", len(would), len(would))
    show_list(made, OCCURRENCES, session.output)


@verb(app)
def delete(session: Session, name: Name, *, yes: Yes = False) -> None:
    """Remove a schedule, and cancel those of its jobs that have not started."""
    found = session.ask(lambda store: _find(store, session, name))
    if not confirm(1, f"schedule would be removed: {name}", yes=yes):
        raise typer.Abort
    session.ask(lambda store: store.delete_schedule(found.id, version=found.version, tenant=session.tenant))
    typer.echo(f"{name} is removed")


def _steer(session: Session, name: str, how: str) -> None:
    async def steer(store: Store) -> Schedule:
        known = await _find(store, session, name)
        work = store.pause_schedule if how == "pause" else store.resume_schedule
        return await work(known.id, tenant=session.tenant)

    _show(session, session.ask(steer))


def _show(session: Session, schedule: Schedule) -> None:
    if session.output is Format.TABLE:
        show_list([schedule], COLUMNS, session.output)
    else:
        show_value(schedule, session.output)


async def _find(store: Store, session: Session, name: str) -> Schedule:
    try:
        return await store.find_schedule(name, tenant=session.tenant)
    except NotFound:
        names = [schedule.name for schedule in await _all(store, session)]
        raise NotFound("schedule", f"{name}{did_you_mean(name, names)}") from None


async def _all(store: Store, session: Session) -> list[Schedule]:
    found = page = await store.schedules(tenant=session.tenant, limit=MAX_PAGE)
    while len(page) == MAX_PAGE:
        page = await store.schedules(tenant=session.tenant, limit=MAX_PAGE, after=page[-1].id)
        found = [*found, *page]
    return found
