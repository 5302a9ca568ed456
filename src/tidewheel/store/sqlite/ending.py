"""How runs and waiting jobs end: the one place that moves rows to history, back to the queue, and frees limit keys."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.model.dependency import AT_ONCE
from tidewheel.model.fingerprint import fingerprint_of
from tidewheel.model.job_phrases import said_of_ends
from tidewheel.model.outcome import (
    ATTEMPTS,
    LOSSES,
    RETRIED,
    Failure,
    LossRule,
    Outcome,
    error_of,
    judge,
    unstorable,
)
from tidewheel.model.states import FINAL, Cause, State, move
from tidewheel.store.records import failure_text, usage_text
from tidewheel.store.sqlite.lanes import pair_of
from tidewheel.store.sqlite.limits import Key, free, let_go
from tidewheel.store.sqlite.phrases import note_phrases
from tidewheel.store.sqlite.releasing import EndedParent, Skip, Waiting, note, tell
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of, json_text, micros, some, span

COUNTED: Final = LossRule()


class Held(msgspec.Struct, array_like=True, frozen=True):
    """A run as the store has it."""

    index: int
    place: int
    token: int
    lane: int
    priority: int
    cancelling: int
    cancel_reason: str | None
    losses: int
    limit_keys: tuple[str, ...] | None
    awaited: UUID | None
    """The id of its job, if others wait for it."""
    held: int = 0


class Ended(NamedTuple):
    """A run, what is said of it, and the cause that counts."""

    run: Held
    outcome: Outcome
    cause: Cause


def end_runs(
    session: Session, ends: Iterable[tuple[Held, Outcome]], now: int, rule: LossRule = COUNTED
) -> Counter[Cause]:
    """End runs as the transition table says, and return how many ended by which cause."""
    returned: list[Ended] = []
    final: list[Ended] = []
    back: list[Ended] = []
    for run, outcome in ends:
        ended = Ended(run, outcome, _judge(run, outcome.cause, rule))
        if ended.cause is Cause.RETURNED:
            returned.append(ended)
        else:
            (final if move(State.RUNNING, ended.cause) in FINAL else back).append(ended)
    _finish_returned(session, returned, now)
    _finish(session, final, now)
    _give_back(session, back, now, rule)
    everyone = (*returned, *final, *back)
    free_keys(session, [ended.run for ended in everyone], now)
    awaited = [ended for ended in (*returned, *final) if ended.run.awaited is not None]
    if awaited:
        parents = {ended.run.awaited: EndedParent(move(State.RUNNING, ended.cause)) for ended in awaited}
        tell_children(session, _parents(parents), now)
    return Counter([ended.cause for ended in everyone])


def bury(session: Session, run: Held, why: str, now: int) -> None:
    """End a run whose outcome cannot be stored."""
    error = unstorable(why)
    told = (None, None, failure_text(error), None, None, fingerprint_of(error))
    row = (run.place, run.token, State.RUNNING, State.DEAD, Cause.UNSTORABLE, *told)
    _move_to_history(session, "finish", [row], Counter({(run.lane, State.DEAD): 1}), now)
    free_keys(session, [run], now)
    tell_children(session, _parents({run.awaited: EndedParent(State.DEAD)}), now)


def end_waiting(session: Session, jobs: Sequence[Waiting], cause: Cause, reason: str, now: int) -> int:
    """End jobs that nobody runs, and return how many."""
    return end_waiting_for(session, [(job, reason) for job in jobs], cause, now)


def end_waiting_for(session: Session, ends: Sequence[tuple[Waiting, str]], cause: Cause, now: int) -> int:
    """End jobs that nobody runs, each for a reason of its own, and return how many."""
    _end_waiting(session, ends, cause, now)
    jobs = [job for job, _ in ends]
    session.lanes.mistrust(pair_of(job.lane, job.priority) for job in jobs if job.state is State.QUEUED)
    let_go(session, _keys(session, jobs).keys(), now)
    tell_children(session, _parents({job.awaited: EndedParent(move(job.state, cause)) for job in jobs}), now)
    return len(jobs)


def skip(session: Session, jobs: Sequence[Skip], now: int) -> None:
    """End blocked jobs that will never run, and tell their children."""
    _end_waiting(session, jobs, Cause.PARENT_FAILED, now)
    tell_children(session, _parents({job.awaited: EndedParent(State.SKIPPED) for job, _ in jobs}), now)


def tell_children(session: Session, parents: Mapping[UUID, EndedParent], now: int, limit: int = AT_ONCE) -> int:
    """Tell children of ended jobs, and theirs if they are skipped; leave what is beyond the limit to the duty.

    Returns how many edges were followed.
    """
    todo, left, told = dict(parents), dict[UUID, EndedParent](), 0
    while todo and told < limit:
        piece = tell(session, todo, limit - told, now)
        told += piece.told
        left |= piece.left
        _end_waiting(session, piece.skipped, Cause.PARENT_FAILED, now)
        todo = _parents({job.awaited: EndedParent(State.SKIPPED) for job, _ in piece.skipped})
    note(session, left | todo)
    return told


def _end_waiting(session: Session, jobs: Sequence[tuple[Waiting, str]], cause: Cause, now: int) -> None:
    rows = []
    for job, reason in jobs:
        error = failure_text(Failure(reason=cause.value, message=reason)) if reason else None
        rows.append((job.place, job.token, job.state, move(job.state, cause), cause, None, None, error, None))
    counts = Counter((job.lane, move(job.state, cause)) for job, _ in jobs)
    _move_to_history(session, "finish", rows, counts, now)


def _parents(ends: Mapping[UUID | None, EndedParent]) -> dict[UUID, EndedParent]:
    """Leave out those that nobody waits for."""
    return {parent: ended for parent, ended in ends.items() if parent is not None}


def free_keys(session: Session, runs: Iterable[Held], now: int) -> None:
    """Give back what ended runs held under limits, and let as many waiters go as there is room for."""
    held = _keys(session, runs)
    if held:
        free(session, held, now)


def _judge(run: Held, cause: Cause, rule: LossRule) -> Cause:
    if cause is Cause.RETURNED:
        return cause  # the common case, whatever else is so
    return judge(cause, cancelling=bool(run.cancelling), losses=run.losses, rule=rule, held=bool(run.held))


def _finish_returned(session: Session, ends: list[Ended], now: int) -> None:
    rows = [
        (
            run.place,
            run.token,
            outcome.result,
            outcome.result_location,
            some(micros, outcome.started_at),
            usage_text(outcome.usage),
        )
        for run, outcome, _ in ends
    ]
    counts = Counter([(run.lane, State.SUCCEEDED) for run, _, _ in ends])
    _move_to_history(session, "finish_returned", rows, counts, now)


def _finish(session: Session, ends: list[Ended], now: int) -> None:
    rows = []
    counts: Counter[tuple[int, State]] = Counter()
    for run, outcome, cause in ends:
        state = move(State.RUNNING, cause)
        counts[run.lane, state] += 1
        error = error_of(cause, outcome.error, run.cancel_reason)
        told = (outcome.result, outcome.result_location, failure_text(error), some(micros, outcome.started_at))
        mark = fingerprint_of(error) if state is State.DEAD else None
        rows.append((run.place, run.token, State.RUNNING, state, cause, *told, usage_text(outcome.usage), mark))
    _move_to_history(session, "finish", rows, counts, now)


def _move_to_history(
    session: Session, statement: str, rows: list[Any], counts: Counter[tuple[int, State]], now: int
) -> None:
    if not rows:
        return
    ends = json_text(rows)
    session.run(statement, ends=ends, now=now)
    if session.connection.changes() != len(rows):  # the copy is guarded; what it left out must not be removed
        raise AssertionError("a job was not in the state in which it was to end")
    last = session.connection.last_insert_rowid()
    session.run("note_ended", first=last - len(rows) + 1, last=last, now=now)
    session.run("tell_ended", first=last - len(rows) + 1, last=last, now=now)
    if statement == "finish":
        ended = session.rows("messages_of_ended", first=last - len(rows) + 1, last=last)
        note_phrases(session, said_of_ends((tenant, id_of(job), message) for tenant, job, message in ended))
    session.run("remove", ends=ends)
    session.run("count_finished", counts=json_text([(*key, n) for key, n in counts.items()]))


def _give_back(session: Session, ends: list[Ended], now: int, rule: LossRule) -> None:
    if not ends:
        return
    attempts = [
        (
            run.place,
            run.token,
            some(micros, outcome.started_at),
            cause,
            failure_text(outcome.error),
            usage_text(outcome.usage),
        )
        for run, outcome, cause in ends
        if cause in ATTEMPTS
    ]
    if attempts:
        told = json_text(attempts)
        session.run("add_attempts", attempts=told, now=now)
        session.run("tell_failed", attempts=told, now=now)
    lanes = [_lane_after(session, run, cause) for run, _, cause in ends]
    back = [
        (
            run.place,
            run.token,
            span(outcome.delay),
            int(cause is Cause.FAILED),
            int(rule.counted and cause in LOSSES),
            some(micros, outcome.started_at),
            lane,
        )
        for (run, outcome, cause), lane in zip(ends, lanes, strict=True)
    ]
    session.run("give_back", back=json_text(back), now=now)
    for (run, outcome, _), lane in zip(ends, lanes, strict=True):
        session.lanes.mark(pair_of(lane, run.priority), now + max(0, span(outcome.delay)))


def _lane_after(session: Session, run: Held, cause: Cause) -> int:
    """Return the lane in which a job waits for its next run; those that failed wait in the lane of retries."""
    if cause in RETRIED:
        return session.lanes.like(session.connection, run.lane, retried=True)
    # Who was overdue had its turn.
    return session.lanes.like(session.connection, run.lane) if run.lane in session.lanes.overdue else run.lane


def _keys(session: Session, jobs: Iterable[Held | Waiting]) -> Counter[Key]:
    lanes = session.lanes.by_id
    return Counter((lanes[job.lane].tenant, key) for job in jobs if job.limit_keys for key in job.limit_keys)
