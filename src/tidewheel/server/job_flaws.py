"""All that is wrong with jobs and schedules that someone asks for, once something is."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.submission import find_flaws
from tidewheel.server.flaws import MOST_FLAWS
from tidewheel.server.job_request import JobRequest, RetryRequest, duration_of, spec_of
from tidewheel.server.problems import Flaw, Refused, pointer_of
from tidewheel.server.schedule_request import ScheduleRequest

_RETRY: Final = RetryRequest()
_OF_JOB: Final = ("kind", "args", "queue", "priority", "labels", "needs", "retry", "timeout", "limit_keys")
_OF_SCHEDULE: Final = ("every", "jitter", "spread")


@contextmanager
def telling_all(requests: Sequence[JobRequest], tenant: str, *, batch: bool = False) -> Iterator[None]:
    """Tell of all that is wrong with some jobs, where one thing is refused."""
    try:
        yield
    except Invalid as error:
        others = (
            (f"specs[{position}].{flaw.field}" if batch else flaw.field, flaw.why)
            for position, request in enumerate(requests)
            for flaw in _flaws_in(request, tenant)
        )
        raise _refusal(error, others) from None


@contextmanager
def telling_all_of(request: ScheduleRequest, tenant: str) -> Iterator[None]:
    """Tell of all that is wrong with a schedule, where one thing is refused."""
    try:
        yield
    except Invalid as error:
        job = JobRequest(**{name: getattr(request, name) for name in _OF_JOB})
        own = [(name, getattr(request, name)) for name in _OF_SCHEDULE]
        flaws = [*_flaws_in(job, tenant), *_bad_durations([*own, ("misfire.grace", request.misfire.grace)])]
        raise _refusal(error, ((flaw.field, flaw.why) for flaw in flaws)) from None


def _refusal(first: Invalid, others: Iterable[tuple[str, str]]) -> Refused:
    flaws = {pointer_of(first.field): Flaw(detail=first.why, pointer=pointer_of(first.field))}
    for field, why in islice(others, MOST_FLAWS):
        flaws.setdefault(pointer_of(field), Flaw(detail=why, pointer=pointer_of(field)))
    return Refused("invalid", str(first), flaws=list(flaws.values()), about={"field": first.field})


def _flaws_in(request: JobRequest, tenant: str) -> list[Invalid]:
    retry = request.retry
    bad = _bad_durations(
        [("delay", request.delay), ("timeout", request.timeout), ("retry.delay", retry.delay), ("retry.cap", retry.cap)]
    )
    fields = {flaw.field for flaw in bad}
    mended = msgspec.structs.replace(
        request,
        delay=None if "delay" in fields else request.delay,
        timeout=1.0 if "timeout" in fields else request.timeout,
        retry=_RETRY if fields & {"retry.delay", "retry.cap"} else retry,
    )
    return [*bad, *find_flaws(spec_of(mended, tenant, None))]


def _bad_durations(named: Iterable[tuple[str, Any]]) -> list[Invalid]:
    found = []
    for field, value in named:
        try:
            duration_of(0.0 if value is None else value, field)
        except Invalid as error:
            found.append(error)
    return found
