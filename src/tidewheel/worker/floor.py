"""The least isolation that the operator of a worker wants for commands; pure.

Whoever submits a command may ask for more than that and never for less: it is the operator's machine, and the layers
stand between the machine and what others send to it.
"""

from typing import Final

from tidewheel.errors import Invalid
from tidewheel.tasks.definition import Isolation

USUAL: Final[Isolation] = "standard"
"""What a command has that asks for nothing, on a worker that asks for no more."""
_FROM_WEAK_TO_STRONG: Final[tuple[Isolation, ...]] = ("none", "standard", "strict")


def parse_isolation(text: str, field: str) -> Isolation:
    """Return the isolation that a text names."""
    for isolation in _FROM_WEAK_TO_STRONG:
        if text == isolation:
            return isolation
    raise Invalid(field, f"must be one of {', '.join(_FROM_WEAK_TO_STRONG)}, not {text[:40]!r}")


def usual_isolation(least: Isolation) -> Isolation:
    """Return what a command has that asks for nothing."""
    return max(USUAL, least, key=_FROM_WEAK_TO_STRONG.index)


def check_floor(wanted: Isolation, least: Isolation) -> Isolation:
    """Return the isolation of a command. Raises Invalid if that is less than it must have."""
    if _FROM_WEAK_TO_STRONG.index(wanted) < _FROM_WEAK_TO_STRONG.index(least):
        raise Invalid("isolation", f"must be at least {least} on this worker, not {wanted}")
    return wanted
