"""Claiming: peek at the heads of the lanes, plan by `model.order`, take just what was planned.

Who had room left at the last claim needs no plan if there still is enough: what is due is taken with the peek.

What is remembered between claims stands in `memory`: which lanes there are, from which `run_at` on it is worth looking
in each (the low-water marks), and whose turn it is.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import Invalid, LeaseLost, Unavailable
from tidewheel.model.gate import OPEN, GateMode
from tidewheel.model.job import Claimed, Run
from tidewheel.model.order import Head, share_out
from tidewheel.model.resources import NO_NEEDS, Needs, Resources, take
from tidewheel.store.base import ClaimRequest
from tidewheel.store.lanes import Lane, is_unfit, key_of
from tidewheel.store.postgres.claim_rows import lane_of, run_of
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.limits import NONE_ADMITTED, Admitted, admit_picked, start_order
from tidewheel.store.postgres.looking import (
    CLAIMS_AHEAD,
    LEAST_DEPTH,
    MANY_PAIRS,
    PLAN_USE,
    Looking,
    Seen,
    is_plain,
    scope_of,
)
from tidewheel.store.postgres.memory import BEGINNING, Memory, Pair, Scope
from tidewheel.store.postgres.slowing import Paces, count_passed, lock_paces, slow_gates, within

PEEK_AGAIN: Final = 5
"""How often a claim looks again when all that it planned to take was taken by others."""
LOCKED_PAUSE: Final = 0.0015


class Claiming(Looking):
    """See `store.base.RunStore`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memories: dict[UUID, dict[Scope, Memory]] = {}

    async def claim(self, request: ClaimRequest) -> Claimed:
        if request.limit < 1:
            raise Invalid("limit", f"must be at least 1, not {request.limit}")
        memory = self._memories.setdefault(request.worker_id, {}).setdefault(scope_of(request), Memory())
        rows, seen = await self._take_all(request, memory)
        if rows and memory.calm:
            return await self._answer(request, memory, rows)
        free = _left(request.free, rows, memory.lanes)
        for _ in range(PEEK_AGAIN):
            try:
                quotas = await self._plan(request, memory, request.limit - len(rows), free, seen)
                taken, refused = await self._take_planned(request, memory, quotas)
            except Unavailable:
                if not rows:
                    raise
                break  # what was taken is the caller's; what may have been taken besides shows in `owned`
            rows, seen = rows + taken, None
            free = _left(free, taken, memory.lanes)
            short = memory.guessed and len(taken) < sum(quotas.values())
            if not quotas or len(rows) == request.limit or (rows and not refused and not short):
                break
            if not taken:
                memory.next_due = memory.now  # there is more than was looked at
                await self._db.clock.sleep(LOCKED_PAUSE)
        return await self._answer(request, memory, rows)

    async def oldest_unfit(self, request: ClaimRequest, total: Resources) -> tuple[Needs, timedelta] | None:
        kinds = None if request.kinds is None else list(request.kinds)

        async def look(connection: Connection) -> tuple[Needs, timedelta] | None:
            rows = await connection.fetch(SQL["lanes_served"], list(request.queues), kinds)
            unfit = {lane.id: lane for lane in map(lane_of, rows) if is_unfit(lane, request, total)}
            levels = [level.value for level in request.priorities]
            row = await connection.fetchrow(SQL["oldest_due"], list(unfit), levels) if unfit else None
            return None if row is None else (unfit[row["lane"]].needs or NO_NEEDS, row["waited"])

        return await self._db.read(look)

    async def owned(self, worker_id: UUID) -> list[Run]:
        async def look(connection: Connection) -> list[Run]:
            rows = await connection.fetch(SQL["owned"], worker_id)
            lanes = {
                row["id"]: lane_of(row) for row in await connection.fetch(SQL["lanes_named"], [r["lane"] for r in rows])
            }
            return [run_of(row, lanes) for row in rows]

        return await self._db.read(look)

    def _forget(self, worker_id: UUID) -> None:
        self._memories.pop(worker_id, None)

    async def _take_all(self, request: ClaimRequest, memory: Memory) -> tuple[list[Any], Seen | None]:
        """Take all that is due if it fits, in one statement; what was seen is returned if there was nothing to take.

        If it took something, `memory.calm` tells afterwards whether there is nothing left to be done.
        """
        if len(memory.lanes) * len(request.priorities) > MANY_PAIRS or not memory.can_take_all(self._db.time()):
            return [], None
        most = min(request.limit, LEAST_DEPTH)
        view = self._view(request, memory)._replace(depth=most + 1)
        plain = [is_plain(memory.lanes[lane], request) for lane, _ in view.pairs]
        values = *view.columns, plain, most, request.worker_id, memory.version
        rows = await self._db.write(lambda connection: connection.fetch(SQL["take_all"], *values))
        seen = await self._note_seen(request, memory, view, next(row for row in rows if row["now"] is not None))
        if rows[0]["id"] is None:
            return [], None if seen.heads else seen
        memory.note_time(seen.now)
        memory.advance(rows)
        all_of_it = len(rows) == sum(len(head.due) for head in seen.heads)
        memory.calm = all_of_it and not memory.has_other_work(seen.now)
        self._remember_involved(row for row in rows if row["awaited"])
        return rows, None

    async def _plan(
        self, request: ClaimRequest, memory: Memory, limit: int, free: Resources | None, seen: Seen | None
    ) -> dict[Pair, int]:
        """Return how many to take of each pair, from what was planned before where that is still good."""
        began = self._db.clock.monotonic()
        if not memory.plan or began >= memory.plan_until or free is not None:
            heads, now, _ = await self._look(request, memory, seen)
            ahead = CLAIMS_AHEAD if len(heads) > MANY_PAIRS and free is None else 1
            paces = await self._paces(heads)
            shares = share_out(heads, limit * ahead, now=now, turns=memory.turns, free=free, rooms=paces.rooms)
            memory.look_again(paces.look_again(heads, shares))
            memory.turns, memory.plan, memory.guessed = shares.turns, shares.order, shares.guessed
            memory.plan_until = began + (self._db.clock.monotonic() - began) * PLAN_USE
        chosen, memory.plan = memory.plan[:limit], memory.plan[limit:]
        return dict(Counter(chosen))

    async def _paces(self, heads: list[Head]) -> Paces:
        """Return what the slow gates of these heads let through; only where there are such does it ask."""
        gates = slow_gates(heads)
        rows = await self._db.read(lambda connection: connection.fetch(SQL["slow_gates"], gates)) if gates else ()
        return Paces(rows)

    async def _take_planned(
        self, request: ClaimRequest, memory: Memory, quotas: dict[Pair, int]
    ) -> tuple[list[Any], bool]:
        """Take what was planned; the flag tells whether limits refused some of it."""
        slow = {pair: n for pair, n in quotas.items() if memory.lanes[pair[0]].slowed_by}
        if not slow:
            return await self._take(request, memory, quotas)
        rows, refused = await self._take_slow(request, memory, slow)
        rest = {pair: n for pair, n in quotas.items() if pair not in slow}
        try:
            others, more_refused = await self._take(request, memory, rest)
        except Unavailable:
            if not rows:
                raise
            return rows, False
        return rows + others, refused or more_refused

    async def _take(self, request: ClaimRequest, memory: Memory, quotas: dict[Pair, int]) -> tuple[list[Any], bool]:
        """Take from lanes that are open."""
        plain = {pair: n for pair, n in quotas.items() if not memory.lanes[pair[0]].keyed}
        keyed = {pair: n for pair, n in quotas.items() if memory.lanes[pair[0]].keyed}
        rows: list[Any] = []
        seen = 0
        if plain:
            rows = await self._db.write(lambda connection: _take(connection, request, memory, plain, "take"))
            seen = len(rows)
            memory.advance(rows)
            self._remember_involved(row for row in rows if row["awaited"])
        if keyed:

            async def take(connection: Connection) -> tuple[list[Any], Admitted]:
                picked = await _take(connection, request, memory, keyed, "pick_keyed")
                return picked, await admit_picked(connection, request.worker_id, picked, memory.rules, memory.overdue)

            try:
                picked, admitted = await self._db.transaction(take)
            except Unavailable:
                if not rows:
                    raise
                return rows, False
            await self._note_admitted(memory, admitted)
            memory.advance(picked)
            rows, seen = rows + admitted.rows, seen + len(picked)
        if seen < sum(quotas.values()):
            memory.plan = []  # others were faster: look again
        return rows, seen > len(rows)

    async def _note_admitted(self, memory: Memory, admitted: Admitted) -> None:
        """Remember what limits decided, and let others hear of what concerns them."""
        with suppress(Unavailable):  # what was taken is the caller's; the next one that must wait adds the lane
            await self._add_lanes_of_overdue([memory.lanes[lane] for lane in admitted.waits])
        if admitted.others_may_go or memory.wait_for_token(admitted.look_at):
            self._hints.send()
        self._remember_involved(admitted.rows)

    async def _add_lanes_of_overdue(self, lanes: Iterable[Lane]) -> None:
        """Add lanes for the overdue where jobs are the first to wait; after the claim, for lanes are locked first."""
        keys = [key_of(lane)._replace(overdue=True) for lane in lanes]
        if not self._lanes.knows(keys):
            ids = await self._db.transaction(lambda connection: self._lanes.ids(connection, keys))
            self._lanes.remember(keys, ids)

    async def _take_slow(self, request: ClaimRequest, memory: Memory, slow: dict[Pair, int]) -> tuple[list[Any], bool]:
        """Take from lanes behind slow gates, under the locks of these gates."""

        async def take(connection: Connection) -> tuple[list[Any], list[Any], Admitted]:
            paces = await lock_paces(connection, slow, memory.lanes)
            fitting = within(paces, slow, memory.lanes)
            plain = {pair: n for pair, n in fitting.items() if not memory.lanes[pair[0]].keyed}
            keyed = {pair: n for pair, n in fitting.items() if memory.lanes[pair[0]].keyed}
            taken = await _take(connection, request, memory, plain, "take", flag=GateMode.SLOW) if plain else []
            picked, admitted = list[Any](), NONE_ADMITTED
            if keyed:
                picked = await _take(connection, request, memory, keyed, "pick_keyed", flag=GateMode.SLOW)
                admitted = await admit_picked(connection, request.worker_id, picked, memory.rules, memory.overdue)
            await count_passed(connection, paces, [*taken, *admitted.rows], memory.lanes)
            return [*taken, *picked], taken, admitted

        seen, taken, admitted = await self._db.transaction(take)
        await self._note_admitted(memory, admitted)
        self._remember_involved(row for row in taken if row["awaited"])
        rows = taken + admitted.rows
        memory.advance(seen)
        if len(seen) < sum(slow.values()):
            memory.plan = []
        return rows, len(seen) > len(rows)

    async def _answer(self, request: ClaimRequest, memory: Memory, rows: list[Any]) -> Claimed:
        memory.calm = len(rows) < request.limit
        if not rows and not memory.alive:
            self._forget(request.worker_id)
            raise LeaseLost(request.worker_id)
        rows.sort(key=start_order)
        runs = [run_of(row, memory.lanes) for row in rows]
        dues = [due for due in (memory.next_due, memory.next_look) if due is not None]
        due = datetime.fromtimestamp(min(dues), UTC) if dues else None
        now = rows[0]["started_at"] if rows else datetime.fromtimestamp(memory.now, UTC)
        return Claimed(runs, due, now)


async def _take(
    connection: Connection,
    request: ClaimRequest,
    memory: Memory,
    quotas: dict[Pair, int],
    how: str,
    *,
    flag: str = OPEN,
) -> list[Any]:
    rows: list[Any] = await connection.fetch(
        SQL[how],
        request.worker_id,
        [lane for lane, _ in quotas],
        [priority for _, priority in quotas],
        [memory.marks.get(pair, BEGINNING).run_at for pair in quotas],
        [memory.marks.get(pair, BEGINNING).job_id for pair in quotas],
        list(quotas.values()),
        flag,
    )
    return rows


def _left(free: Resources | None, taken: list[Any], lanes: dict[int, Lane]) -> Resources | None:
    """Return what is free after these runs got what they need."""
    for row in taken:
        needs = lanes[row["lane"]].needs
        if free is not None and needs is not None:
            free = take(free, needs)
    return free
