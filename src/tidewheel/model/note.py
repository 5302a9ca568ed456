"""What a run says of itself while it goes on: how far it is, and from where its job could go on."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json_text, clean_text

MAX_CHECKPOINT: Final = 64 * 1024
MAX_MESSAGE: Final = 1000


class RunNote(msgspec.Struct, frozen=True, kw_only=True):
    """A note of one run; what is None leaves what was noted before, and so does an empty message without progress."""

    job_id: UUID
    token: int
    progress: float | None = None
    """From 0 to 1."""
    message: str = ""
    checkpoint: str | None = None
    """JSON text, of at most `MAX_CHECKPOINT` bytes."""
    paused: bool | None = None


def prepare_notes(notes: Sequence[RunNote]) -> list[RunNote]:
    """Return notes that can be stored, one for each job, in the order of the ids; the last word of a run counts."""
    merged: dict[UUID, RunNote] = {}
    for position, note in enumerate(notes):
        checked = _check(note, f"notes[{position}]")
        before = merged.get(note.job_id)
        if before is None or before.token < note.token:
            merged[note.job_id] = checked
        elif before.token == note.token:
            merged[note.job_id] = merge_notes(before, checked)
    return [merged[job_id] for job_id in sorted(merged)]


def _check(note: RunNote, field: str) -> RunNote:
    if note.progress is not None and not 0 <= note.progress <= 1:
        raise Invalid(f"{field}.progress", f"must be between 0 and 1, not {note.progress}")
    checkpoint = note.checkpoint
    if checkpoint is not None:
        checkpoint = check_json_text(f"{field}.checkpoint", checkpoint, MAX_CHECKPOINT)
    return msgspec.structs.replace(note, message=clean_text(note.message, MAX_MESSAGE), checkpoint=checkpoint)


def merge_notes(before: RunNote, note: RunNote) -> RunNote:
    """Return what two notes of one run say together."""
    told = note.progress is not None or note.message
    return RunNote(
        job_id=note.job_id,
        token=note.token,
        progress=before.progress if note.progress is None else note.progress,
        message=note.message if told else before.message,
        checkpoint=before.checkpoint if note.checkpoint is None else note.checkpoint,
        paused=before.paused if note.paused is None else note.paused,
    )
