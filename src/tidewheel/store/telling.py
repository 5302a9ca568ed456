"""What every store promises about words that are no state: hints, and what runs say while they run.

The rules of `store.base` hold here, too.
"""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol
from uuid import UUID

from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import Piece
from tidewheel.model.note import RunNote
from tidewheel.store.bell import Bell


class HintStore(Protocol):
    """For whoever waits for work."""

    def listen(self) -> AbstractAsyncContextManager[Bell]:
        """Listen for hints: the bell rings soon after something happened that is worth a look, in any process.

        That is: jobs that are due now or within a second were submitted, given back, released from a limit or redriven;
        a gate was opened; or a running job was asked to stop. It may ring too often. Losing a ring costs time, never a
        job: whoever listens must look now and then all the same, and more often while the bell is not `healthy`. It
        rings once when hints can be relied on again. A bell belongs to one waiter.
        """
        ...


class NoteStore(Protocol):
    """For workers: what runs say of themselves while they go on."""

    async def note(self, worker_id: UUID, notes: Sequence[RunNote]) -> None:
        """Keep notes of runs, all that count or none.

        A note counts if its job is `running` with its token at this worker; others change nothing, silently. What a
        note leaves out stays as this run told it before; a new run begins with nothing but the checkpoint. Raises
        Invalid for the first bad one (`notes[3].checkpoint`), before anything is written; messages are cleaned.
        """
        ...

    async def checkpoint_of(self, job_id: UUID) -> str | None:
        """Return the last checkpoint of a job as JSON text, whichever of its runs kept it; a redrive removes it."""
        ...


class LogStore(Protocol):
    """For workers and readers: what runs wrote."""

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        """Store lines, all or none. A line that comes again, by (job, token, number), is harmless: the first counts.

        Lines are not guarded: also a run that was lost may tell what it did. What cannot be stored in a text is
        replaced. Raises Invalid for the first bad line (`lines[3].stream`).
        """
        ...

    async def append_pieces(self, pieces: Sequence[Piece]) -> None:
        """Store lines as `append_logs` does that `model.log_piece` put together; nothing of them is checked."""
        ...

    async def logs(
        self, job_id: UUID, *, tenant: str | None = None, after: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        """Return the lines of a job in the order of (token, number), beginning after `after`. Raises NotFound.

        There may be more as long as they fill a page (`store.pages`): by their number, or by the size of their texts.
        """
        ...

    async def last_logs(
        self, job_id: UUID, *, tenant: str | None = None, before: tuple[int, int] | None = None, limit: int = 1000
    ) -> list[LogLine]:
        """Return the last lines of a job, or the last ones before `before`, in the same order. Raises NotFound.

        As many as fill a page, counted from the last one.
        """
        ...
