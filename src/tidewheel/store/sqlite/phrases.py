"""What jobs are found by: noted when it is said, and forgotten with the last job of its time."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.model.job_phrases import (
    Said,
    bounds_of_moment,
    bounds_of_period,
    moment_of,
    oldest_young_period,
    said_by_one_alone,
)
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, json_text

_PIECES: Final = 20
"""How many pieces of old phrases one call removes."""
_ids: Final = msgspec.json.Decoder(list[int]).decode

Write = Callable[[Callable[[Session], Any]], Awaitable[Any]]


def note_phrases(session: Session, said: Sequence[Said]) -> None:
    """Note what jobs are found by, in the transaction in which it is said."""
    if said:
        told = json_text(said)
        session.run("note_phrases", said=told)
        session.run("note_moments", said=told)


async def retire_phrases(write: Write, limit: int) -> None:
    """Forget the phrases of periods of which no job is left, in pieces."""
    pieces = _PIECES
    for period in await write(_old_periods):
        while pieces:
            gone = await write(partial(_forget, period, limit))
            pieces -= gone is not None
            if gone is None or gone < limit:
                break


def own_phrases(session: Session, job_id: UUID) -> list[Said]:
    """Return what a job is found by and no other that was made in the same moment."""
    below, floor = bounds_of_moment(moment_of(job_id))
    found = session.rows("found_by", below=below.bytes, floor=floor.bytes, id=job_id.bytes)
    return said_by_one_alone(job_id, ((id_of(stored), *told) for stored, *told in found))


def erase_phrases(session: Session, said: Sequence[Said]) -> None:
    """Forget what nobody but an erased job was found by. Kinds stay: processes remember that these are noted."""
    for tenant, phrase, moment in said:
        if session.value("is_kind", tenant=tenant, phrase=phrase):
            continue
        for step in ("erase_moment", "erase_phrase"):
            session.run(step, tenant=tenant, phrase=phrase, moment=moment)


def _old_periods(session: Session) -> list[int]:
    young = oldest_young_period(session.now / 1e6)
    return [period for (period,) in session.rows("old_periods_of_phrases", young=young)]


def _forget(period: int, limit: int, session: Session) -> int | None:
    """Remove a piece of the phrases of a period, and return how many; None while a job of it is left."""
    below, floor = bounds_of_period(period)
    if session.value("any_job_between", below=below.bytes, floor=floor.bytes):
        return None
    phrases: str = session.value("phrases_of_period", period=period, limit=limit)
    session.run("remove_moments", phrases=phrases)
    session.run("remove_phrases", phrases=phrases)
    return len(_ids(phrases))
