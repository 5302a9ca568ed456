"""What runs say while they run, on its way to the store: log lines, progress, checkpoints, pauses."""

import asyncio
import logging
from collections.abc import Sequence
from functools import partial
from typing import Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import TideError, Unavailable
from tidewheel.logs.run_log import RunLog
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.checks import clean_text
from tidewheel.model.job import Run
from tidewheel.model.log_piece import Piece
from tidewheel.model.note import MAX_MESSAGE, RunNote, merge_notes
from tidewheel.model.outcome import Outcome
from tidewheel.store.telling import LogStore, NoteStore
from tidewheel.tasks.ending import Ended
from tidewheel.worker.launcher.speaking import LONGEST
from tidewheel.worker.settler import RunKey, Settler

FLUSH_WITHIN: Final = 2.0
"""Seconds that an outcome waits at most for the words of its run to be stored."""
NOTES_EVERY: Final = 0.05
"""Seconds between two batches of notes."""

_log = logging.getLogger(__name__)


class ReportStore(LogStore, NoteStore, Protocol):
    """What reports ask of a store."""


class Report(RunLog):
    """The words of one run; a `Sink` for executors and a `Reporter` for contexts. Costs nothing until it is used."""

    _noted = False

    def __init__(self, reports: "Reports", run: Run) -> None:
        super().__init__(run.job_id, run.token, reports.shipper, reports.clock, lane=run.lane)
        self._reports = reports

    @property
    def key(self) -> RunKey:
        return self.job_id, self.token

    @property
    def spoke(self) -> bool:
        """Whether there is anything to be stored."""
        return self._noted or super().spoke

    def hidden(self, ended: Ended) -> Ended:
        """Return the end of the run without secrets in its result or in the texts of its error."""
        if self._masks.longest == 0:
            return ended
        return msgspec.structs.replace(
            ended,
            result=None if ended.result is None else self._masks.hide_in_json(ended.result),
            message=self._masks.hide_in_cut(ended.message),
            detail=None if ended.detail is None else self._masks.hide_in_cut(ended.detail),
        )

    def log(self, level: str, text: str) -> None:
        """Take what a function in a process of its own logged."""
        super().log(level, self._masks.hide_in_cut(text) if len(text) >= LONGEST else text)

    def progress(self, fraction: float, message: str) -> None:
        # Cut after secrets are hidden, not before; of what was cut at its sender, the end may be half a secret.
        hidden = self._masks.hide_in_cut(message) if len(message) >= LONGEST else self._masks.hide(message)
        shown = clean_text(hidden, MAX_MESSAGE)
        self._note(RunNote(job_id=self.key[0], token=self.key[1], progress=fraction, message=shown))

    def checkpoint(self, data: str) -> None:
        self._note(RunNote(job_id=self.key[0], token=self.key[1], checkpoint=self._masks.hide_in_json(data)))

    def paused(self, *, yes: bool) -> None:
        """Tell that the run stands still, or goes on."""
        self._note(RunNote(job_id=self.key[0], token=self.key[1], paused=yes))

    def _note(self, note: RunNote) -> None:
        self._noted = True
        self._reports.note(note)

    async def close(self) -> None:
        """Have all words stored before the outcome is, if the store is there to take them."""
        if self.spoke:
            self.end()
            await self._reports.flush(self.key)

    async def close_before(self, outcome: Outcome, settler: Settler) -> None:
        """Have all words stored, then the outcome. Wait for that only if the store does not keep up, or for notes."""
        settler.hold(outcome)
        if self._noted or self._shipper.behind:
            try:
                await self.close()
            finally:
                settler.let_go(outcome)
        else:
            self.end_soon(partial(settler.let_go, outcome))


class Reports:
    """Collects the words of all runs of one worker, and stores them in batches."""

    def __init__(self, store: ReportStore, worker_id: UUID, clock: Clock) -> None:
        self._store = store
        self._worker_id = worker_id
        self.clock = clock
        self._notes: dict[RunKey, RunNote] = {}
        self._noted = asyncio.Event()
        self._writing = asyncio.Lock()
        self.lines_stored = 0
        self.shipper = LogShipper(self._append, clock)

    def open(self, run: Run) -> Report:
        """Return where a run may speak."""
        return Report(self, run)

    async def _append(self, pieces: Sequence[Piece]) -> None:
        await self._store.append_pieces(pieces)
        self.lines_stored += sum([piece.last - piece.first + 1 for piece in pieces])

    def note(self, note: RunNote) -> None:
        """Keep a note; of each kind the last one counts."""
        key = (note.job_id, note.token)
        before = self._notes.get(key)
        self._notes[key] = note if before is None else merge_notes(before, note)
        self._noted.set()

    async def run(self) -> None:
        """Store notes until cancelled."""
        while True:
            await self._noted.wait()
            self._noted.clear()
            await self._write_notes()
            await self.clock.sleep(NOTES_EVERY)

    async def flush(self, key: RunKey) -> None:
        """Store what this run has said, and wait for that as long as is reasonable."""
        try:
            async with asyncio.timeout(FLUSH_WITHIN):
                if key in self._notes or self._writing.locked():
                    await self._write_notes()
        except TimeoutError:
            _log.warning("the last notes of job %s were not stored in time", key[0], extra={"job_id": str(key[0])})
        if not await self.shipper.flush(*key):
            _log.warning("the last lines of job %s were not stored in time", key[0], extra={"job_id": str(key[0])})

    async def _write_notes(self) -> None:
        async with self._writing:
            notes, self._notes = self._notes, {}
            if not notes:
                return
            try:
                await self._store.note(self._worker_id, list(notes.values()))
            except Unavailable as error:
                _log.warning("%d notes wait: %s", len(notes), error)
                for key, note in notes.items():
                    self._notes[key] = merge_notes(note, self._notes[key]) if key in self._notes else note
                self._noted.set()
            except TideError:
                _log.exception("%d notes could not be stored", len(notes))
