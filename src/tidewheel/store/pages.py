"""Pages: long lists are given piece by piece."""

from typing import Final
from uuid import UUID

import msgspec

from tidewheel.model.job import Job

PAGE_BYTES: Final = 8 * 1024 * 1024
"""A page ends with the job by which it has this much of arguments, results and errors, or soon after."""

MOST_ATTEMPTS: Final = 500
"""Attempts of a job that are given at once."""
NEWEST: Final = 2**63 - 1
"""Beyond the token of every run."""


class Page(msgspec.Struct, frozen=True):
    """One page of a list, newest first. A page may be short, even empty, while `next` leads on."""

    jobs: list[Job]
    next: UUID | None = None
    """Where the next page begins (exclusive); None at the end."""
