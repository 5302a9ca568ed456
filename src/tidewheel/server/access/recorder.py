"""Writes down who changed what, in batches.

Two ways lead into the log. What is rare and weighs much (keys, tenants, erasure) is written by the store itself, in the
transaction of the change. All else comes here: `record` for what an operator does (gates, limits, schedules, retries)
returns once the entry is stored, so that nobody is told of a change that was not written down; `note` for what is
frequent (submits, cancellations) returns at once, and several submits of one key within a moment become one entry.

An entry waits here for a moment only. While the store cannot be reached entries wait, and are tried again; those that
find no room, that are refused, or that are still here when the server must end are told to the process's own log, each
with all that it says. So an entry is stored, or it is in that log: none is lost in silence. After an answer that was
lost an entry may stand there twice.
"""

import asyncio
import contextlib
import logging
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.access import Action, Actor
from tidewheel.model.audit import Change, change_by
from tidewheel.store.access import AuditStore

GATHER: Final = 0.05
"""Seconds that an entry waits for others."""
MOST_WAITING: Final = 10_000
BATCH: Final = 500
FIRST_PAUSE: Final = 0.1
LONGEST_PAUSE: Final = 5.0
CLOSE_WITHIN: Final = 5.0
NAMED: Final = 20
"""How many jobs one entry about many names."""

_log = logging.getLogger(__name__)


class _Waiting:
    """A change on its way."""

    def __init__(self, change: Change) -> None:
        self.change = change
        self.stored: asyncio.Future[None] | None = None


class AuditRecorder:
    """Stores changes in the order in which they came. Belongs to the loop that it was made in."""

    def __init__(self, store: AuditStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._waiting: list[_Waiting] = []
        self._writing: list[_Waiting] = []
        self._submits: dict[tuple[Actor, str | None], _Waiting] = {}
        self._some = asyncio.Event()
        self._urgent = asyncio.Event()
        self._idle = asyncio.Event()
        self._idle.set()
        self._task = asyncio.create_task(self._run(), name="audit recorder")

    def note(
        self, actor: Actor, action: Action, subject: object = "", *, tenant: str | None = None, **detail: Any
    ) -> None:
        """Have a change written down soon."""
        self._add(change_by(actor, action, subject, tenant=tenant, **detail))

    def note_submit(self, actor: Actor, job_ids: Sequence[object], *, tenant: str) -> None:
        """Have a submit written down soon, together with others of the same actor in the same moment."""
        if not job_ids:
            return
        earlier = self._submits.get((actor, tenant))
        named = 0 if earlier is None else len(earlier.change.detail["ids"])
        names = [str(job_id) for job_id in job_ids[: NAMED - named]]
        if earlier is None:
            change = change_by(actor, Action.JOBS_SUBMIT, names[0], tenant=tenant, jobs=len(job_ids), ids=names)
            if (waiting := self._add(change)) is not None:
                self._submits[actor, tenant] = waiting
            return
        told = earlier.change.detail
        detail = {"jobs": told["jobs"] + len(job_ids), "ids": [*told["ids"], *names]}
        earlier.change = msgspec.structs.replace(earlier.change, detail=detail)

    async def record(
        self, actor: Actor, action: Action, subject: object = "", *, tenant: str | None = None, **detail: Any
    ) -> None:
        """Return once a change is written down.

        Raises Unavailable while the log cannot be reached; the entry is tried again all the same. Raises Invalid for
        what cannot be written.
        """
        waiting = self._add(change_by(actor, action, subject, tenant=tenant, **detail))
        if waiting is None:
            raise Unavailable("the audit log does not keep up")
        waiting.stored = asyncio.get_running_loop().create_future()
        self._urgent.set()
        await waiting.stored

    async def close(self, within: float = CLOSE_WITHIN) -> int:
        """Store what waits, within so many seconds; return how many entries went to the process's log instead."""
        self._urgent.set()
        too_late = asyncio.ensure_future(self._clock.sleep(within))
        done = asyncio.ensure_future(self._idle.wait())
        await asyncio.wait((too_late, done), return_when=asyncio.FIRST_COMPLETED)
        for task in (too_late, done, self._task):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        left = [*self._writing, *self._waiting]
        self._give_up(left, Unavailable("the server ends, and the audit log cannot be reached"))
        self._writing, self._waiting = [], []
        return len(left)

    def _add(self, change: Change) -> _Waiting | None:
        waiting = _Waiting(change)
        if len(self._waiting) >= MOST_WAITING:
            self._give_up([waiting], Unavailable("too many changes wait to be written down"))
            return None
        self._waiting.append(waiting)
        self._idle.clear()
        self._some.set()
        return waiting

    async def _run(self) -> None:
        while True:
            await self._some.wait()
            await self._gather()
            self._submits.clear()
            while self._waiting:
                self._writing, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
                await self._write()
            self._some.clear()
            self._idle.set()

    async def _gather(self) -> None:
        """Give others time to come, unless someone waits for it."""
        pause = asyncio.ensure_future(self._clock.sleep(GATHER))
        urgent = asyncio.ensure_future(self._urgent.wait())
        try:
            await asyncio.wait((pause, urgent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            pause.cancel()
            urgent.cancel()
        self._urgent.clear()

    async def _write(self) -> None:
        """Store a batch, for as long as that takes; if it is refused, one by one."""
        pause = FIRST_PAUSE
        while self._writing:
            try:
                await self._store.audit([waiting.change for waiting in self._writing])
            except Unavailable as error:
                self._tell_impatient(error)
                await self._clock.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception as error:  # noqa: BLE001 - whatever it is, the entry must not be lost with it
                await self._write_each(error)
            else:
                _settle(self._writing, None)
                self._writing = []

    async def _write_each(self, error: Exception) -> None:
        if len(self._writing) == 1:
            self._give_up(self._writing, error)
            self._writing = []
            return
        batch = self._writing
        for waiting in batch:
            self._writing = [waiting]
            await self._write()

    def _tell_impatient(self, error: Unavailable) -> None:
        """Tell those who wait that it takes longer; their entries are tried again all the same."""
        _log.warning("%d changes wait to be written down: %s", len(self._writing) + len(self._waiting), error)
        _settle(self._writing, error)

    def _give_up(self, lost: Sequence[_Waiting], error: Exception) -> None:
        for waiting in lost:
            _log.error("not in the audit log: %s", msgspec.json.encode(waiting.change, enc_hook=str).decode())
        _settle(lost, error)


def _settle(changes: Sequence[_Waiting], error: Exception | None) -> None:
    for waiting in changes:
        if waiting.stored is not None and not waiting.stored.done():
            if error is None:
                waiting.stored.set_result(None)
            else:
                waiting.stored.set_exception(error)
