"""From when on the rules of alerts find something, as operators set it."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_duration, parse_duration
from tidewheel.model.resources import parse_resources


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """From when on a rule finds something."""

    schedule_late: timedelta = timedelta(minutes=5)
    queue_age: timedelta = timedelta(minutes=10)
    no_worker: timedelta = timedelta(minutes=1)
    failure_rate: float = 0.5
    failures_of: int = 20
    dead_letters: int = 100
    held_snapshot: timedelta = timedelta(minutes=30)
    dead_rows: int = 1_000_000
    replica_lag: timedelta = timedelta(minutes=5)
    replica_behind: int = 256 << 20
    """Bytes of the log of writes that a replica has not taken in."""
    free_disk: int = 512 << 20
    """Bytes."""
    database_size: int = 0
    """Bytes that the database may have; 0 stands for any number."""
    log_index_age: timedelta = timedelta(minutes=5)
    clock_offset: timedelta = timedelta(seconds=5)
    schedule_overdue: timedelta = timedelta(minutes=5)


USUAL: Final = Bounds()
_BYTES: Final = ("replica_behind", "free_disk", "database_size")
_LONGEST: Final = timedelta(days=365)
_MOST_BYTES: Final = 1 << 50
_MOST: Final = 1_000_000_000
"""Beyond these nothing is ever found."""


def parse_bounds(texts: Iterable[str]) -> Bounds:
    """Return what texts such as `queue_age=20m` and `free_disk=2GiB` stand for; the rest is as usual."""
    changes = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or name not in Bounds.__struct_fields__:
            raise Invalid(
                "alert", f"must be one of {', '.join(Bounds.__struct_fields__)}, then =value, not {text[:60]!r}"
            )
        changes[name] = _value(name, value)
    return msgspec.structs.replace(USUAL, **changes)


def _value(name: str, text: str) -> Any:
    usual = getattr(USUAL, name)
    if isinstance(usual, timedelta):
        field = f"alert: {name}"
        return check_duration(field, parse_duration(text, field), timedelta(0), _LONGEST)
    if name in _BYTES:
        return _bytes(name, text)
    try:
        value = type(usual)(text)
    except ValueError:
        value = -1
    most = 1 if name == "failure_rate" else _MOST  # it is a part of all
    if not 0 < value <= most:
        raise Invalid("alert", f"{name} must be a number above 0 and up to {most}, not {text[:40]!r}")
    return value


def _bytes(name: str, text: str) -> int:
    value = parse_resources(f"memory={text}", f"alert: {name}")["memory"]
    if not 0 < value <= _MOST_BYTES:
        raise Invalid("alert", f"{name} must be above 0 and up to 1024TiB, not {text[:40]!r}")
    return value
