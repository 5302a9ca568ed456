"""What someone may have meant who mistyped a name."""

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from tidewheel.errors import Invalid

T = TypeVar("T", bound=str)


def did_you_mean(given: str, names: Iterable[str], *, likeness: float = 0.6) -> str:
    """Return a question to put behind a complaint, or nothing if no name is near."""
    known = {name.lower(): name for name in names}
    near = get_close_matches(given.lower(), list(known), n=1, cutoff=likeness)
    return f"; did you mean {known[near[0]]}?" if near else ""


def name_among(field: str, given: str, names: Sequence[T]) -> T:
    """Return the name if there is one like that; else say which there are, and which may have been meant."""
    for name in names:
        if name == given:
            return name
    raise Invalid(field, f"must be one of {', '.join(names)}, not {given[:40]!r}{did_you_mean(given, names)}")
