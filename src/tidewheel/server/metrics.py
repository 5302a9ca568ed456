"""The numbers of a server: its own requests, and what the store says of jobs and workers, asked now and then."""

import asyncio
from collections import Counter as Tally
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import TideError, Unavailable
from tidewheel.model.alert import AlertState, Rule
from tidewheel.model.duty import Agenda
from tidewheel.model.limit import Limit
from tidewheel.model.states import ACTIVE, State
from tidewheel.observe import Described, Numbers, Registry, Row, page
from tidewheel.observe.catalogue import (
    ALERTS_FIRING,
    CENSUS_TIME,
    DEAD_LETTERS,
    DEAD_ROWS,
    FINISHED,
    JOBS_KEPT,
    LIMIT,
    LIMIT_IN_USE,
    QUEUE_DEPTH,
    QUEUE_OLDEST,
    REQUEST_SECONDS,
    REQUESTS,
    REQUESTS_UNDER_WAY,
    RUNNING,
    SCHEDULE_LAG,
    SCHEDULE_MISSED,
    STORE_SECONDS,
    STORE_UP,
    SUBMITTED,
    UNINDEXED_LINES,
    UNINDEXED_SECONDS,
    WORKERS_ALIVE,
    build_info,
)
from tidewheel.store.base import Counts, Store

FRESH: Final = 5.0
"""Seconds for which what the store said is shown again."""
ASK_WITHIN: Final = 2.0
GATHER_WITHIN: Final = 1.5
"""Seconds for the processes beside this one to say what they have counted."""
MOST_QUEUES: Final = 100
"""Queues with numbers of their own; the others are shown as one."""
MOST_ALERTS: Final = 1000
MOST_LIMITS: Final = 50
OTHERS: Final = "(others)"

Ask = Callable[[float], Awaitable[Sequence[Numbers]]]


