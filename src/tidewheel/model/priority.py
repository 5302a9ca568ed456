"""Priority: who goes first among the jobs that are due."""

import enum

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown


class Priority(enum.IntEnum):
    """Strict: while a more urgent job is due, a less urgent one waits. The number is stored; the smaller is first."""

    HIGH = 0
    MEDIUM = 1
    LOW = 2


_BY_NAME = {priority.name.lower(): priority for priority in Priority}


def parse_priority(value: str | int | Priority, field: str = "priority") -> Priority:
    """Return the priority that a name in any case or a number stands for; one stays itself."""
    if isinstance(value, Priority):
        return value
    if isinstance(value, str) and (named := _BY_NAME.get(value.lower())) is not None:
        return named
    if isinstance(value, int) and not isinstance(value, bool) and value in Priority._value2member_map_:
        return Priority(value)
    choices = ", ".join(f"{priority.name.lower()} ({priority.value})" for priority in Priority)
    raise Invalid(field, f"must be one of {choices}, not {shown(value)}")
