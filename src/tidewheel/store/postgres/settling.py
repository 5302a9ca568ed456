"""Settling: what workers report of their runs is stored, or recognised, or refused; one bad row disturbs no other."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import asyncpg

from tidewheel.errors import Invalid
from tidewheel.model.ids import time_of
from tidewheel.model.outcome import GIVEN_BACK, REPORTABLE, RETRIED, Outcome, Verdict, flaws_of, recognise, unstorable
from tidewheel.model.states import Cause, State
from tidewheel.model.submission import LaneKey
from tidewheel.store.bell import SOON
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.ending import Ending, LockedRun, end_runs, finish_runs, locked_run, tell_children
from tidewheel.store.postgres.limits import KEY_MARK, free
from tidewheel.store.postgres.parts import Part
from tidewheel.store.postgres.releasing import EndedParent
from tidewheel.store.records import usage_text

_UNSTORABLE: Final = (
    Invalid,
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.RaiseError,
)
_LOOKS = 3

RunKey = tuple[UUID, int]
"""A job and the token of one of its runs."""


class Settling(Part):
    """See `store.base.RunStore.settle`."""

    async def settle(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        for position, outcome in enumerate(outcomes):
            if outcome.cause not in REPORTABLE:
                raise Invalid(f"outcomes[{position}].cause", f"a worker cannot report {outcome.cause}")
        verdicts: dict[int, Verdict] = {}
        flaws = flaws_of(outcomes)
        if not flaws and len({outcome.job_id for outcome in outcomes}) == len(outcomes):
            await self._settle_all(worker_id, list(enumerate(outcomes)), verdicts)
            return [verdicts[index] for index in range(len(outcomes))]
        first: dict[RunKey, int] = {}
        for position, outcome in enumerate(outcomes):
            first.setdefault(_key(outcome), position)
        for index in flaws.keys() & first.values():
            verdicts[index] = await self._bury(worker_id, outcomes[index], flaws[index])
        sound = [(index, outcomes[index]) for index in first.values() if index not in flaws]
        await self._settle_all(worker_id, sound, verdicts)
        return [
            verdicts.get(index) or _repeated(outcome, outcomes[first[_key(outcome)]])
            for index, outcome in enumerate(outcomes)
        ]

    async def _settle_all(self, worker_id: UUID, todo: list[tuple[int, Outcome]], verdicts: dict[int, Verdict]) -> None:
        """Settle by halves until every row that the database refuses stands alone."""
        if not todo:
            return
        try:
            rest = await self._settle_plain(worker_id, todo, verdicts)
            await self._settle_rest(worker_id, rest, verdicts)
        except _UNSTORABLE as error:
            left = [item for item in todo if item[0] not in verdicts]
            if len(left) == 1:
                verdicts[left[0][0]] = await self._bury(worker_id, left[0][1], str(error))
            else:
                await self._settle_all(worker_id, left[: len(left) // 2], verdicts)
                await self._settle_all(worker_id, left[len(left) // 2 :], verdicts)

    async def _settle_plain(
        self, worker_id: UUID, todo: list[tuple[int, Outcome]], verdicts: dict[int, Verdict]
    ) -> list[tuple[int, Outcome]]:
        """Store results, most of them in one statement, and return what needs a closer look."""
        returned = [(index, outcome) for index, outcome in todo if outcome.cause is Cause.RETURNED]
        involved = [item for item in returned if _key(item[1]) in self._involved] if self._involved else []
        self._involved.difference_update(_key(outcome) for _, outcome in involved)
        known = {index for index, _ in involved}
        plain = [item for item in returned if item[0] not in known]
        if plain:
            stored = await self._db.write(lambda connection: _finish_returned(connection, worker_id, plain))
            _accept(plain, stored, verdicts)
            involved += [item for item in plain if item[0] not in verdicts]
        if involved:
            stored, released = await self._db.transaction(
                lambda connection: _finish_involved(connection, worker_id, involved)
            )
            _accept(involved, stored, verdicts)
            if released:
                self._hints.send()
        return [(index, outcome) for index, outcome in todo if index not in verdicts]

    async def _settle_rest(
        self, worker_id: UUID, rest: list[tuple[int, Outcome]], verdicts: dict[int, Verdict]
    ) -> None:
        for _ in range(_LOOKS):
            if not rest:
                return

            async def end(connection: Connection, rest: list[tuple[int, Outcome]] = rest) -> list[LockedRun]:
                return await _end_reported(connection, worker_id, [outcome for _, outcome in rest])

            await self._make_retry_lanes([outcome.job_id for _, outcome in rest if outcome.cause in RETRIED])
            runs = await self._db.transaction(end)
            ended = {(run.job_id, run.token) for run in runs}
            self._tell_of_ended([outcome for _, outcome in rest if _key(outcome) in ended])
            verdicts.update({index: Verdict.ACCEPTED for index, outcome in rest if _key(outcome) in ended})
            rest = [(index, outcome) for index, outcome in rest if _key(outcome) not in ended]
            if not ended:
                break
        if rest:
            found = await self._db.read(lambda connection: _find(connection, worker_id, [o for _, o in rest]))
            verdicts.update({index: recognise(outcome.cause, found[_key(outcome)]) for index, outcome in rest})

    async def _make_retry_lanes(self, failed: list[UUID]) -> None:
        """Add lanes for retries where these jobs are the first to fail.

        Before their rows are locked: a submit adds lanes first and then locks jobs.
        """
        if not failed:
            return
        rows = await self._db.read(lambda connection: connection.fetch(SQL["lanes_without_retries"], failed))
        keys = [LaneKey._make((*row, True, False)) for row in rows]
        if keys:
            await self._db.transaction(lambda connection: self._lanes.ids(connection, keys))

    def _tell_of_ended(self, outcomes: list[Outcome]) -> None:
        """Give a hint if what ended may have made something due: itself, a child, or who waited for its limit keys."""
        if any(outcome.cause not in GIVEN_BACK or outcome.delay <= SOON for outcome in outcomes):
            self._hints.send()

    async def _bury(self, worker_id: UUID, outcome: Outcome, why: str) -> Verdict:
        """End a job whose outcome cannot be stored as dead, with that reason."""

        async def bury(connection: Connection) -> list[LockedRun]:
            runs = await _lock(connection, worker_id, [outcome])
            endings = [Ending(run.job_id, State.DEAD, Cause.UNSTORABLE, error=unstorable(why)) for run in runs]
            await finish_runs(connection, endings, runs)
            return runs

        if await self._db.transaction(bury):
            self._hints.send()
            return Verdict.UNSTORABLE
        found = await self._db.read(lambda connection: _find(connection, worker_id, [outcome]))
        return recognise(outcome.cause, found[_key(outcome)])


def _repeated(outcome: Outcome, first: Outcome) -> Verdict:
    """Judge a second outcome of the same run in one batch: the first counts."""
    return Verdict.REPEATED if outcome.cause is first.cause else Verdict.STALE


def _key(outcome: Outcome) -> RunKey:
    return outcome.job_id, outcome.token


Stored = tuple[list[UUID], list[int]]
"""The jobs and tokens of runs whose results were stored."""


def _accept(asked: list[tuple[int, Outcome]], stored: Stored, verdicts: dict[int, Verdict]) -> None:
    if len(stored[0]) == len(asked):
        verdicts |= dict.fromkeys([index for index, _ in asked], Verdict.ACCEPTED)
    elif stored[0]:
        found = set(zip(*stored, strict=True))
        verdicts |= {index: Verdict.ACCEPTED for index, outcome in asked if _key(outcome) in found}


async def _finish_returned(connection: Connection, worker_id: UUID, plain: list[tuple[int, Outcome]]) -> Stored:
    ids, tokens = await one(connection, SQL["finish_returned"], worker_id, *_result_columns(plain))
    return ids or [], tokens or []


async def _finish_involved(
    connection: Connection, worker_id: UUID, returned: list[tuple[int, Outcome]]
) -> tuple[Stored, bool]:
    """Store results of runs that may have limit keys or children; tell whether others may go now."""
    row = await one(connection, SQL["finish_involved"], worker_id, *_result_columns(returned))
    ids, tokens, tenants, names, awaited = (column or [] for column in row)
    held = Counter(zip(tenants, names, strict=True))
    keys = Counter[tuple[int, str]]()
    for (tenant, text), number in held.items():
        keys.update({(tenant, key): number for key in text.split(KEY_MARK)} if text else {})
    released = await free(connection, keys)
    parents = [job_id for job_id, others_wait in zip(ids, awaited, strict=True) if others_wait]
    await tell_children(connection, dict.fromkeys(parents, EndedParent(State.SUCCEEDED)))
    return (ids, tokens), bool(released or parents)


def _result_columns(returned: list[tuple[int, Outcome]]) -> tuple[list[Any] | None, ...]:
    """Turn results into arrays; what none has is one NULL."""
    outcomes = [outcome for _, outcome in returned]
    results = [outcome.result for outcome in outcomes]
    places = [outcome.result_location for outcome in outcomes]
    starts = [outcome.started_at for outcome in outcomes]
    usages = [usage_text(outcome.usage) for outcome in outcomes]
    return (
        [outcome.job_id for outcome in outcomes],
        [outcome.token for outcome in outcomes],
        results if any(results) else None,
        places if any(places) else None,
        starts if any(starts) else None,
        usages if any(usages) else None,
    )


async def _end_reported(connection: Connection, worker_id: UUID, outcomes: list[Outcome]) -> list[LockedRun]:
    reported = {_key(outcome): outcome for outcome in outcomes}
    runs = await _lock(connection, worker_id, outcomes)
    await end_runs(connection, worker_id, [(run, reported[run.job_id, run.token]) for run in runs])
    return runs


async def _lock(connection: Connection, worker_id: UUID, outcomes: list[Outcome]) -> list[LockedRun]:
    named = sorted({_key(outcome) for outcome in outcomes})
    rows = await connection.fetch(SQL["lock_runs"], worker_id, [n[0] for n in named], [n[1] for n in named])
    return [locked_run(row) for row in rows]


async def _find(connection: Connection, worker_id: UUID, outcomes: list[Outcome]) -> dict[RunKey, str | None]:
    ids = [outcome.job_id for outcome in outcomes]
    tokens = [outcome.token for outcome in outcomes]
    rows = await connection.fetch(SQL["find_ended"], worker_id, ids, tokens, [time_of(job_id) for job_id in ids])
    return {(row[0], row[1]): row[2] for row in rows}
