"""Stores what became of runs: what gathers while one batch is on its way goes with the next."""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.outcome import Failure, Outcome, Verdict
from tidewheel.model.states import Cause
from tidewheel.store.base import RunStore
from tidewheel.worker.patience import Patience

MOST_IN_BATCH: Final = 500
FEW: Final = 50
GATHER: Final = 0.004
"""While one batch follows the other, a small one waits so many seconds for more: a commit costs the same for all."""
FIRST_PAUSE: Final = 0.05
LONGEST_PAUSE: Final = 1.0
ODD_PAUSE: Final = 1.0
"""Seconds after which an outcome is tried again that the store refused for a reason which is not its own."""

_UNSTORABLE: Final = (Invalid, TypeError, ValueError, OverflowError)
"""What says that an outcome itself cannot be stored, now or ever."""

RunKey = tuple[UUID, int]
"""A job and the token of one of its runs."""

_log = logging.getLogger(__name__)


class Settler:
    """Reports outcomes for one worker. None is forgotten: while the store is away they wait."""

    def __init__(self, store: RunStore, worker_id: UUID, clock: Clock) -> None:
        self._store = store
        self._worker_id = worker_id
        self._clock = clock
        self._waiting: deque[Outcome] = deque()
        self._flying: list[Outcome] = []
        self._held: dict[int, Outcome] = {}
        """By their identity in memory: to hash the id of a job takes longer than all else that is done here."""
        self._later: set[asyncio.Task[None]] = set()
        self._some = asyncio.Event()
        self._none = asyncio.Event()
        self._none.set()
        self.stale = 0
        """How many outcomes came too late: the run had passed to someone else."""

    def add(self, outcome: Outcome) -> None:
        """Take an outcome; it is stored within milliseconds."""
        self._waiting.append(outcome)
        if not self._some.is_set():
            self._some.set()
            self._none.clear()

    def hold(self, outcome: Outcome) -> None:
        """Take an outcome that must wait until the words of its run are stored."""
        self._held[id(outcome)] = outcome
        self._none.clear()

    def let_go(self, outcome: Outcome, in_time: bool = True) -> None:  # noqa: FBT001, FBT002 - called back
        """Store an outcome that was held, since the words are stored, or have not been within a reasonable time."""
        if not in_time:
            about = {"job_id": str(outcome.job_id)}
            _log.warning("the last lines of job %s were not stored in time", outcome.job_id, extra=about)
        del self._held[id(outcome)]
        self.add(outcome)

    @property
    def unstored(self) -> set[RunKey]:
        """The runs that have ended here, but not yet in the store."""
        outcomes = (*self._flying, *self._waiting, *self._held.values())
        return {(outcome.job_id, outcome.token) for outcome in outcomes}

    async def run(self) -> None:
        """Store outcomes until cancelled."""
        while True:
            await self._some.wait()
            follows = False
            while self._waiting:
                if follows and len(self._waiting) < FEW:
                    await self._clock.sleep(GATHER)
                follows = True
                self._flying = [self._waiting.popleft() for _ in range(min(MOST_IN_BATCH, len(self._waiting)))]
                await self._store_batch(self._flying)
                self._flying = []
            self._some.clear()
            if not self._held:
                self._none.set()

    async def drained(self) -> None:
        """Return when everything is stored."""
        await self._none.wait()

    async def _store_batch(self, batch: Sequence[Outcome]) -> None:
        patience = Patience(self._clock, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
        while True:
            try:
                verdicts = await self._store.settle(self._worker_id, batch)
            except Unavailable as error:
                _log.warning("%d outcomes wait: %s", len(batch), error)
                await patience.pause()
            except Exception as error:  # noqa: BLE001 - outcomes must not be lost to a bug
                _log.exception("%d outcomes could not be stored", len(batch))
                await self._store_apart(batch, unstorable=isinstance(error, _UNSTORABLE))
                return
            else:
                self.stale += sum(verdict is Verdict.STALE for verdict in verdicts)
                return

    async def _store_apart(self, batch: Sequence[Outcome], *, unstorable: bool) -> None:
        """Store one by one what cannot be stored together; one that cannot be stored at all ends its own job.

        What fails for any other reason is tried again later: no result is given up for trouble that is not its own.
        """
        if len(batch) > 1:
            for outcome in batch:
                await self._store_batch([outcome])
        elif not unstorable:
            self.hold(batch[0])
            self._later.add(task := asyncio.create_task(self._try_later(batch[0])))
            task.add_done_callback(self._later.discard)
        elif batch[0].error is None or batch[0].error.reason != "unstorable":
            error = Failure(reason="unstorable", message="the outcome of this run could not be stored")
            await self._store_batch([Outcome(batch[0].job_id, batch[0].token, Cause.GAVE_UP, error=error)])

    async def _try_later(self, outcome: Outcome) -> None:
        await self._clock.sleep(ODD_PAUSE)
        self.let_go(outcome)
