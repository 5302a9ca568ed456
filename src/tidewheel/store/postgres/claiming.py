"""Claiming: peek at the heads of the lanes, plan by `model.order`, take just what was planned.

What is remembered between claims stands in `memory`: which lanes there are, from which `run_at` on it is worth looking
in each (the low-water marks), and whose turn it is.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import Invalid, LeaseLost, Unavailable
from tidewheel.model.gate import OPEN, Gate, GateMode
from tidewheel.model.job import Claimed, Run
from tidewheel.model.order import Head, share_out
from tidewheel.model.resources import NO_NEEDS, Needs, Resources, needs_text, take
from tidewheel.store.base import ClaimRequest
from tidewheel.store.lanes import Lane, can_run, is_unfit, key_of
from tidewheel.store.postgres.claim_rows import head_of, lane_of, run_of, seen_of
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.limits import NONE_ADMITTED, Admitted, admit_picked, refill, start_order
from tidewheel.store.postgres.memory import (
    BEGINNING,
    LOOK_BACK,
    SWEEP_EVERY,
    Mark,
    Memory,
    Pair,
    Scope,
)
from tidewheel.store.postgres.parts import Part, gate_of
from tidewheel.store.postgres.slowing import Paces, count_passed, lock_paces, slow_gates, within

PEEK_AGAIN: Final = 5
"""How often a claim looks again when all that it planned to take was taken by others."""
LOCKED_PAUSE: Final = 0.0015
MANY_PAIRS: Final = 64
"""With more active pairs than this a peek is dear enough to plan several claims by it, and with more pairs at all to
look only at the active ones for a while."""
CLAIMS_AHEAD: Final = 16
"""With a thousand lanes, half as many cost a seventh of the speed."""
LEAST_DEPTH: Final = 32
"""How far a peek sees at least: up to this many starts are planned exactly, beyond that by a guess."""
PLAN_USE: Final = 10.0
"""Such a plan is used for at most this many times what the peek took, so that peeking takes a tenth of the time."""
SWEEP_SHARE: Final = 20
"""A sweep that took long is followed by a pause of this many times its duration: at most 5 % of the time."""


class Claiming(Part):
    """See `store.base.RunStore`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._memories: dict[UUID, dict[Scope, Memory]] = {}

    async def claim(self, request: ClaimRequest) -> Claimed:
        if request.limit < 1:
            raise Invalid("limit", f"must be at least 1, not {request.limit}")
        memory = self._memories.setdefault(request.worker_id, {}).setdefault(_scope(request), Memory())
        rows: list[Any] = []
        free = request.free
        for _ in range(PEEK_AGAIN):
            try:
                quotas = await self._plan(request, memory, request.limit - len(rows), free)
                taken, refused = await self._take_planned(request, memory, quotas)
            except Unavailable:
                if not rows:
                    raise
                break  # what was taken is the caller's; what may have been taken besides shows in `owned`
            rows += taken
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

    async def _plan(self, request: ClaimRequest, memory: Memory, limit: int, free: Resources | None) -> dict[Pair, int]:
        """Return how many to take of each pair, from what was planned before where that is still good."""
        began = self._db.clock.monotonic()
        if not memory.plan or began >= memory.plan_until or free is not None:
            heads, now = await self._look(request, memory)
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

    async def _look(self, request: ClaimRequest, memory: Memory) -> tuple[list[Head], float]:
        """Return the heads of the lanes this worker can run, and the time."""
        heads, now, version = await self._peek(request, memory)
        if memory.note_time(now) or version != memory.version:
            await self._read_lanes(request, memory, version)
            heads, now, _ = await self._peek(request, memory)
        if memory.look_at is not None and memory.look_at <= now * 1e6:
            if await self._db.transaction(refill):
                self._hints.send()
            heads, now, _ = await self._peek(request, memory)
        if memory.must_sweep(now) and await self._sweep(request, memory, now):
            heads, now, _ = await self._peek(request, memory)
        return heads, now

    async def _read_lanes(self, request: ClaimRequest, memory: Memory, version: int) -> None:
        kinds = None if request.kinds is None else list(request.kinds)
        rows = await self._db.read(
            lambda connection: connection.fetch(SQL["lanes_served"], list(request.queues), kinds)
        )
        named = await self._db.read(lambda connection: connection.fetch(SQL["limit_rules"]))
        memory.rules = {row["name"] for row in named}
        gates: list[Gate] = []
        if any(row["gate"] == GateMode.SLOW for row in rows):
            gates = [gate_of(row) for row in await self._db.read(lambda connection: connection.fetch(SQL["gates"]))]
        memory.lanes = {row["id"]: lane_of(row, gates) for row in rows}
        memory.overdue = {lane.id for lane in memory.lanes.values() if lane.overdue}
        for row in rows:
            for priority, mark in enumerate(row["floors"]):
                memory.marks.setdefault((row["id"], priority), Mark(mark, BEGINNING.job_id))
        memory.version, memory.active_until = version, float("-inf")

    async def _sweep(self, request: ClaimRequest, memory: Memory, now: float) -> bool:
        """Look behind the marks if it is this claimer's turn; tell whether something was there.

        What is found is this claimer's to take; the marks of the others stay. If it does not get to it, the next sweep
        finds it again. Only lanes that it can run now: who lacks the means must not take the turn of those who have.
        """
        memory.swept = now
        able = sorted(lane.id for lane in memory.lanes.values() if can_run(lane, request))
        scope = hashlib.sha256(repr((_scope(request), able)).encode(errors="surrogatepass")).hexdigest()[:32]
        if await self._db.write(lambda connection: connection.fetchval(SQL["take_sweep"], scope)) is None:
            return False
        began = self._db.clock.monotonic()
        pairs = [(lane, priority) for lane in able for priority in request.priorities]
        lanes, priorities = [lane for lane, _ in pairs], [priority for _, priority in pairs]
        rows = await self._db.read(lambda connection: connection.fetch(SQL["sweep"], lanes, priorities))
        memory.sweep_took = self._db.clock.monotonic() - began
        pause = timedelta(seconds=memory.sweep_took * SWEEP_SHARE)
        if pause > timedelta(seconds=SWEEP_EVERY):
            await self._db.write(lambda connection: connection.execute(SQL["defer_sweep"], scope, pause))
        firsts = {(row["lane"], row["priority"]): Mark(row["run_at"], row["id"]) for row in rows}
        edge = datetime.fromtimestamp(now - LOOK_BACK, UTC)
        floors = [min(firsts[pair].run_at, edge) if pair in firsts else edge for pair in pairs]
        await self._publish(request, memory, pairs, floors)
        return memory.fall_back(firsts)

    async def _publish(
        self, request: ClaimRequest, memory: Memory, pairs: Sequence[Pair], floors: Sequence[datetime]
    ) -> None:
        """Let new claimers know where to begin, if that has changed: for all priorities of a lane, or not at all."""
        if request.at_least is None and memory.moved:
            memory.moved = False
            columns = [lane for lane, _ in pairs], [priority for _, priority in pairs], floors
            await self._db.write(lambda connection: connection.execute(SQL["publish_marks"], *columns))

    async def _peek(self, request: ClaimRequest, memory: Memory) -> tuple[list[Head], float, int]:
        began = self._db.clock.monotonic()
        levels = request.priorities
        able = [lane.id for lane in memory.lanes.values() if can_run(lane, request)]
        every: list[Pair] = [(lane, priority) for lane in able for priority in levels]
        whole = len(every) <= MANY_PAIRS or began >= memory.active_until
        pairs = every if whole else memory.active
        depth = _depth(request.limit, len(memory.active))
        now = self._db.time()
        from_the_beginning = whole and memory.can_sweep_by_peek(now)
        floors = [BEGINNING] * len(pairs) if from_the_beginning else memory.floors(pairs, now)
        columns = (
            [lane for lane, _ in pairs],
            [priority for _, priority in pairs],
            [floor.run_at for floor in floors],
            [floor.job_id for floor in floors],
        )
        row = await self._db.read(lambda connection: one(connection, SQL["peek"], *columns, depth, request.worker_id))
        self._db.learn_time(row["now"])
        memory.look_at = row["look_at"]
        memory.alive = row["alive"]
        seen, next_due = seen_of(row)
        memory.set_marks(pairs, {number: (due[0], ids[0]) for number, (due, ids) in seen.items()}, row["now"])
        if from_the_beginning:
            memory.swept, memory.sweep_took = row["now"], self._db.clock.monotonic() - began
            edge = datetime.fromtimestamp(row["now"] - LOOK_BACK, UTC)
            await self._publish(request, memory, pairs, [min(memory.marks[pair].run_at, edge) for pair in pairs])
        if whole:
            memory.active = [pairs[number - 1] for number in seen]
            memory.due_elsewhere = next_due
            memory.active_until = began + (self._db.clock.monotonic() - began) * PLAN_USE
        memory.next_due = min((due for due in (next_due, memory.due_elsewhere) if due is not None), default=None)
        heads = [head_of(pairs[number - 1], memory.lanes, due, ids, depth) for number, (due, ids) in seen.items()]
        return heads, row["now"], row["lanes"]

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
        memory.idle = not rows
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


def _scope(request: ClaimRequest) -> Scope:
    kinds = None if request.kinds is None else tuple(sorted(request.kinds))
    needs = None if request.needs is None else needs_text(request.needs)
    return request.queues, kinds, tuple(sorted(request.labels.items())), request.tenant, request.at_least, needs


def _depth(limit: int, active: int) -> int:
    """Return how many rows of each pair a peek should see: enough for the plan, and some to spare."""
    if active > MANY_PAIRS:
        return -(-limit * CLAIMS_AHEAD // active) + 1
    return min(limit, max(LEAST_DEPTH, -(-limit // (2 * max(1, active)))))


def _left(free: Resources | None, taken: list[Any], lanes: dict[int, Lane]) -> Resources | None:
    """Return what is free after these runs got what they need."""
    for row in taken:
        needs = lanes[row["lane"]].needs
        if free is not None and needs is not None:
            free = take(free, needs)
    return free
