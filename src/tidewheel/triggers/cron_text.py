"""Cron as people write it: the zone prefix, the @names, and the five fields."""

import re
from collections.abc import Mapping
from datetime import timedelta
from types import MappingProxyType
from typing import Final

from tidewheel.errors import Invalid

LONGEST: Final = 512
"""All sixty minutes spelled out take 169 characters; anything far beyond is no schedule."""

MACROS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "@hourly": "0 * * * *",
        "@daily": "0 0 * * *",
        "@midnight": "0 0 * * *",
        "@weekly": "0 0 * * 0",
        "@monthly": "0 0 1 * *",
        "@yearly": "0 0 1 1 *",
        "@annually": "0 0 1 1 *",
    }
)
EVERY: Final = "@every"
PREFIXES: Final = ("CRON_TZ=", "TZ=")
FIELDS: Final = 5

LENGTH: Final = re.compile(r"(?:(\d{1,5})d)?(?:(\d{1,7})h)?(?:(\d{1,8})m)?(?:(\d{1,10})s)?", re.ASCII)


def split_zone(text: object) -> tuple[str, str]:
    """Part the zone of a leading ``CRON_TZ=`` or ``TZ=`` from the rest; no prefix gives an empty zone."""
    if not isinstance(text, str):
        raise Invalid("expression", "is not a text")
    if len(text) > LONGEST:
        raise Invalid("expression", f"is longer than {LONGEST} characters")
    if not text.isascii():
        raise Invalid("expression", "has characters outside ASCII")
    words = text.split()
    for prefix in PREFIXES:
        if words and words[0].startswith(prefix):
            return _given(words[0].removeprefix(prefix)), " ".join(words[1:])
    return "", " ".join(words)


def _given(zone: str) -> str:
    if not zone:
        raise Invalid("zone", "the prefix of the expression names no time zone")
    return zone


def agreed_zone(prefix: str, argument: object) -> str:
    """Return the one zone that prefix and argument name, UTC when neither does."""
    if not isinstance(argument, str):
        raise Invalid("zone", "is not a text")
    if prefix and argument and prefix != argument:
        raise Invalid("zone", f"is {argument[:64]!r}, but the expression begins with {prefix[:64]!r}")
    return prefix or argument or "UTC"


def five_fields(text: str) -> str:
    """Return the canonical five fields of an expression without its zone."""
    if not text:
        raise Invalid("expression", "is empty")
    if text.startswith("@"):
        return _unfolded(text)
    fields = text.upper().split()
    if len(fields) == FIELDS + 1:
        raise Invalid("expression", "has six fields; there is no field for seconds, five are needed")
    if len(fields) != FIELDS:
        raise Invalid("expression", f"has {len(fields)} fields; five are needed: minute hour day month weekday")
    return " ".join(fields)


def _unfolded(text: str) -> str:
    name = text.lower()
    if name in MACROS:
        return MACROS[name]
    if name == "@reboot":
        raise Invalid("expression", "@reboot names no instant: a schedule belongs to no host that could boot")
    if is_every(text):
        raise Invalid("expression", "@every is an interval, not a cron expression")
    raise Invalid("expression", f"{text[:32]!r} is not one of {', '.join(MACROS)} or {EVERY}")


def is_every(text: str) -> bool:
    """Tell whether the text is an interval such as ``@every 5m``."""
    return text.lower().split(" ", 1)[0] == EVERY


def length_of_every(text: str) -> timedelta:
    """Return the five minutes of ``@every 5m``."""
    length = text[len(EVERY) :].replace(" ", "").lower()
    found = LENGTH.fullmatch(length)
    if not length or not found:
        raise Invalid("expression", f"{length[:32]!r} is no duration such as 90s, 5m or 1h30m")
    days, hours, minutes, seconds = (int(part or 0) for part in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
