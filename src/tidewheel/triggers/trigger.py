"""A trigger: a rule within bounds, whose occurrences may be moved a little."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import force_setattr

from tidewheel.errors import Invalid
from tidewheel.triggers.bounds import EARLIEST, JUST_BEFORE, LATEST, NOTHING, aware, count, duration, instant
from tidewheel.triggers.rules import Rule, latest_nominal, next_nominal
from tidewheel.triggers.shifts import jitter_of, spread_of

MOST_AT_ONCE: Final = 100_000
MOST_OCCURRENCES: Final = 2**53


class Occurrence(msgspec.Struct, frozen=True):
    """One firing: its name is the nominal instant, its time is ``fire_at``."""

    nominal: datetime
    """What the rule says, in UTC. Two occurrences of a trigger never share it."""
    fire_at: datetime
    """When it is due: not before the nominal instant, and before the next one."""


class Trigger(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When something fires. All bounds speak of nominal instants, and are inclusive."""

    rule: Rule
    start: datetime | None = None
    end: datetime | None = None
    max_occurrences: int | None = None
    """After so many there are no more; the caller counts them (see `next_after`)."""
    jitter: timedelta = NOTHING
    """Each occurrence is delayed by its own share of this."""
    spread: timedelta = NOTHING
    """All occurrences under one key are delayed by the same share of this."""

    def __post_init__(self) -> None:
        for field in ("start", "end"):
            if getattr(self, field) is not None:
                force_setattr(self, field, instant(field, getattr(self, field)))
        if self.start is not None and self.end is not None and self.end < self.start:
            raise Invalid("end", "is before start")
        if self.max_occurrences is not None:
            count("max_occurrences", self.max_occurrences, 1, MOST_OCCURRENCES)
        duration("jitter", self.jitter)
        duration("spread", self.spread)

    def next_after(self, instant: datetime, *, key: str = "", fired: int = 0) -> Occurrence | None:
        """Return the first occurrence whose nominal instant is strictly later, None when there is none any more.

        ``fired`` is how many occurrences the caller has recorded, run or missed. Counting them here would mean to
        walk a cron from its start, and would give another answer whenever the tz database is mended.
        """
        return next(self._occurrences(instant, key, fired), None)

    def between(
        self, since: datetime, until: datetime, *, limit: int, key: str = "", fired: int = 0
    ) -> tuple[Occurrence, ...]:
        """Return the first ``limit`` occurrences with a nominal instant in (since, until].

        Windows that touch neither share nor lose one, and ``since`` may be the last instant already dealt with. A full
        answer may have a continuation: ask again since its last nominal instant.
        """
        count("limit", limit, 1, MOST_AT_ONCE)
        last = aware("until", until)
        found: list[Occurrence] = []
        for occurrence in islice(self._occurrences(since, key, fired), limit):
            if occurrence.nominal > last:
                break
            found.append(occurrence)
        return tuple(found)

    def next_due(self, instant: datetime, *, key: str = "", fired: int = 0) -> Occurrence | None:
        """Return the first occurrence that is due strictly later; its nominal instant may have passed."""
        return next(self._occurrences(self._before_due(instant, key), key, fired), None)

    def due_between(
        self, since: datetime, until: datetime, *, limit: int, key: str = "", fired: int = 0
    ) -> tuple[Occurrence, ...]:
        """Return the first ``limit`` occurrences that are due in (since, until]."""
        found = self.between(self._before_due(since, key), until, limit=limit, key=key, fired=fired)
        last = aware("until", until)
        return tuple(occurrence for occurrence in found if occurrence.fire_at <= last)

    def covers(self, nominal: datetime) -> bool:
        """Tell whether an instant lies within the bounds."""
        return (self.start or EARLIEST) <= nominal <= (self.end or LATEST)

    def _before_due(self, instant: datetime, key: str) -> datetime:
        """Return an instant after which just those occurrences are nominal that are due after the given one.

        Each is due before the nominal instant of the next: it is the given one, or lies right before the last nominal
        instant that has passed.
        """
        now = aware("instant", instant)
        reach = max(now, EARLIEST) - self.jitter - self.spread
        since = max(reach, (self.start or EARLIEST) - JUST_BEFORE)
        if since >= now or self.spread == self.jitter == NOTHING:
            return now
        nominal = latest_nominal(self.rule, since, min(now, self.end or LATEST))
        pending = nominal is not None and nominal + self._shift(nominal, key) > now
        return nominal - JUST_BEFORE if nominal is not None and pending else now

    def _occurrences(self, since: datetime, key: str, fired: int) -> Iterator[Occurrence]:
        left = self._left(fired)
        after = max(aware("instant", since), (self.start or EARLIEST) - JUST_BEFORE)
        nominal = self._nominal_after(after)
        while nominal is not None and left > 0:
            yield Occurrence(nominal, nominal + self._shift(nominal, key))
            left -= 1
            nominal = self._nominal_after(nominal)

    def _left(self, fired: int) -> int:
        most = MOST_OCCURRENCES if self.max_occurrences is None else self.max_occurrences
        return most - count("fired", fired, 0, MOST_OCCURRENCES)

    def _nominal_after(self, after: datetime) -> datetime | None:
        last = self.end or LATEST
        if after >= last:
            return None
        nominal = next_nominal(self.rule, after)
        return nominal if nominal is not None and nominal <= last else None

    def _shift(self, nominal: datetime, key: str) -> timedelta:
        if self.spread == self.jitter == NOTHING:
            return NOTHING
        if not key:
            # With one key for all, the shifts would bring together what they are to part.
            raise Invalid("key", "is empty, but spread and jitter are derived from it")
        following = next_nominal(self.rule, nominal)
        room = LATEST - EARLIEST if following is None else following - nominal
        spread = spread_of(key, min(self.spread, room))
        return spread + jitter_of(key, nominal, min(self.jitter, room - spread))


def to_json(trigger: Trigger) -> bytes:
    """Write a trigger for storage."""
    return msgspec.json.encode(trigger)


def from_json(data: bytes | str) -> Trigger:
    """Read a stored trigger; what does not fit is refused with its place."""
    try:
        return msgspec.json.decode(data, type=Trigger)
    except msgspec.ValidationError as error:
        why, _, place = str(error).partition(" - at `$")
        raise Invalid(place.strip(".`") or "trigger", why) from None
    except msgspec.DecodeError as error:
        raise Invalid("trigger", f"is no JSON: {error}") from None
