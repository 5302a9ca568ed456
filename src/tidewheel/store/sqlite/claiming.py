"""The claim: plan, decide limit keys, take; all in one transaction, so that the plan is what happens."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import LeaseLost
from tidewheel.model.job import Claimed, Run
from tidewheel.model.limit import look_time
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs, Resources, take
from tidewheel.store.base import ClaimRequest
from tidewheel.store.lanes import is_unfit
from tidewheel.store.sqlite.lanes import NEVER, Lanes
from tidewheel.store.sqlite.limits import admit_candidates, refill, turn_away
from tidewheel.store.sqlite.planning import Pick, peek_rows, plan
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.slowing import count_passed, next_look, paces
from tidewheel.store.sqlite.values import instant, json_text

ROUNDS: Final = 8
"""How often a claim looks again after jobs were refused for want of room under their limit keys."""

_PRIORITIES: Final = tuple(Priority)


class RunRow(msgspec.Struct, array_like=True, frozen=True):
    """A run as `taken` and `owned` answer it."""

    job_id: UUID
    token: int
    lane: int
    priority: int
    args: str
    labels: str | None
    options: str | None
    run_at: int
    due_at: int
    start_by: int | None
    started_at: int
    failures: int
    losses: int
    cancelling: int
    limit_keys: tuple[str, ...] | None


_runs: Final = msgspec.json.Decoder(list[RunRow]).decode


def claim(session: Session, request: ClaimRequest) -> Claimed:
    """See `store.base.RunStore.claim`."""
    now = session.now
    worker = request.worker_id.bytes
    if not session.value("worker_is_alive", worker=worker, now=now):
        session.forget_turns(request.worker_id)
        raise LeaseLost(request.worker_id)
    if session.lanes.refill_at <= now:
        refill(session, now)
    places: list[int] = []
    for _ in range(ROUNDS):
        picks = plan(session, request, request.limit - len(places), now)
        refused = _refuse(session, picks, now)
        taken = [pick for pick in picks if pick[0] not in refused]
        if taken:
            chosen = [place for place, _ in taken]
            session.run("take", worker=worker, now=now, places=json_text(chosen))
            places += chosen
            if session.lanes.any_slow:
                count_passed(session, [pair for _, pair in taken], now)
        request = _with_less_free(session.lanes, request, taken)
        if not refused:
            break
        turn_away(session, {pair for place, pair in picks if place in refused}, now)
        session.lanes.mistrust(pair for _, pair in picks)
    runs = runs_of(session.lanes, session.value("taken", places=json_text(places))) if places else []
    # Who got all that was asked for need not be told when to look again.
    next_due = None if len(runs) >= request.limit else _next_due(session, request, now)
    return Claimed(runs, next_due, instant(now))


def oldest_unfit(session: Session, request: ClaimRequest, total: Resources) -> tuple[Needs, timedelta] | None:
    """See `store.base.RunStore.oldest_unfit`."""
    lanes = session.lanes
    unfit = {number for number, lane in lanes.by_id.items() if is_unfit(lane, request, total)}
    pairs = [pair for level in request.priorities for pair in lanes.first[level] if pair >> 2 in unfit]
    waiting = peek_rows(session, pairs, 1) if pairs else {}
    oldest = min(((rows[0], pair) for pair, rows in waiting.items() if rows), default=None)
    if oldest is None or oldest[0][0] > session.now:
        return None
    (run_at, _), pair = oldest
    return lanes.by_id[pair >> 2].needs or NO_NEEDS, instant(session.now) - instant(run_at)


def owned(session: Session, worker_id: UUID) -> list[Run]:
    """See `store.base.RunStore.owned`."""
    return runs_of(session.lanes, session.value("owned", worker=worker_id.bytes))


def runs_of(lanes: Lanes, text: str) -> list[Run]:
    """Build the runs that a statement answered with."""
    runs = []
    claimed_us, claimed_at = -1, None
    for row in _runs(text):
        lane = lanes.by_id[row.lane]
        if row.started_at != claimed_us:
            claimed_us, claimed_at = row.started_at, instant(row.started_at)
        assert claimed_at is not None
        run_at = instant(row.run_at)
        runs.append(
            Run(
                row.job_id,
                row.token,
                row.lane,
                lane.kind,
                lane.queue,
                lane.tenant_name,
                _PRIORITIES[row.priority],
                row.args,
                row.labels,
                row.options,
                run_at,
                run_at if row.due_at == row.run_at else instant(row.due_at),
                None if row.start_by is None else instant(row.start_by),
                claimed_at,
                row.failures,
                row.losses,
                row.cancelling == 1,
                lane.needs or NO_NEEDS,
                row.limit_keys or (),
            )
        )
    return runs


def _refuse(session: Session, picks: list[Pick], now: int) -> set[int]:
    """Return the places of rows that found no room under their limit keys and now wait for it."""
    lanes = session.lanes.by_id
    keyed = [place for place, pair in picks if lanes[pair >> 2].keyed]
    overdue = {place for place, pair in picks if lanes[pair >> 2].overdue}
    return admit_candidates(session, keyed, overdue, now) if keyed else set()


def _with_less_free(lanes: Lanes, request: ClaimRequest, taken: list[Pick]) -> ClaimRequest:
    if request.free is None:
        return request
    free = request.free
    for _, pair in taken:
        if (needs := lanes.by_id[pair >> 2].needs) is not None:
            free = take(free, needs)
    return msgspec.structs.replace(request, free=free)


def _next_due(session: Session, request: ClaimRequest, now: int) -> datetime | None:
    """Return when the next job of these lanes becomes due, or a token comes that someone waits for.

    It is now, if the look ended before all that is due was seen. What lies behind a slow gate is not due before that
    lets it through.
    """
    lanes = session.lanes
    known = paces(session) if lanes.any_slow else {}
    firsts = []
    for level in request.priorities:
        for pair in lanes.waiting_for(request, level):
            first = lanes.first[level][pair][0]
            slowed_by = lanes.by_id[pair >> 2].slowed_by
            firsts.append(max(first, next_look(known, slowed_by, now)) if slowed_by else first)
    if lanes.refill_at != NEVER:
        firsts.append(look_time(lanes.refill_at))
    return instant(max(min(firsts), now)) if firsts else None
