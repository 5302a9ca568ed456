"""How runs and waiting jobs end: the one place that moves rows to history, back to the queue, and frees limit keys."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.model.outcome import ATTEMPTS, LOSSES, Failure, LossRule, Outcome, Usage, error_of, judge
from tidewheel.model.states import FINAL, Cause, State, move
from tidewheel.store.postgres.connection import SQL, Connection
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
        return cls(job_id, move(State.QUEUED, cause), cause, error=error)


class LockedRun(msgspec.Struct, frozen=True):
    """What the store says of a run, under its lock."""

    job_id: UUID
    token: int
    cancelling: bool
    losses: int
    tenant: int
    limit_keys: list[str] | None
    cancel_reason: str | None


JudgedRun = tuple[LockedRun, Outcome, Cause]
COUNTED: Final = LossRule()


async def finish(connection: Connection, believed: Iterable[State], endings: Sequence[Ending]) -> int:
    """Move jobs to history that are in one of the believed states; return how many were.

    Those that were queued pass on the room under limits that they may have been let go for.
    """
    if not endings:
        return 0
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
            )
            for e in endings
        ),
        strict=True,
    )
    rows = await connection.fetch(SQL["finish"], list(believed), *map(list, columns))
    await _release(connection, {(row["tenant"], key): 0 for row in rows for key in row["room"] or ()})
    return len(rows)


async def end_runs(
    connection: Connection, worker_id: UUID, ends: Sequence[tuple[LockedRun, Outcome]], rule: LossRule = COUNTED
) -> Counter[Cause]:
    """End locked runs as the transition table says, and return how many ended by which cause."""
    judged = [
        (run, outcome, judge(outcome.cause, cancelling=run.cancelling, losses=run.losses, rule=rule))
        for run, outcome in ends
    ]
    final = [judged_run for judged_run in judged if move(State.RUNNING, judged_run[2]) in FINAL]
    back = [judged_run for judged_run in judged if move(State.RUNNING, judged_run[2]) not in FINAL]
    await _add_attempts(connection, worker_id, back)
    await _give_back(connection, back, rule)
    await finish(connection, [State.RUNNING], [_ending(*judged_run) for judged_run in final])
    await free_keys(connection, [run for run, _ in ends])
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
    await _release(connection, Counter((run.tenant, key) for run in runs for key in run.limit_keys or ()))


async def _release(connection: Connection, held: Mapping[tuple[int, str], int]) -> None:
    if held:
        tenants, keys = [tenant for tenant, _ in held], [key for _, key in held]
        await connection.fetch(SQL["lock_limits"], tenants, keys)
        if any(held.values()):
            await connection.execute(SQL["add_running"], tenants, keys, [-n for n in held.values()])
        await connection.fetch(SQL["release_waiters"], tenants, keys)


def locked_run(row: Any) -> LockedRun:
    """Build a locked run from its row."""
    return LockedRun(*row)
