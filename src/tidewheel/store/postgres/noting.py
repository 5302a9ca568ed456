"""Notes of runs: progress, checkpoints, and whether one is paused."""

from collections.abc import Sequence
from uuid import UUID

from tidewheel.model.note import RunNote, prepare_notes
from tidewheel.store.postgres.connection import SQL
from tidewheel.store.postgres.parts import Part


class Noting(Part):
    """See `store.base.NoteStore`."""

    async def note(self, worker_id: UUID, notes: Sequence[RunNote]) -> None:
        merged = prepare_notes(notes)
        if merged:
            columns = [
                [note.job_id for note in merged],
                [note.token for note in merged],
                [note.progress for note in merged],
                [note.message for note in merged],
                [note.checkpoint for note in merged],
                [note.paused for note in merged],
            ]
            await self._db.write(lambda connection: connection.execute(SQL["note_runs"], worker_id, *columns))

    async def checkpoint_of(self, job_id: UUID) -> str | None:
        text: str | None = await self._db.read(lambda connection: connection.fetchval(SQL["checkpoint_of"], job_id))
        return text
