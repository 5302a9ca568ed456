"""The order of a claim: strict priority, fair turns of tenants, FIFO within a tenant, and a share for the aged.

A claim first peeks at the heads of the lanes it may run, without locking anything. `share_out` turns what it saw into a
quota for each (lane, priority), and the store then takes just that many rows of each. The quota is a plan, not a lock:
rows that someone else takes in between are simply not got.
"""

import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import repeat
from uuid import UUID

import msgspec

from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs, fits, take

AGING = timedelta(minutes=5)
"""After this wait a job counts as aged."""
AGED_SHARE = 0.1
"""The least share of the starts that goes to the aged, oldest first, whatever their priority."""

_ONE = 1 - 1e-9
"""Ten tenths make a little less than one."""
_NEVER = float("inf")


class Head(msgspec.Struct, frozen=True):
    """What a peek saw of one (lane, priority)."""

    lane: int
    priority: int
    tenant: int
    due: Sequence[float]
    """The `run_at` of its first due jobs, ascending, in seconds."""
    more: bool = False
    """Whether there may be due jobs beyond those seen."""
    weight: float = 1.0
    needs: Needs | None = None
    ids: Sequence[UUID | bytes] = ()
    """The ids of the jobs seen: of equals in time, the first submitted comes first, also across lanes."""
    paces: tuple[UUID, ...] = ()
    """The slow gates it lies behind: each start needs room under all of them."""


Pair = tuple[int, int]
"""(lane, priority)."""
Waiting = tuple[float, UUID | bytes, int]
"""When a job is due, its id, and the number of its head."""


class Turns(msgspec.Struct, frozen=True):
    """What a claimer remembers from claim to claim, so that turns go on where they stopped."""

    served: Mapping[tuple[int, int], float] = {}
    """(priority, tenant) → the virtual time at which this tenant's next turn comes."""
    reached: Mapping[int, float] = {}
    """Priority → the virtual time of the last turn: who comes new, or back, starts from here."""
    owed: float = 0.0
    """Starts that the aged have coming."""


class Shares(msgspec.Struct, frozen=True):
    """The plan of a claim: how many to take of each (lane, priority)."""

    quotas: dict[Pair, int]
    turns: Turns
    order: list[Pair]
    """The same, one start after the other; the first n of it are the plan of a claim of n."""
    guessed: bool
    """Whether some of it lies beyond what was seen, and may not be there."""


def share_out(
    heads: Sequence[Head],
    limit: int,
    *,
    now: float,
    turns: Turns,
    free: Mapping[str, int] | None = None,
    rooms: Mapping[UUID, int] = {},
) -> Shares:
    """Plan a claim of up to `limit` jobs over the heads that a peek saw.

    `free` are the resources that may be taken; None stands for no bound. `rooms` are the starts that slow gates let
    through now. A head with more behind it than was seen may get more than that, before anything of a lower priority
    does: whoever finds it missing plans again.
    """
    plan = _Plan(heads, limit, now, turns, free)
    plan.rooms = dict(rooms)
    plan.serve_the_aged()
    plan.serve_by_priority()
    return plan.result()


