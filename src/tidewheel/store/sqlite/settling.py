"""Settling: what workers report of their runs is stored, or recognised, or refused; one bad row disturbs no other."""

from collections.abc import Mapping, Sequence
from typing import Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.outcome import REPORTABLE, Outcome, Verdict, recognise
from tidewheel.store.sqlite.ending import Held, bury, end_runs
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text

Pair = tuple[Held, Outcome]

_UNSTORABLE: Final = (
    apsw.ConstraintError,
    apsw.MismatchError,
    apsw.TooBigError,
    msgspec.MsgspecError,
    OverflowError,
    UnicodeError,
)
_held: Final = msgspec.json.Decoder(list[Held]).decode
_causes: Final = msgspec.json.Decoder(list[str | None]).decode


def check_reportable(outcomes: Sequence[Outcome]) -> None:
    """Refuse causes that are for the store to find."""
    for position, outcome in enumerate(outcomes):
        if outcome.cause not in REPORTABLE:
            raise Invalid(f"outcomes[{position}].cause", f"a worker cannot report {outcome.cause}")


def settle(session: Session, worker_id: UUID, outcomes: Sequence[Outcome], flaws: Mapping[int, str]) -> list[Verdict]:
    """See `store.base.RunStore.settle`; outcomes with a flaw end their jobs as unstorable."""
    now = session.now
    verdicts: list[Verdict | None] = [None] * len(outcomes)
    ends: list[Pair] = []
    settled: set[int] = set()
    jobs = json_text([outcome.job_id for outcome in outcomes])
    for run in _held(session.value("runs_named", jobs=jobs, worker=worker_id.bytes)):
        outcome = outcomes[run.index]
        # The same run a second time in one call is a repetition like any other.
        if run.token == outcome.token and run.place not in settled:
            settled.add(run.place)
            if why := flaws.get(run.index):
                verdicts[run.index] = Verdict.UNSTORABLE
                bury(session, run, why, now)
            else:
                verdicts[run.index] = Verdict.ACCEPTED
                ends.append((run, outcome))
    for index in _end(session, ends, now):
        verdicts[index] = Verdict.UNSTORABLE
    doubtful = [index for index, verdict in enumerate(verdicts) if verdict is None]
    found = _find(session, worker_id, [outcomes[index] for index in doubtful])
    for index, cause in zip(doubtful, found, strict=True):
        verdicts[index] = recognise(outcomes[index].cause, cause)
    return [verdict for verdict in verdicts if verdict is not None]


def _end(session: Session, ends: list[Pair], now: int) -> list[int]:
    """End runs by halves until every one that cannot be stored stands alone; return which those are."""
    if not ends:
        return []
    session.connection.execute("SAVEPOINT part")
    try:
        end_runs(session, ends, now)
    except _UNSTORABLE as error:
        if not session.connection.in_transaction:
            raise
        session.connection.execute("ROLLBACK TO part")
        unstorable = _end_parts(session, ends, error, now)
    else:
        unstorable = []
    session.connection.execute("RELEASE part")
    return unstorable


def _end_parts(session: Session, ends: list[Pair], error: Exception, now: int) -> list[int]:
    if len(ends) > 1:
        half = len(ends) // 2
        return _end(session, ends[:half], now) + _end(session, ends[half:], now)
    run = ends[0][0]
    bury(session, run, str(error), now)
    return [run.index]


def _find(session: Session, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[str | None]:
    """Find what ended runs that are no longer this worker's."""
    if not outcomes:
        return []
    named = json_text([(outcome.job_id, outcome.token) for outcome in outcomes])
    return _causes(session.value("find_ended", runs=named, worker=worker_id.bytes))
