"""Pages: long lists are given piece by piece."""

from collections.abc import Iterable, Sequence
from typing import Final, Protocol, TypeVar
from uuid import UUID

import msgspec

from tidewheel.model.job import Job

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page ends with the job by which it has this much of arguments, results and errors, or soon after."""

LINES_BYTES: Final = 1024 * 1024
"""A page of lines ends with the line by which their texts have this much."""

MOST_ATTEMPTS: Final = 500
"""Attempts of a job that are given at once."""
NEWEST: Final = 2**63 - 1
"""Beyond the token of every run."""


class Page(msgspec.Struct, frozen=True):
    """One page of a list, newest first. A page may be short, even empty, while `next` leads on."""

    jobs: list[Job]
    next: UUID | None = None
    """Where the next page begins (exclusive); None at the end."""


class HasText(Protocol):
    """A line, in whichever form."""

    @property
    def text(self) -> str: ...


L = TypeVar("L", bound=HasText)


def one_page(lines: Iterable[L], limit: int) -> list[L]:
    """Return the first of these lines, as many as one page may have."""
    page: list[L] = []
    size = 0
    for line in lines:
        page.append(line)
        size += _bytes_of(line.text)
        if len(page) == limit or size >= LINES_BYTES:
            break
    return page


def fills_page(lines: Sequence[HasText], limit: int) -> bool:
    """Tell whether lines are as many as one page may have, so that there may be more of them."""
    return len(lines) >= limit or bytes_of(lines) >= LINES_BYTES


def bytes_of(lines: Iterable[HasText]) -> int:
    """Return how much their texts have."""
    return sum(_bytes_of(line.text) for line in lines)


def _bytes_of(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
