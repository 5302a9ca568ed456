"""The timeline of a job: its runs and the waits between them, on one axis; pure."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from tidewheel.model.states import State

WIDTH: Final = 1000
LEAST: Final = 3
"""How wide a run is drawn at least, so that it can be seen."""


class Bar(NamedTuple):
    """A run or a wait on the axis."""

    x: float
    width: float
    kind: str
    """`wait`, or how the run ended."""
    token: int | None
    began: datetime
    ended: datetime

    @property
    def length(self) -> timedelta:
        """How long it took."""
        return self.ended - self.began


def timeline_of(job: Any, attempts: Sequence[Any], now: datetime) -> list[Bar]:
    """Return the bars of a job from when it was made until it ended, or until now."""
    spans: list[tuple[datetime, datetime, str, int | None]] = []
    last = job.created_at
    runs = [(each.started_at or each.ended_at, each.ended_at, _kind(job, each), each.token) for each in attempts]
    if job.state is State.RUNNING and job.last_started_at is not None:
        runs.append((job.last_started_at, now, "running", job.token))
    for began, ended, kind, token in runs:
        if began > last:
            spans.append((last, began, "wait", None))
        spans.append((began, ended, kind, token))
        last = max(last, ended)
    until = job.finished_at or now
    if until > last and job.state is not State.RUNNING:
        spans.append((last, until, "wait", None))
    return _placed(spans)


def _kind(job: Any, attempt: Any) -> str:
    is_last = attempt.token == job.token
    if is_last and job.state is State.SUCCEEDED:
        return "succeeded"
    return "cancelled" if is_last and job.state is State.CANCELLED else "failed"


def _placed(spans: Sequence[tuple[datetime, datetime, str, int | None]]) -> list[Bar]:
    if not spans:
        return []
    first, whole = spans[0][0], max((spans[-1][1] - spans[0][0]).total_seconds(), 1e-6)
    bars = []
    for began, ended, kind, token in spans:
        x = (began - first).total_seconds() / whole * WIDTH
        width = max((ended - began).total_seconds() / whole * WIDTH, LEAST)
        bars.append(Bar(round(min(x, WIDTH - LEAST), 1), round(width, 1), kind, token, began, ended))
    return bars
