"""What runs say while they run, on its way to the store: log lines, progress, checkpoints, pauses."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import TideError, Unavailable
from tidewheel.logs.masks import Masks
from tidewheel.logs.run_log import RunLog
from tidewheel.logs.shipper import LogShipper
from tidewheel.model.job import Run
from tidewheel.model.note import RunNote, merge_notes
from tidewheel.store.telling import LogStore, NoteStore
from tidewheel.tasks.ending import Ended
from tidewheel.worker.execution import Stream
from tidewheel.worker.settler import RunKey

FLUSH_WITHIN: Final = 2.0
"""Seconds that an outcome waits at most for the words of its run to be stored."""
NOTES_EVERY: Final = 0.05
"""Seconds between two batches of notes."""

LATE: Final = "the last lines of job %s were not stored in time"

_NO_MASKS: Final = Masks()
_log = logging.getLogger(__name__)


class ReportStore(LogStore, NoteStore, Protocol):
    """What reports ask of a store."""


class Report:
    """The words of one run; a `Sink` for executors and a `Reporter` for contexts. Costs nothing until it is used."""

    __slots__ = ("_lane", "_lines", "_masks", "_noted", "_reports", "_secrets", "key", "spoke")

    def __init__(self, reports: "Reports", key: RunKey, lane: int) -> None:
        self._reports = reports
        self._lane = lane
        self._lines: RunLog | None = None
        self._secrets: Sequence[str] = ()
        self._masks = _NO_MASKS
        self._noted = False
        self.key = key
        self.spoke = False
        """Whether there is anything to be stored."""

    @property
    def full(self) -> bool:
        """Whether no more output is kept, so that there is no hurry to read it."""
        return self._lines is not None and self._lines.full

    def hide(self, secrets: Sequence[str]) -> None:
        """Keep secrets out of all that is said from now on; before the run begins."""
        self._secrets, self._masks = secrets, Masks(secrets)

    def hidden(self, ended: Ended) -> Ended:
        """Return the end of the run without secrets in its result or in the texts of its error."""
        if self._masks is _NO_MASKS:
            return ended
        return msgspec.structs.replace(
            ended,
            result=None if ended.result is None else self._masks.hide_in_json(ended.result),
            message=self._masks.hide_in_cut(ended.message),
            detail=None if ended.detail is None else self._masks.hide_in_cut(ended.detail),
        )

    def output(self, stream: Stream, data: bytes | str) -> None:
        (self._lines or self._open()).output(stream, data)

    def log(self, level: str, text: str) -> None:
        (self._lines or self._open()).log(level, text)

    def _open(self) -> RunLog:
        shipper, clock = self._reports.shipper, self._reports.clock
        lines = self._lines = RunLog(*self.key, shipper, clock, mask=self._secrets, lane=self._lane)
        self.spoke = True
        return lines

    def progress(self, fraction: float, message: str) -> None:
        self._note(RunNote(job_id=self.key[0], token=self.key[1], progress=fraction, message=self._masks.hide(message)))

    def checkpoint(self, data: str) -> None:
        self._note(RunNote(job_id=self.key[0], token=self.key[1], checkpoint=self._masks.hide_in_json(data)))

    def paused(self, *, yes: bool) -> None:
        """Tell that the run stands still, or goes on."""
        self._note(RunNote(job_id=self.key[0], token=self.key[1], paused=yes))

    def _note(self, note: RunNote) -> None:
        self.spoke = self._noted = True
        self._reports.note(note)

    async def close(self) -> None:
        """Have all words stored before the outcome is, if the store is there to take them."""
        if self._lines is not None:
            self._lines.end()
        if self.spoke:
            await self._reports.flush(self.key)

    async def close_before(self, settle: Callable[[], None]) -> None:
        """Have all words stored, then call this. Wait for that only if the store does not keep up, or for notes."""
        if self._noted or self._lines is None or self._reports.shipper.behind:
            await self.close()
            settle()
            return
        self._lines.end()
        self._reports.when_stored(self.key, settle)


class Reports:
    """Collects the words of all runs of one worker, and stores them in batches."""

    def __init__(self, store: ReportStore, worker_id: UUID, clock: Clock) -> None:
        self._store = store
        self._worker_id = worker_id
        self.clock = clock
        self._notes: dict[RunKey, RunNote] = {}
        self._noted = asyncio.Event()
        self._writing = asyncio.Lock()
        self.shipper = LogShipper(store.append_pieces, clock)

    def open(self, run: Run) -> Report:
        """Return where a run may speak."""
        return Report(self, (run.job_id, run.token), run.lane)

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
            _log.warning("the last notes of job %s were not stored in time", key[0])
        if not await self.shipper.flush(*key):
            _log.warning(LATE, key[0])

    def when_stored(self, key: RunKey, then: Callable[[], None]) -> None:
        """Call `then` when the lines of this run are stored, or that has taken longer than is reasonable."""

        def told(in_time: bool) -> None:  # noqa: FBT001 - by the shipper
            if not in_time:
                _log.warning(LATE, key[0])
            then()

        self.shipper.when_stored(*key, told)

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
