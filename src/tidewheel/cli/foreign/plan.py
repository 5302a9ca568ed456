"""What is read from another scheduler, before a schedule is made of it."""

import re
from collections.abc import Iterable
from typing import Any, Final

import msgspec

NAME: Final = re.compile(r"[^A-Za-z0-9_.-]+")
LONGEST: Final = 100


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of another scheduler."""

    source: str
    """Where it was found, such as `line 3`."""
    name: str
    kind: str = ""
    args: dict[str, Any] = {}
    when: dict[str, Any] = {}
    """`cron` or `every`, and `timezone`."""
    options: dict[str, Any] = {}
    """Of its jobs: queue, priority."""
    note: str = ""
    """Why it cannot be taken over; empty if it can."""


def unique_names(entries: Iterable[Planned]) -> list[Planned]:
    """Return the entries with names that differ: a second `backup` becomes `backup-2`."""
    taken: set[str] = set()
    named = []
    for entry in entries:
        name, number = entry.name, 1
        while name in taken:
            number += 1
            name = f"{entry.name}-{number}"
        taken.add(name)
        named.append(msgspec.structs.replace(entry, name=name))
    return named


def name_of(text: str) -> str:
    """Return a text as the name of a schedule."""
    return NAME.sub("-", text).strip("-.")[:LONGEST] or "job"
