"""Looking at the heads of the lanes that a worker can run, from where it is worth while to look in each."""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from tidewheel.model.gate import Gate, GateMode
from tidewheel.model.order import Head
from tidewheel.model.resources import needs_text
from tidewheel.store.base import ClaimRequest
from tidewheel.store.lanes import Lane, can_run
from tidewheel.store.postgres.claim_rows import head_of, lane_of, seen_of
from tidewheel.store.postgres.connection import SQL, one
from tidewheel.store.postgres.limits import refill
from tidewheel.store.postgres.memory import BEGINNING, LOOK_BACK, SWEEP_EVERY, Mark, Memory, Pair, Scope
from tidewheel.store.postgres.parts import Part, gate_of

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


class Seen(NamedTuple):
    """What a peek saw: heads with due jobs, the time, and the version of the lanes that there are."""

    heads: list[Head]
    now: float
    version: int


class View(NamedTuple):
    """Where a peek looks, and how far."""

    pairs: list[Pair]
    floors: list[Mark]
    depth: int
    whole: bool
    """Whether it looks at all pairs, not only at those that were active."""
    from_the_beginning: bool
    began: float

    @property
    def columns(self) -> list[list[Any]]:
        """The same as a statement takes it."""
        return [
            [lane for lane, _ in self.pairs],
            [priority for _, priority in self.pairs],
            [floor.run_at for floor in self.floors],
            [floor.job_id for floor in self.floors],
        ]


class Looking(Part):
    """What a claim does before it takes anything."""

    async def _look(self, request: ClaimRequest, memory: Memory, seen: Seen | None) -> Seen:
        """Return the heads of the lanes this worker can run, and the time; `seen` is what was just seen of them."""
        seen = seen or await self._peek(request, memory)
        if memory.note_time(seen.now) or seen.version != memory.version:
            await self._read_lanes(request, memory, seen.version)
            seen = await self._peek(request, memory)
        if memory.is_token_there(seen.now):
            if await self._db.transaction(refill):
                self._hints.send()
            seen = await self._peek(request, memory)
        if memory.must_sweep(seen.now) and await self._sweep(request, memory, seen.now):
            seen = await self._peek(request, memory)
        return seen

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
        scope = hashlib.sha256(repr((scope_of(request), able)).encode(errors="surrogatepass")).hexdigest()[:32]
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

    async def _peek(self, request: ClaimRequest, memory: Memory) -> Seen:
        view = self._view(request, memory)
        row = await self._db.read(
            lambda connection: one(connection, SQL["peek"], *view.columns, view.depth, request.worker_id)
        )
        return await self._note_seen(request, memory, view, row)

    def _view(self, request: ClaimRequest, memory: Memory) -> View:
        began = self._db.clock.monotonic()
        able = [lane.id for lane in memory.lanes.values() if can_run(lane, request)]
        every: list[Pair] = [(lane, priority) for lane in able for priority in request.priorities]
        whole = len(every) <= MANY_PAIRS or began >= memory.active_until
        pairs = every if whole else memory.active
        now = self._db.time()
        from_the_beginning = whole and memory.can_sweep_by_peek(now)
        floors = [BEGINNING] * len(pairs) if from_the_beginning else memory.floors(pairs, now)
        return View(pairs, floors, _depth(request.limit, len(memory.active)), whole, from_the_beginning, began)

    async def _note_seen(self, request: ClaimRequest, memory: Memory, view: View, row: Any) -> Seen:
        """Remember what a peek saw, and return it."""
        now: float = row["now"]
        self._db.learn_time(now)
        memory.look_at = row["look_at"]
        memory.alive = row["alive"]
        pairs = view.pairs
        seen, next_due = seen_of(row)
        memory.set_marks(pairs, {number: (due[0], ids[0]) for number, (due, ids) in seen.items()}, now)
        took = self._db.clock.monotonic() - view.began
        if view.from_the_beginning:
            memory.swept, memory.sweep_took = now, took
            edge = datetime.fromtimestamp(now - LOOK_BACK, UTC)
            await self._publish(request, memory, pairs, [min(memory.marks[pair].run_at, edge) for pair in pairs])
        if view.whole:
            memory.active = [pairs[number - 1] for number in seen]
            memory.due_elsewhere = next_due
            memory.active_until = view.began + took * PLAN_USE
        memory.next_due = min((due for due in (next_due, memory.due_elsewhere) if due is not None), default=None)
        heads = [head_of(pairs[number - 1], memory.lanes, due, ids, view.depth) for number, (due, ids) in seen.items()]
        return Seen(heads, now, row["lanes"])


def scope_of(request: ClaimRequest) -> Scope:
    """Return which jobs a request is for."""
    kinds = None if request.kinds is None else tuple(sorted(request.kinds))
    needs = None if request.needs is None else needs_text(request.needs)
    return request.queues, kinds, tuple(sorted(request.labels.items())), request.tenant, request.at_least, needs


def is_plain(lane: Lane, request: ClaimRequest) -> bool:
    """Tell whether nothing but room decides how many jobs of a lane may start."""
    decided = lane.keyed or lane.slowed_by or lane.retried or lane.overdue
    return not decided and (lane.needs is None or request.free is None)


def _depth(limit: int, active: int) -> int:
    """Return how many rows of each pair a peek should see: enough for the plan, and some to spare."""
    if active > MANY_PAIRS:
        return -(-limit * CLAIMS_AHEAD // active) + 1
    return min(limit, max(LEAST_DEPTH, -(-limit // (2 * max(1, active)))))