class ServerMetrics:
    """What `/metrics` shows."""

    def __init__(self, store: Store, clock: Clock, under_way: Callable[[], int]) -> None:
        self._store = store
        self._clock = clock
        self._registry = Registry()
        self._all: Ask | None = None
        self._gathered: Sequence[Numbers] | None = None
        self._requests = self._registry.counter(REQUESTS)
        self._seconds = self._registry.histogram(REQUEST_SECONDS)
        self._submitted = self._registry.counter(SUBMITTED)
        self._store_seconds = self._registry.histogram(STORE_SECONDS)
        self._registry.gauge(REQUESTS_UNDER_WAY, lambda: {(): under_way()})
        self._of_store: Sequence[Numbers] = ()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    def join(self, registry: Registry, ask: Ask) -> None:
        """Be one of several processes: count for `registry`, too, and show what `ask` says of all, added up."""
        registry.include(self._registry)
        self._all = ask

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; `endpoint` is a name of the table, for paths are endless."""
        self._requests.add(endpoint, str(status))
        self._seconds.observe(seconds, endpoint)

    def submitted(self, queue: str, jobs: int = 1) -> None:
        """Count jobs that were stored."""
        self._submitted.add(queue, value=jobs)

    async def page(self) -> bytes:
        """Return the page."""
        numbers, of_store = await asyncio.gather(self._gather(), self._ask())
        return page([build_info(), *numbers, *of_store])

    async def _gather(self) -> Sequence[Numbers]:
        """Ask for the numbers of all processes. Those of this one alone would look as if counters had fallen."""
        if self._all is None:
            return self._registry.numbers()
        try:
            self._gathered = await self._all(GATHER_WITHIN)
        except TimeoutError:
            if self._gathered is None:
                raise Unavailable("the processes beside this one do not answer") from None
        return self._gathered

    async def _ask(self) -> Sequence[Numbers]:
        """Ask the store, unless it was asked a moment ago; many who look at once make one question."""
        async with self._asking:
            if self._clock.monotonic() - self._asked_at >= FRESH:
                began = self._clock.monotonic()
                try:
                    async with asyncio.timeout(ASK_WITHIN):
                        self._of_store = [_one(STORE_UP, 1), *await self._from_store()]
                except (TimeoutError, TideError):
                    self._of_store = [_one(STORE_UP, 0)]
                self._asked_at = self._clock.monotonic()
                self._store_seconds.observe(self._asked_at - began)
            return self._of_store

    async def _from_store(self) -> list[Numbers]:
        counts, workers = await self._store.counts(), await self._store.workers(alive=True)
        firing = Tally(alert.rule for alert in await self._store.alerts(state=AlertState.FIRING, limit=MOST_ALERTS))
        alerts: dict[tuple[str, ...], float] = {(rule.value,): firing[rule] for rule in Rule}
        waits = sorted(await self._store.queue_waits(), key=lambda fact: fact.waits, reverse=True)[:MOST_QUEUES]
        oldest: dict[tuple[str, ...], float] = {(fact.queue,): fact.waits.total_seconds() for fact in waits}
        backlog = await self._store.unindexed_logs()
        return [
            *_of_jobs(counts),
            _many(FINISHED, _finished(await self._store.finished())),
            _many(QUEUE_OLDEST, oldest),
            *_of_limits(await self._store.limits()),
            _one(SCHEDULE_LAG, _lag(await self._store.agenda())),
            _one(SCHEDULE_MISSED, await self._store.missed()),
            _many(DEAD_ROWS, {(fact.table,): fact.dead for fact in await self._store.table_facts()}),
            _one(UNINDEXED_LINES, backlog.lines),
            _one(UNINDEXED_SECONDS, backlog.waits.total_seconds()),
            _many(ALERTS_FIRING, alerts),
            _one(WORKERS_ALIVE, len(workers)),
        ]


def _of_jobs(counts: Counts) -> list[Numbers]:
    depth, ended, dead, running = (Tally[tuple[str, ...]]() for _ in range(4))
    shown = _largest((row.queue, row.jobs) for row in counts.rows)
    for row in counts.rows:
        queue = row.queue if row.queue in shown else OTHERS
        (depth if row.state in ACTIVE else ended)[queue, row.state.value] += row.jobs
        if row.state is State.DEAD:
            dead[queue,] += row.jobs
        if row.state is State.RUNNING:
            running[queue,] += row.jobs
    return [
        _many(QUEUE_DEPTH, depth),
        _many(RUNNING, running),
        _many(JOBS_KEPT, ended),
        _many(DEAD_LETTERS, dead),
        _one(CENSUS_TIME, counts.as_of.timestamp()),
    ]


def _largest(jobs_of_queues: Iterable[tuple[str, int]]) -> set[str]:
    """Return the queues that have numbers of their own: those with the most jobs."""
    totals = Tally[str]()
    for queue, jobs in jobs_of_queues:
        totals[queue] += jobs
    return {queue for queue, _ in totals.most_common(MOST_QUEUES)}


def _finished(ended: Mapping[tuple[str, State], int]) -> Mapping[tuple[str, ...], float]:
    """Name the queues with the most ends, and show the others as one."""
    shown = _largest((queue, jobs) for (queue, _), jobs in ended.items())
    rows = Tally[tuple[str, ...]]()
    for (queue, state), jobs in ended.items():
        rows[queue if queue in shown else OTHERS, state.value] += jobs
    return rows


def _of_limits(limits: Sequence[Limit]) -> list[Numbers]:
    """Add up by names: the values of keys, and whose they are, are nobody's business here."""
    most, running = Tally[tuple[str, ...]](), Tally[tuple[str, ...]]()
    for limit in limits:
        if limit.most is not None:
            name = (limit.rule or limit.key).partition("=")[0]
            most[name,] += limit.most
            running[name,] += limit.running
    shown = [name for name, _ in running.most_common(MOST_LIMITS)]
    return [
        _many(LIMIT, {name: most[name] for name in shown}),
        _many(LIMIT_IN_USE, {name: running[name] for name in shown}),
    ]


def _lag(agenda: Agenda) -> float:
    """Return for how long an occurrence has been due that nobody has written yet."""
    first = min((at for at in agenda.next_fires if at is not None), default=agenda.now)
    return max(0.0, (agenda.now - first).total_seconds())


def _one(metric: Described, value: float) -> Numbers:
    return Numbers(metric, [Row((), [value])])


def _many(metric: Described, values: Mapping[tuple[str, ...], float]) -> Numbers:
    return Numbers(metric, [Row(labels, [value]) for labels, value in values.items()])
