"""From what people write about a schedule, in code or in a request, to its definition."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias, TypedDict, TypeVar

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.job import JobSpec
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import ScheduleSpec
from tidewheel.tasks.durations import Duration, parse_duration
from tidewheel.triggers import Cron, Interval, Once, Rule, Trigger, parse_rule, to_json
from tidewheel.triggers.bounds import EPOCH, instant
from tidewheel.triggers.cron_text import agreed_zone
from tidewheel.triggers.planning import check_definition, trigger_of
from tidewheel.triggers.zones import zone_named

OverlapWish: TypeAlias = Overlap | Literal["skip", "queue", "allow", "cancel_previous"]
MisfireWish: TypeAlias = Misfire | Literal["latest", "all", "skip"]


class Recurrence(TypedDict, total=False):
    """When a schedule fires, and what becomes of what was missed or overlaps."""

    cron: str
    """Five fields, a name such as `@daily`, or `@every 5m`."""
    every: Duration
    """From a second on; counted from `start`, or else from 1970, so that `10m` means :00, :10, :20."""
    anchor: datetime
    """From where `every` is counted, if not from `start`."""
    timezone: str
    """The IANA name of the zone whose clocks the fields of `cron` speak of; UTC if it is not given."""
    start: datetime
    end: datetime
    max_occurrences: int
    jitter: Duration
    """Delays each occurrence by a share of this, another one each time."""
    spread: Duration
    """Delays all occurrences by a share of this that the name decides."""
    overlap: OverlapWish
    """What to do while the last run is alive: `skip` (the default), `queue`, `allow`, `cancel_previous`."""
    max_concurrency: int
    """How many runs may be alive; one if it is not given, and any number with `allow`."""
    misfire: MisfireWish
    """What to do with what was missed: run the `latest` (the default), `all`, or `skip` them."""
    grace: Duration
    """Up to this lateness an occurrence runs as if nothing had happened; 15 minutes if it is not given."""


class ScheduleOptions(Recurrence, total=False):
    """What `app.schedules.create` and `change` take."""

    at: datetime
    """In place of `cron` and `every`: once."""
    name: str
    """The kind of the task if it is not given."""
    description: str


RECURRENCE: Final = frozenset(Recurrence.__annotations__)
_KNOWN: Final = frozenset(ScheduleOptions.__annotations__)
_WHEN: Final = ("cron", "every", "at")
_FIELDS: Final = {"expression": "cron", "zone": "timezone"}
_SINGLE: Final = ("run_at", "delay", "start_by", "idempotency_key", "unique_key", "after", "id")
"""What only a single job can have."""
_SHARED: Final = ("kind", "queue", "args", "labels", "priority", "needs", "limit_keys")
_PLAIN: Final = ("name", "description", "max_concurrency")
_BOUNDS: Final = ("start", "end", "max_occurrences")
T = TypeVar("T")


def schedule_of(job: JobSpec, options: Mapping[str, Any]) -> ScheduleSpec:
    """Return the definition of a schedule whose jobs are like that one, or say what is wrong with it."""
    _check_known(options)
    return check_definition(
        ScheduleSpec(
            **_of_job(job),
            tenant=job.tenant,
            name=options.get("name") or job.kind,
            description=options.get("description", ""),
            trigger=msgspec.Raw(to_json(_trigger(options))),
            misfire=_misfire(options),
            overlap=_overlap(options.get("overlap", Overlap.SKIP)),
            max_concurrency=options.get("max_concurrency"),
        )
    )


def _check_known(options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in _KNOWN:
            raise Invalid(name, f"is no option of a schedule; there are {', '.join(sorted(_KNOWN))}")


def _of_job(job: JobSpec) -> dict[str, Any]:
    for name in _SINGLE:
        if getattr(job, name):
            raise Invalid(name, "is for single jobs: when the jobs of a schedule run, the schedule decides")
    fields: dict[str, Any] = {name: getattr(job, name) for name in _SHARED}
    return fields | {"retry": job.options.retry, "timeout": job.options.timeout}


def _trigger(options: Mapping[str, Any]) -> Trigger:
    given = [name for name in _WHEN if options.get(name) is not None]
    if len(given) != 1:
        why = f"cannot be given together with {given[0]}" if given else "or every or at must be given"
        raise Invalid(given[1] if given else "cron", why)
    bounds: dict[str, Any] = {name: options.get(name) for name in _BOUNDS}
    bounds |= {name: parse_duration(options[name], name) for name in ("jitter", "spread") if name in options}
    return _named(lambda: Trigger(rule=_rule(given[0], options), **bounds))


def _named(make: Callable[[], T]) -> T:
    """Call what is wrong with a trigger by the names that are used here."""
    try:
        return make()
    except Invalid as error:
        raise Invalid(_FIELDS.get(error.field, error.field), error.why) from None


def _rule(kind: str, options: Mapping[str, Any]) -> Rule:
    anchor, zone = _anchor(options), options.get("timezone", "")
    if kind == "cron":
        if not isinstance(options["cron"], str):
            raise Invalid("cron", f"must be text such as 0 5 * * *, not {type(options['cron']).__name__}")
        rule = parse_rule(options["cron"], zone, anchor)
        if options.get("anchor") is not None and isinstance(rule, Cron):
            raise Invalid("anchor", "is for every: the others count from nowhere")
        return rule
    if options.get("anchor") is not None and kind == "at":
        raise Invalid("anchor", "is for every: the others count from nowhere")
    if zone:
        # An instant and elapsed time are the same everywhere, but a wrong name is a mistake.
        zone_named(agreed_zone("", zone))
    if kind == "at":
        return Once(options["at"])
    return Interval(parse_duration(options["every"], "every"), anchor)


def _anchor(options: Mapping[str, Any]) -> datetime:
    """Return from where an interval is counted; what is wrong with a start is no fault of an anchor."""
    if options.get("anchor") is not None:
        return instant("anchor", options["anchor"])
    return EPOCH if options.get("start") is None else instant("start", options["start"])


def _misfire(options: Mapping[str, Any]) -> Misfire:
    wish = options.get("misfire", Misfire())
    if not isinstance(wish, Misfire):
        if wish not in ("latest", "all", "skip"):
            raise Invalid("misfire", f"must be latest, all, skip or a Misfire, not {shown(wish)}")
        wish = Misfire(policy=wish)
    if "grace" in options:
        wish = msgspec.structs.replace(wish, grace=parse_duration(options["grace"], "grace"))
    return wish


def _overlap(wish: Any) -> Overlap:
    try:
        return Overlap(wish)
    except (ValueError, RecursionError):  # the latter for what the former cannot show
        raise Invalid("overlap", f"must be one of {', '.join(Overlap)}, not {shown(wish)}") from None


def changed(known: ScheduleSpec, job: JobSpec | None, options: Mapping[str, Any]) -> ScheduleSpec:
    """Return a definition with what is given in place of what was."""
    _check_known(options)
    fields: dict[str, Any] = {name: options[name] for name in _PLAIN if name in options}
    if job is not None:
        fields |= _of_job(job)
    if "overlap" in options:
        fields["overlap"] = _overlap(options["overlap"])
    if {"misfire", "grace"} & options.keys():
        fields["misfire"] = _misfire({"misfire": known.misfire, **options})
    if (RECURRENCE | {"at"}) & options.keys():
        fields["trigger"] = msgspec.Raw(to_json(_changed_trigger(trigger_of(known), options)))
    return check_definition(msgspec.structs.replace(known, **fields))


def _changed_trigger(known: Trigger, options: Mapping[str, Any]) -> Trigger:
    """Return another trigger, or the same with other bounds or another zone."""
    if any(options.get(name) is not None for name in _WHEN):
        return _trigger(options)
    rule = known.rule
    fields: dict[str, Any] = {name: options[name] for name in _BOUNDS if name in options}
    fields |= {name: parse_duration(options[name], name) for name in ("jitter", "spread") if name in options}
    if "timezone" in options:
        if not isinstance(rule, Cron):
            raise Invalid("timezone", "is for cron: elapsed time is the same everywhere")
        fields["rule"] = _named(lambda: Cron(rule.expression, options["timezone"]))
    if "anchor" in options:
        if not isinstance(rule, Interval):
            raise Invalid("anchor", "is for every: the others count from nowhere")
        fields["rule"] = _named(lambda: Interval(rule.every, options["anchor"]))
    return _named(lambda: msgspec.structs.replace(known, **fields))
