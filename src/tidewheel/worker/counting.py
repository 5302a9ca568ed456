"""What is counted where jobs are taken and run, and how it reaches whoever shows it.

Both ends of a link may ask the other what it has counted. A supervisor asks its children when someone looks, and a
server asks its supervisor for all of them: while nobody looks, nothing is sent.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tidewheel.model.job import Run
from tidewheel.model.states import Cause
from tidewheel.observe import Numbers, Registry
from tidewheel.observe.catalogue import CLAIM_SECONDS, CLAIMS, JOB_WAIT, RETRIES, RUN_SECONDS, RUNS
from tidewheel.worker.link import Count, Counted, Link, Message

Tell = Callable[[], Awaitable[Sequence[Numbers]]]


class RunNumbers:
    """Counts what a child takes and what becomes of it."""

    def __init__(self, registry: Registry) -> None:
        self._claims = registry.counter(CLAIMS)
        self._claim_seconds = registry.histogram(CLAIM_SECONDS)
        self._waits = registry.histogram(JOB_WAIT)
        self._retries = registry.counter(RETRIES)
        self._runs = registry.counter(RUNS)
        self._run_seconds = registry.histogram(RUN_SECONDS)

    def claimed(self, seconds: float, runs: Sequence[Run]) -> None:
        """Count a claim that was answered after so many seconds."""
        self._claims.add("some" if runs else "none")
        self._claim_seconds.observe(seconds)
        for run in runs:
            self._waits.observe(max(0.0, (run.claimed_at - run.run_at).total_seconds()), run.queue)
            if run.failures:
                self._retries.add(run.kind)

    def unclaimed(self) -> None:
        """Count a claim that failed."""
        self._claims.add("error")

    def ended(self, kind: str, cause: Cause, seconds: float) -> None:
        """Count a run that took so long."""
        self._runs.add(kind, cause.value)
        self._run_seconds.observe(seconds, kind)


class Inquiry:
    """Asks the other end of a link for its numbers, and answers the same question."""

    def __init__(self, link: Link, tell: Tell) -> None:
        self._link = link
        self._tell = tell
        self._asked: dict[int, asyncio.Future[Sequence[Numbers]]] = {}
        self._telling: set[asyncio.Task[None]] = set()
        self._number = 0

    async def ask(self, within: float) -> Sequence[Numbers]:
        """Return what the other end has counted. Raises TimeoutError."""
        self._number += 1
        number = self._number
        answer: asyncio.Future[Sequence[Numbers]] = asyncio.get_running_loop().create_future()
        self._asked[number] = answer
        self._link.send(Count(number))
        try:
            async with asyncio.timeout(within):
                return await answer
        finally:
            del self._asked[number]

    def hears(self, word: Message) -> bool:
        """Take a word if it is about numbers."""
        if isinstance(word, Count):
            self._telling.add(task := asyncio.ensure_future(self._answer(word.number)))
            task.add_done_callback(self._telling.discard)
        elif isinstance(word, Counted):
            answer = self._asked.get(word.number)
            if answer is not None and not answer.done():
                answer.set_result(word.numbers)
        return isinstance(word, Count | Counted)

    async def _answer(self, number: int) -> None:
        self._link.send(Counted(number, list(await self._tell())))


def slots_of(part: str, slots: int, busy: int) -> Mapping[tuple[str, ...], float]:
    """Return how many places of a part are taken and how many are free."""
    return {(part, "busy"): busy, (part, "free"): max(0, slots - busy)}
