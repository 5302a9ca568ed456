"""The three rules by which something recurs, or does not: once, at an interval, by cron."""

from datetime import datetime, timedelta
from typing import Final, Self, assert_never

import msgspec
from msgspec.structs import force_setattr

from tidewheel.model.checks import duration_text
from tidewheel.triggers import cron_text
from tidewheel.triggers.bounds import EPOCH, LATEST, duration, instant
from tidewheel.triggers.clock_changes import next_match
from tidewheel.triggers.pattern import pattern_of
from tidewheel.triggers.zones import zone_named

SHORTEST_INTERVAL: Final = timedelta(seconds=1)

# A rule checks itself however it is made, from Python or from stored JSON, and keeps its instants in UTC: two rules
# that mean the same are equal. force_setattr is how msgspec lets a frozen record do so while it is being made.


class Once(msgspec.Struct, frozen=True, tag="once", forbid_unknown_fields=True):
    """Fires at one instant."""

    at: datetime

    def __post_init__(self) -> None:
        force_setattr(self, "at", instant("at", self.at))

    @classmethod
    def after(cls, delay: timedelta, now: datetime) -> Self:
        """Return the rule that fires when the delay has passed."""
        return cls(instant("now", now) + duration("delay", delay))


class Interval(msgspec.Struct, frozen=True, tag="interval", forbid_unknown_fields=True):
    """Fires at every whole multiple of ``every`` from the anchor, in elapsed time and in both directions.

    The anchor sets the phase, not the beginning: for that a trigger has ``start``.
    """

    every: timedelta
    anchor: datetime = EPOCH

    def __post_init__(self) -> None:
        duration("every", self.every, least=SHORTEST_INTERVAL)
        force_setattr(self, "anchor", instant("anchor", self.anchor))


class Cron(msgspec.Struct, frozen=True, tag="cron", forbid_unknown_fields=True):
    """Fires when the clocks of a zone match five fields; `clock_changes` says what happens when clocks are set.

    ``CRON_TZ=Europe/Berlin 0 5 * * *`` and ``@daily`` are taken too, and kept as fields and zone.
    """

    expression: str
    zone: str = ""
    """An IANA name. Empty stands for that of the prefix, or UTC."""

    def __post_init__(self) -> None:
        prefix, text = cron_text.split_zone(self.expression)
        fields, zone = cron_text.five_fields(text), cron_text.agreed_zone(prefix, self.zone)
        pattern_of(fields)
        zone_named(zone)
        force_setattr(self, "expression", fields)
        force_setattr(self, "zone", zone)


Rule = Once | Interval | Cron


def parse_rule(text: str, zone: str = "", anchor: datetime = EPOCH) -> Interval | Cron:
    """Read a cron expression, a name such as ``@daily``, or ``@every 5m``, which counts from the anchor.

    Elapsed time is the same everywhere: the zone of an ``@every`` is checked and then forgotten.
    """
    prefix, rest = cron_text.split_zone(text)
    if not cron_text.is_every(rest):
        return Cron(text, zone)
    zone_named(cron_text.agreed_zone(prefix, zone))
    return Interval(cron_text.length_of_every(rest), anchor)


def next_nominal(rule: Rule, after: datetime) -> datetime | None:
    """Return the first instant strictly after ``after``, which is in UTC, at which the rule alone would fire."""
    match rule:
        case Once(at=at):
            found: datetime | None = at if at > after else None
        case Interval(every=every, anchor=anchor):
            found = anchor + ((after - anchor) // every + 1) * every
        case Cron(expression=expression, zone=zone):
            found = next_match(pattern_of(expression), zone_named(zone), after)
        case _:
            assert_never(rule)
    return found if found is not None and found <= LATEST else None


def latest_nominal(rule: Rule, since: datetime, until: datetime) -> datetime | None:
    """Return the last instant in (since, until] at which the rule alone would fire, found by halving what is left."""
    latest = next_nominal(rule, since)
    if latest is None or latest > until:
        return None
    end = until
    while end - latest >= SHORTEST_INTERVAL:
        middle = latest + (end - latest) / 2
        found = next_nominal(rule, middle)
        if found is None or found > until:
            end = middle
        else:
            latest = found
    return latest


def describe(rule: Rule) -> str:
    """Return the rule in English, for people who read no cron."""
    match rule:
        case Once(at=at):
            return f"Once at {at:%Y-%m-%d %H:%M:%S} UTC"
        case Interval(every=every, anchor=anchor):
            since = "" if anchor == EPOCH else f", counted from {anchor:%Y-%m-%d %H:%M:%S} UTC"
            return f"Every {duration_text(every)}{since}"
        case Cron(expression=expression, zone=zone):
            return f"{pattern_of(expression).explain()} ({zone})"
        case _:
            assert_never(rule)
