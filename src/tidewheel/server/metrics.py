"""The numbers of a server: its own requests, and what the store says of jobs and workers, asked now and then."""

import asyncio
from collections import Counter as Tally
from collections.abc import Iterable, Sequence
from importlib.metadata import version
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import TideError
from tidewheel.model.states import ACTIVE, State
from tidewheel.model.worker import Worker
from tidewheel.observe import Registry, Sample, gauge
from tidewheel.store.base import Counts, Store

FRESH: Final = 5.0
"""Seconds for which what the store said is shown again."""
ASK_WITHIN: Final = 2.0
MOST_QUEUES: Final = 100
"""Queues with numbers of their own; the others are shown as one."""
OTHERS: Final = "(others)"


class ServerMetrics:
    """What `/metrics` shows."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._registry = Registry()
        self._requests = self._registry.counter(
            "tide_http_requests_total", "Requests that were answered.", "endpoint", "status"
        )
        self._seconds = self._registry.histogram(
            "tide_http_request_seconds", "Time until the answer began.", "endpoint"
        )
        self._store_lines: Sequence[str] = ()
        self._asked_at = float("-inf")
        self._asking = asyncio.Lock()

    def answered(self, endpoint: str, status: int, seconds: float) -> None:
        """Count a request; `endpoint` is a name of the table, for paths are endless."""
        self._requests.add(endpoint, str(status))
        self._seconds.observe(seconds, endpoint)

    async def page(self, under_way: int) -> bytes:
        """Return the page."""
        build = gauge("tide_build_info", "Which program this is.", [Sample({"version": version("tidewheel")}, 1)])
        busy = gauge("tide_http_requests_under_way", "Requests that are being answered.", [Sample({}, under_way)])
        return self._registry.page(build, busy, await self._ask())

    async def _ask(self) -> Sequence[str]:
        """Ask the store, unless it was asked a moment ago; many who look at once make one question."""
        async with self._asking:
            if self._clock.monotonic() - self._asked_at >= FRESH:
                try:
                    async with asyncio.timeout(ASK_WITHIN):
                        counts, workers = await self._store.counts(), await self._store.workers(alive=True)
                    self._store_lines = [*_up(1), *_of_jobs(counts), *_of_workers(workers)]
                except (TimeoutError, TideError):
                    self._store_lines = _up(0)
                self._asked_at = self._clock.monotonic()
            return self._store_lines


def _up(value: int) -> list[str]:
    return gauge("tide_store_up", "Whether the store answers.", [Sample({}, value)])


def _of_jobs(counts: Counts) -> Iterable[str]:
    depth, ended = Tally[tuple[str, str]](), Tally[tuple[str, str]]()
    totals = Tally[str]()
    for row in counts.rows:
        totals[row.queue] += row.jobs
    shown = {queue for queue, _ in totals.most_common(MOST_QUEUES)}
    for row in counts.rows:
        queue = row.queue if row.queue in shown else OTHERS
        (depth if row.state in ACTIVE else ended)[queue, row.state.value] += row.jobs
    dead = [Sample({"queue": queue}, jobs) for (queue, state), jobs in sorted(ended.items()) if state == State.DEAD]
    return [
        *gauge("tide_queue_depth", "Active jobs, as of the last census.", _samples(depth)),
        *gauge("tide_jobs_kept", "Finished jobs that are still kept.", _samples(ended)),
        *gauge("tide_dead_letters", "Jobs that ended without success and wait for someone.", dead),
        *gauge("tide_census_timestamp_seconds", "When jobs were last counted.", [Sample({}, counts.as_of.timestamp())]),
    ]


def _samples(tally: "Tally[tuple[str, str]]") -> list[Sample]:
    return [Sample({"queue": queue, "state": state}, jobs) for (queue, state), jobs in sorted(tally.items())]


def _of_workers(workers: Sequence[Worker]) -> list[str]:
    return gauge("tide_workers_alive", "Workers whose lease is valid.", [Sample({}, len(workers))])
