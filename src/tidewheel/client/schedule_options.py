"""What can be said about a schedule, and about dead letters."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypedDict

from tidewheel.client.options import Duration, PriorityName, plain


class Definition(TypedDict, total=False):
    """Everything about a schedule but its name and kind; `/docs` of a server tells what each means."""

    description: str
    args: Mapping[str, Any]
    queue: str
    priority: PriorityName
    labels: Mapping[str, str]
    needs: Mapping[str, Any]
    retry: Mapping[str, Any]
    timeout: Duration
    limit_keys: Sequence[str]
    cron: str
    every: Duration
    at: datetime
    anchor: datetime
    timezone: str
    start: datetime | None
    end: datetime | None
    max_occurrences: int | None
    jitter: Duration
    spread: Duration
    overlap: Literal["skip", "queue", "allow", "cancel_previous"]
    max_concurrency: int | None
    misfire: Mapping[str, Any]


class Change(Definition, total=False):
    """What to change of a schedule; what is not given stays as it is."""

    name: str
    kind: str


class DeadConditions(TypedDict, total=False):
    """Which dead letters; all conditions must hold."""

    kind: str
    queue: str
    fingerprint: str
    """That of a group."""
    died_from: datetime
    died_before: datetime


def definition_of(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the body of a definition or of a change."""
    return {name: plain(value) for name, value in given.items()}