class _Plan:
    """The working state of one `share_out`."""

    def __init__(
        self, heads: Sequence[Head], limit: int, now: float, turns: Turns, free: Mapping[str, int] | None
    ) -> None:
        self.heads = heads
        self.left = limit
        self.old = now - AGING.total_seconds()
        self.free = free
        self.rooms: dict[UUID, int] = {}
        self.given = [0] * len(heads)
        self.unfit: set[int] = set()
        self.guessed = False
        self.order: list[Pair] = []
        self.served = dict(turns.served)
        self.reached = dict(turns.reached)
        self.owed = turns.owed
        self.passed_over = dict.fromkeys((*Priority, *(head.priority for head in heads)), _NEVER)
        """For each priority: when the oldest of the aged became due that have a lower one."""

    def serve_the_aged(self) -> None:
        """Give the aged what they are owed, oldest first."""
        aged = [index for index, head in enumerate(self.heads) if head.due and head.due[0] <= self.old]
        if not aged:
            self.owed = 0.0
            return
        # Bounded, so that aged jobs which never fit do not run up a debt that starves the rest once they do.
        self.owed = min(self.owed + AGED_SHARE * self.left, max(1.0, self.left))
        if self.owed >= _ONE:
            queue = self._queue(aged)
            while self.owed >= _ONE and self.left and self._skip_unfit(queue) and queue[-1][0] <= self.old:
                if self._give(queue.pop()[2]):
                    self.owed -= 1
        for index in aged:
            head = self.heads[index]
            if self.given[index] < len(head.due):
                for priority in range(head.priority):
                    self.passed_over[priority] = min(head.due[self.given[index]], self.passed_over[priority])

    def serve_by_priority(self) -> None:
        """Give out the rest: higher priorities first, tenants by turns."""
        levels: dict[int, dict[int, list[int]]] = {}
        for index, head in enumerate(self.heads):
            if head.more or self.given[index] < len(head.due):
                levels.setdefault(head.priority, {}).setdefault(head.tenant, []).append(index)
        for priority in sorted(levels):
            if self.left:
                self._serve_level(priority, levels[priority])

    def _serve_level(self, priority: int, tenants: dict[int, list[int]]) -> None:
        queues = {tenant: self._queue(own) for tenant, own in tenants.items()}
        unseen = {tenant: deque(index for index in own if self.heads[index].more) for tenant, own in tenants.items()}
        # Idle turns are not saved up: nobody starts from before the last turn that was taken.
        reached = self.reached.get(priority, 0.0)
        turns = [
            (max(reached, self.served.get((priority, tenant), 0.0)), _first(queue), tenant)
            for tenant, queue in queues.items()
        ]
        heapq.heapify(turns)
        older = self.passed_over[priority]
        while turns and self.left:
            served, due, tenant = turns[0]
            queue = queues[tenant]
            index = queue.pop()[2] if queue else self._guess(unseen[tenant])
            if index is None:
                heapq.heappop(turns)
                continue
            if self._give(index):
                self.reached[priority] = served
                served += 1.0 / self.heads[index].weight
                self.served[priority, tenant] = served
                # What goes by its priority pays the debt only if nothing older is passed over for it: else jobs of low
                # priority would wait for ever under a load so high that those of high priority are aged, too.
                if due <= self.old and due < older:
                    self.owed -= 1
            self._skip_unfit(queue)
            heapq.heapreplace(turns, (served, _first(queue), tenant))

    def _guess(self, unseen: deque[int]) -> int | None:
        """Return the next of a tenant's heads that may have more than was seen, one after the other."""
        while unseen:
            index = unseen.popleft()
            if index not in self.unfit:
                unseen.append(index)
                self.guessed = True
                return index
        return None

    def result(self) -> Shares:
        live = {(head.priority, head.tenant) for head in self.heads}
        served = {key: value for key, value in self.served.items() if key in live}
        return Shares(
            dict(Counter(self.order)), Turns(served, self.reached, max(0.0, self.owed)), self.order, self.guessed
        )

    def _queue(self, indexes: list[int]) -> list[Waiting]:
        """Return what waits in these heads, first in at the end, where it is cheap to take from."""
        waiting: list[Waiting] = []
        for index in indexes:
            head, start = self.heads[index], self.given[index]
            ids = head.ids[start:] if head.ids else repeat(b"", len(head.due) - start)
            waiting += zip(head.due[start:], ids, repeat(index), strict=False)
        waiting.sort(reverse=True)
        return waiting

    def _skip_unfit(self, queue: list[Waiting]) -> bool:
        """Drop what did not fit from the front of a queue, and tell whether anything is left."""
        while self.unfit and queue and queue[-1][2] in self.unfit:
            queue.pop()
        return bool(queue)

    def _give(self, index: int) -> bool:
        """Give one start to a head if its needs fit what is free and its gates let it through."""
        head = self.heads[index]
        if head.paces and any(self.rooms.get(pace, 1) < 1 for pace in head.paces):
            self.unfit.add(index)
            return False
        if self.free is not None and head.needs is not None:
            if not fits(head.needs, self.free):
                self.unfit.add(index)
                return False
            self.free = take(self.free, head.needs)
        for pace in head.paces:
            self.rooms[pace] = self.rooms.get(pace, 1) - 1
        self.given[index] += 1
        self.left -= 1
        self.order.append((head.lane, head.priority))
        return True


def _first(queue: Sequence[Waiting]) -> float:
    """Return when the first of a queue became due; what is not seen comes after all that is."""
    return queue[-1][0] if queue else _NEVER
