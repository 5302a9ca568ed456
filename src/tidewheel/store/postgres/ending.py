"""How runs and waiting jobs end: the one place that moves rows to history, back to the queue, and frees limit keys."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.model.dependency import AT_ONCE
from tidewheel.model.fingerprint import fingerprint_of
from tidewheel.model.job_phrases import said_of_ends
from tidewheel.model.outcome import ATTEMPTS, LOSSES, RETRIED, Failure, LossRule, Outcome, Usage, error_of, judge
from tidewheel.model.states import FINAL, Cause, State, move
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.limits import free, let_go
from tidewheel.store.postgres.phrases import note_phrases
from tidewheel.store.postgres.releasing import EndedParent, note, tell
from tidewheel.store.records import failure_text, usage_text


class Ending(msgspec.Struct, frozen=True):
    """The end of one job, as it goes to history."""

    job_id: UUID
    state: State
    cause: Cause
    result: str | None = None
    result_location: str | None = None
    error: Failure | None = None
    started_at: datetime | None = None
    usage: Usage | None = None

    @classmethod
    def waiting(cls, job_id: UUID, cause: Cause, reason: str) -> "Ending":
        """Return the end of a job that nobody ran."""
        error = Failure(reason=cause.value, message=reason) if reason else None
        state = State.BLOCKED if cause is Cause.PARENT_FAILED else State.QUEUED
        return cls(job_id, move(state, cause), cause, error=error)


class LockedRun(msgspec.Struct, frozen=True):
    """What the store says of a run, under its lock."""

    job_id: UUID
    token: int
    cancelling: bool
    losses: int
    tenant: int
    limit_keys: list[str] | None
    cancel_reason: str | None
    held: bool


JudgedRun = tuple[LockedRun, Outcome, Cause]
COUNTED: Final = LossRule()
_ROUNDS: Final = 3
"""How often children are looked for in one transaction: those of the ended, those of the skipped, and once again."""


async def finish(connection: Connection, believed: Iterable[State], endings: Sequence[Ending]) -> int:
    """Move jobs to history that are in one of the believed states; return how many were.

    Those that were queued pass on the room under limits that they may have been let go for. Their children are told.
    """
    rows, parents = await _move_to_history(connection, believed, endings)
    await let_go(connection, {(row["tenant"], key) for row in rows for key in row["room"] or ()})
    await tell_children(connection, parents)
    return len(rows)


async def tell_children(connection: Connection, parents: Mapping[UUID, EndedParent], limit: int = AT_ONCE) -> int:
    """Tell children of ended jobs, and theirs if they are skipped; leave what is beyond the limit to the duty.

    Returns how many edges were followed. Locks children, and so comes after all that locks limit keys.
    """
    todo, left, told = dict(parents), dict[UUID, EndedParent](), 0
    for _ in range(_ROUNDS):
        if not todo or told >= limit:
            break
        piece = await tell(connection, todo, limit - told)
        told += piece.told
        left |= piece.left
        skips = [Ending.waiting(child, Cause.PARENT_FAILED, why) for child, why in piece.skipped.items()]
        # One that got a child of its own since it was looked at is looked at again.
        _, todo = await _move_to_history(connection, [State.BLOCKED], skips)
    await note(connection, left | todo)
    return told


async def _move_to_history(
    connection: Connection, believed: Iterable[State], endings: Sequence[Ending]
) -> tuple[list[Any], dict[UUID, EndedParent]]:
    """Return the rows that were moved, and those of them that others wait for."""
    if not endings:
        return [], {}
    columns = zip(
        *(
            (
                e.job_id,
                e.state,
                e.cause,
                e.result,
                e.result_location,
                failure_text(e.error),
                e.started_at,
                usage_text(e.usage),
                fingerprint_of(e.error) if e.state is State.DEAD else None,
            )
            for e in endings
        ),
        strict=True,
    )
    rows: list[Any] = await connection.fetch(SQL["finish"], list(believed), *map(list, columns))
    states = {ending.job_id: ending.state for ending in endings}
    messages = {e.job_id: e.error.message for e in endings if e.error is not None and e.state is not State.SUCCEEDED}
    await note_phrases(connection, said_of_ends((row["tenant"], row["id"], messages.get(row["id"])) for row in rows))
    return rows, {row["id"]: EndedParent(states[row["id"]]) for row in rows if row["awaited"]}


async def finish_runs(connection: Connection, endings: Sequence[Ending], runs: Sequence[LockedRun]) -> None:
    """Move locked runs to history, give back what these and others that ended held, and tell the children."""
    _, parents = await _move_to_history(connection, [State.RUNNING], endings)
    await free_keys(connection, runs)
    await tell_children(connection, parents)


async def end_runs(
    connection: Connection, worker_id: UUID, ends: Sequence[tuple[LockedRun, Outcome]], rule: LossRule = COUNTED
) -> Counter[Cause]:
    """End locked runs as the transition table says, and return how many ended by which cause."""
    judged = [
        (run, outcome, judge(outcome.cause, cancelling=run.cancelling, losses=run.losses, rule=rule, held=run.held))
        for run, outcome in ends
    ]
    final = [judged_run for judged_run in judged if move(State.RUNNING, judged_run[2]) in FINAL]
    back = [judged_run for judged_run in judged if move(State.RUNNING, judged_run[2]) not in FINAL]
    await _add_attempts(connection, worker_id, back)
    await _give_back(connection, back, rule)
    await finish_runs(connection, [_ending(*judged_run) for judged_run in final], [run for run, _ in ends])
    return Counter(cause for _, _, cause in judged)


def _ending(run: LockedRun, outcome: Outcome, cause: Cause) -> Ending:
    error = error_of(cause, outcome.error, run.cancel_reason)
    state = move(State.RUNNING, cause)
    told = (outcome.result, outcome.result_location, error, outcome.started_at, outcome.usage)
    return Ending(run.job_id, state, cause, *told)


async def _give_back(connection: Connection, back: list[JudgedRun], rule: LossRule) -> None:
    if not back:
        return
    await connection.execute(
        SQL["give_back"],
        [run.job_id for run, _, _ in back],
        [outcome.delay for _, outcome, _ in back],
        [int(cause is Cause.FAILED) for _, _, cause in back],
        [int(rule.counted and cause in LOSSES) for _, _, cause in back],
        [cause in RETRIED for _, _, cause in back],
    )


async def _add_attempts(connection: Connection, worker_id: UUID, back: list[JudgedRun]) -> None:
    failed = [(run, outcome, cause) for run, outcome, cause in back if cause in ATTEMPTS]
    if not failed:
        return
    await connection.execute(
        SQL["add_attempts"],
        worker_id,
        [run.job_id for run, _, _ in failed],
        [run.token for run, _, _ in failed],
        [outcome.started_at for _, outcome, _ in failed],
        [cause for _, _, cause in failed],
        [failure_text(outcome.error) for _, outcome, _ in failed],
        [usage_text(outcome.usage) for _, outcome, _ in failed],
    )


async def free_keys(connection: Connection, runs: Sequence[LockedRun]) -> None:
    """Give back what ended runs held under limits, and let as many waiters go as there is room for."""
    await free(connection, Counter((run.tenant, key) for run in runs for key in run.limit_keys or ()))


def locked_run(row: Any) -> LockedRun:
    """Build a locked run from its row."""
    return LockedRun(*row)
