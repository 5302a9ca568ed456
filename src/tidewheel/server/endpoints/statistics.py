"""Numbers over time, for charts."""

from datetime import timedelta
from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_instant
from tidewheel.model.histogram import Histogram, quantile, upper_bound
from tidewheel.model.states import State
from tidewheel.model.statistics import HOUR, MINUTE, MOST_POINTS, StatFilter, StatPoint, check_stat_filter
from tidewheel.server.endpoint import Answer, Call
from tidewheel.server.job_request import Instant, Name
from tidewheel.server.reading import bad_parameter, parameter
from tidewheel.server.service import Service

_DAY = timedelta(days=1)

_WHOLE = "The minute in which it lies counts as a whole, or the hour if the step is whole hours; the answer says which."


class StatQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to add up."""

    since: Annotated[Instant, Meta(description=_WHOLE)] | None = msgspec.field(default=None, name="from")
    """A day before `to`, unless it is said."""
    before: Annotated[Instant, Meta(description=_WHOLE)] | None = msgspec.field(default=None, name="to")
    """Now, unless it is said."""
    kind: Name | None = None
    queue: Name | None = None
    step: Annotated[int, Meta(ge=60, le=86_400 * 31, description="Seconds, in whole minutes.")] | None = None
    """A minute for up to a day, an hour for more, unless it is said; with whole hours the first one is whole, too."""


class BucketDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How many took at most so long, and longer than the bucket before."""

    seconds: float
    count: int


class TimesDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Durations; the quantiles are by the upper bounds of their buckets."""

    p50: float | None
    p99: float | None
    buckets: list[BucketDocument]


class StatDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What ended within one step."""

    at: Instant
    queue: str
    kind: str
    outcome: State
    jobs: int
    start_delay: TimesDocument
    """From when a job might have started to when its last run did."""
    run_time: TimesDocument


class StatList(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers by step, queue, kind and outcome; steps in which nothing ended are left out."""

    since: Instant = msgspec.field(name="from")
    before: Instant = msgspec.field(name="to")
    step: int
    points: list[StatDocument]


async def statistics(service: Service, call: Call[None, StatQuery]) -> Answer:
    """Return the numbers of what ended."""
    where: StatFilter = parameter(partial(_filter_of, service, call))
    try:
        points = await service.store.statistics(where)
    except Invalid as error:  # too many; all else was checked
        raise bad_parameter("from", error.why) from None
    documents = [_document(point) for point in points]
    step = int(where.step.total_seconds())
    return Answer(StatList(since=where.since, before=where.before, step=step, points=documents))


def _filter_of(service: Service, call: Call[None, StatQuery]) -> StatFilter:
    query = call.query
    before = check_instant("to", query.before or service.clock.now() + MINUTE)
    since = check_instant("from", query.since or before - _DAY)
    usual = MINUTE if (before - since) / MINUTE <= MOST_POINTS else HOUR
    step = usual if query.step is None else timedelta(seconds=query.step)
    if before <= since:
        raise Invalid("to", "must be after from")
    return check_stat_filter(
        StatFilter(since=since, before=before, step=step, tenant=call.scope, kind=query.kind, queue=query.queue)
    )


def _document(point: StatPoint) -> StatDocument:
    return StatDocument(
        at=point.at,
        queue=point.queue,
        kind=point.kind,
        outcome=point.state,
        jobs=point.jobs,
        start_delay=_times(point.delays),
        run_time=_times(point.runs),
    )


def _times(histogram: Histogram) -> TimesDocument:
    buckets = [BucketDocument(seconds=round(upper_bound(one), 6), count=histogram[one]) for one in sorted(histogram)]
    return TimesDocument(p50=quantile(histogram, 0.5), p99=quantile(histogram, 0.99), buckets=buckets)
