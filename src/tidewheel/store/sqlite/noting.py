"""Notes of runs: progress, checkpoints, and whether one is paused."""

from collections.abc import Sequence
from uuid import UUID

import apsw

from tidewheel.model.note import RunNote
from tidewheel.store.sqlite.connection import value
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text, some


def note(session: Session, worker_id: UUID, notes: Sequence[RunNote]) -> None:
    """See `store.base.NoteStore.note`."""
    rows = [
        (note.job_id, note.token, note.progress, note.message, note.checkpoint, some(int, note.paused))
        for note in notes
    ]
    session.run("note_runs", notes=json_text(rows), worker=worker_id.bytes, now=session.now)


def checkpoint_of(connection: apsw.Connection, job_id: UUID) -> str | None:
    """See `store.base.NoteStore.checkpoint_of`."""
    text: str | None = value(connection, "checkpoint_of", {"id": job_id.bytes})
    return text
