"""Which time charts show, as the address says it; pure."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name
from tidewheel.model.statistics import HOUR, KEEP_MINUTES, KEEP_STATISTICS, MINUTE, begin_of, end_of

DAY: Final = timedelta(days=1)


class Range(NamedTuple):
    """How much time is shown."""

    name: str
    """In the address."""
    told: str
    length: timedelta
    steps: tuple[timedelta, ...]
    """How much time is one point; each further one is for when there is too much to add up by the one before.

    None is put together from more than twelve rows of the store, so that what points are read bounds what rows are."""
    fresh: float
    """For how many seconds what was read is good enough: long times are dear to read and change little."""


RANGES: Final = (
    Range("1h", "1 hour", HOUR, (MINUTE, 5 * MINUTE), 4.0),
    Range("6h", "6 hours", 6 * HOUR, (5 * MINUTE, HOUR), 15.0),
    Range("24h", "24 hours", DAY, (10 * MINUTE, HOUR), 30.0),
    Range("7d", "7 days", 7 * DAY, (HOUR, 6 * HOUR), 60.0),
    Range("30d", "30 days", 30 * DAY, (3 * HOUR, 12 * HOUR), 180.0),
)
_BY_NAME: Final = {each.name: each for each in RANGES}


class Window(NamedTuple):
    """What charts are of, and by which step."""

    since: datetime
    before: datetime
    step: timedelta


class Period(NamedTuple):
    """The time that was chosen, and of what."""

    range: Range
    until: datetime | None
    """Up to when; None for what goes on."""
    queue: str | None
    kind: str | None
    wrong: str
    """What of the address makes no sense; empty if all does."""

    @property
    def told(self) -> str:
        """Say which time it is."""
        length = self.range.told.removeprefix("1 ")
        if self.until is None:
            return f"the last {length}"
        return f"the {length} until {self.until:%d %b %Y %H:%M} UTC"

    @property
    def chosen(self) -> dict[str, str | None]:
        """Return what stands in the address of the same charts."""
        name = None if self.range is RANGES[0] else self.range.name
        return {"range": name, "to": address_of(self.until), "queue": self.queue, "kind": self.kind}

    def earlier(self, now: datetime) -> str | None:
        """Return the `to` of as much time before, as far as something is kept."""
        until = (self.until or now) - self.range.length
        return address_of(until) if until - self.range.length >= now - KEEP_STATISTICS else None

    def later(self, now: datetime) -> str | None:
        """Return the `to` of as much time after; None if that goes on until now."""
        until = None if self.until is None else self.until + self.range.length
        return address_of(until) if until is not None and until < now - MINUTE else None

    def windows(self, now: datetime) -> list[Window]:
        """Return what to read, finest first; of what is long ago only the hours are known."""
        until = self.until or now
        steps = self.range.steps
        if until - self.range.length < now - KEEP_MINUTES + HOUR:
            steps = tuple(step for step in steps if not step % HOUR) or (HOUR,)
        return [_window(until, self.range.length, step) for step in steps]


def _window(until: datetime, length: timedelta, step: timedelta) -> Window:
    """Return the whole steps that have all of it, also the one that goes on."""
    return Window(begin_of(until - length, step), end_of(until, step), step)


def address_of(instant: datetime | None) -> str | None:
    """Return an instant as it stands in an address."""
    return None if instant is None else f"{instant.astimezone(UTC):%Y-%m-%dT%H:%MZ}"


def period_of(query: Mapping[str, str], now: datetime) -> Period:
    """Read the address. What makes no sense is told, and the nearest thing shown that does."""
    wrong: list[str] = []
    chosen = _BY_NAME.get(query.get("range", RANGES[0].name))
    if chosen is None:
        chosen = RANGES[0]
        wrong.append(f"range: must be one of {', '.join(_BY_NAME)}")
    until = _until(query.get("to", ""), chosen.length, now, wrong)
    queue, kind = (_name(query, field, wrong) for field in ("queue", "kind"))
    return Period(chosen, until, queue, kind, "; ".join(wrong))


def _until(text: str, length: timedelta, now: datetime, wrong: list[str]) -> datetime | None:
    if not text:
        return None
    try:
        until = datetime.fromisoformat(text)
    except ValueError:
        wrong.append("to: must be a time such as 2026-11-17T12:00Z")
        return None
    until = until if until.tzinfo is not None else until.replace(tzinfo=UTC)
    if until >= now:
        return None
    first = begin_of(now - KEEP_STATISTICS + length, HOUR)
    if until < first:
        wrong.append(f"to: numbers are kept for {KEEP_STATISTICS.days} days, and these are the oldest")
        return first
    return begin_of(until.astimezone(UTC), MINUTE)


def _name(query: Mapping[str, str], field: str, wrong: list[str]) -> str | None:
    text = query.get(field, "").strip()
    try:
        return check_name(field, text) if text else None
    except Invalid as error:
        wrong.append(f"{field}: {error.why}")
        return None
