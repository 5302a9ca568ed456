"""The order of a claim: strict priority, fair turns of tenants, FIFO within a tenant, a share for the aged.

Of what failed before no more is taken than `model.retry_budget` allows.

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

from tidewheel.model.resources import Needs, fits, take
from tidewheel.model.retry_budget import RetryBudget

AGING = timedelta(minutes=5)
"""After this wait a job counts as aged."""
AGED_SHARE = 0.1
"""The least share of the starts that goes to the aged, oldest first, whatever their priority."""

_ONE = 1 - 1e-9
"""Ten tenths make a little less than one."""
_MANY = 1 << 40
"""More than can be given."""


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
    queue: str = ""
    retried: bool = False
    """Whether its jobs have failed before."""


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
    retries: Mapping[str, float] = {}
    """Queue → starts that its retries have earned."""


class Shares(msgspec.Struct, frozen=True):
    """The plan of a claim: how many to take of each (lane, priority)."""

    quotas: dict[Pair, int]
    turns: Turns
    order: list[Pair]
    """The same, one start after the other; the first n of it are the plan of a claim of n."""
    guessed: bool
    """Whether some of it lies beyond what was seen, and may not be there."""


def share_out(
    heads: Sequence[Head], limit: int, *, now: float, turns: Turns, free: Mapping[str, int] | None = None
) -> Shares:
    """Plan a claim of up to `limit` jobs over the heads that a peek saw.

    `free` are the resources that may be taken; None stands for no bound. A head with more behind it than was seen may
    get more than that, before anything of a lower priority does: whoever finds it missing plans again.
    """
    plan = _Plan(heads, limit, now, turns, free)
    plan.serve_the_aged()
    plan.serve_by_priority()
    plan.serve_what_waited_for_first_attempts()
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
        self.given = [0] * len(heads)
        self.unfit: set[int] = set()
        self.guessed = False
        self.order: list[Pair] = []
        self.served = dict(turns.served)
        self.reached = dict(turns.reached)
        self.owed = turns.owed
        retried = any(head.retried for head in heads)
        self.budget = RetryBudget(map(_waiting, heads), turns.retries) if retried else None
        self.held_back: dict[str, deque[tuple[int, Waiting]]] = {}
        """Queue → retries that must let first attempts go first, most urgent first, with their tenants."""

    def serve_the_aged(self) -> None:
        """Give the aged what they are owed, oldest first."""
        aged = [index for index, head in enumerate(self.heads) if head.due and head.due[0] <= self.old]
        if not aged:
            self.owed = 0.0
            return
        # Bounded, so that aged jobs which never fit do not run up a debt that starves the rest once they do.
        self.owed = min(self.owed + AGED_SHARE * self.left, max(1.0, self.left))
        if self.owed < _ONE:
            return
        queue = self._queue(aged)
        while self.owed >= _ONE and self.left and self._skip_unfit(queue) and queue[-1][0] <= self.old:
            self._give(queue.pop()[2])

    def serve_by_priority(self) -> None:
        """Give out the rest: higher priorities first, tenants by turns."""
        self.held_back.clear()
        levels: dict[int, dict[int, list[int]]] = {}
        for index, head in enumerate(self.heads):
            if self.given[index] < len(head.due):
                levels.setdefault(head.priority, {}).setdefault(head.tenant, []).append(index)
        for priority in sorted(levels):
            if self.left:
                self._serve_level(priority, {tenant: self._queue(own) for tenant, own in levels[priority].items()})
                self._guess(priority)

    def serve_what_waited_for_first_attempts(self) -> None:
        """Give what is left to retries, once there are no first attempts left that they must wait for."""
        if self.left and self.budget is not None:
            self.serve_by_priority()

    def _serve_level(self, priority: int, queues: dict[int, list[Waiting]]) -> None:
        # Idle turns are not saved up: nobody starts from before the last turn that was taken.
        reached = self.reached.get(priority, 0.0)
        turns = [
            (max(reached, self.served.get((priority, tenant), 0.0)), queue[-1][0], tenant)
            for tenant, queue in queues.items()
        ]
        heapq.heapify(turns)
        while turns and self.left:
            served, _, tenant = turns[0]
            queue = queues[tenant]
            waiting = queue.pop()
            index = waiting[2]
            if self.budget is not None and self._must_wait(self.budget, index):
                self.held_back.setdefault(self.heads[index].queue, deque()).append((tenant, waiting))
            elif self._give(index):
                self.reached[priority] = served
                served += 1.0 / self.heads[index].weight
                self.served[priority, tenant] = served
            if self._skip_unfit(queue):
                heapq.heapreplace(turns, (served, queue[-1][0], tenant))
            else:
                heapq.heappop(turns)
            if self.budget is not None and self.held_back:
                self._call_back(self.budget, priority, queues, turns)

    def _call_back(
        self,
        budget: RetryBudget,
        priority: int,
        queues: dict[int, list[Waiting]],
        turns: list[tuple[float, float, int]],
    ) -> None:
        """Let retries that may start now have their tenants' next turns: all of a queue, or one.

        Those of a higher priority wait for no turn.
        """
        for name in [name for name in self.held_back if budget.allows(name)]:
            held = self.held_back[name]
            back = [held.popleft() for _ in range(len(held) if budget.is_free(name) else 1)]
            if not held:
                del self.held_back[name]
            for _, (_, _, index) in back:
                if self.left and self.heads[index].priority < priority:
                    self._give(index)
            for tenant, waiting in reversed(back):
                if self.heads[waiting[2]].priority == priority:
                    if not queues[tenant]:
                        served = max(self.reached.get(priority, 0.0), self.served.get((priority, tenant), 0.0))
                        heapq.heappush(turns, (served, waiting[0], tenant))
                    queues[tenant].append(waiting)

    def _guess(self, priority: int) -> None:
        """Give what is left to heads of a level that may have more than was seen, one after the other."""
        more = [
            index
            for index, head in enumerate(self.heads)
            if head.priority == priority
            and head.more
            and self.given[index] >= len(head.due)
            and not (self.budget is not None and self._must_wait(self.budget, index))
        ]
        while self.left and more:
            self.guessed = True
            more = [index for index in more if self.left and self._give(index)]

    def result(self) -> Shares:
        live = {(head.priority, head.tenant) for head in self.heads}
        served = {key: value for key, value in self.served.items() if key in live}
        turns = Turns(served, self.reached, max(0.0, self.owed), {} if self.budget is None else self.budget.credit)
        return Shares(dict(Counter(self.order)), turns, self.order, self.guessed)

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
        """Give one start to a head if its needs fit what is free."""
        head = self.heads[index]
        if self.free is not None and head.needs is not None:
            if not fits(head.needs, self.free):
                self._leave_out(index)
                return False
            self.free = take(self.free, head.needs)
        position = self.given[index]
        if position < len(head.due) and head.due[position] <= self.old:
            self.owed -= 1
        self.given[index] = position + 1
        self.left -= 1
        if self.budget is not None:
            self.budget.start(head.queue, retried=head.retried)
        self.order.append((head.lane, head.priority))
        return True

    def _must_wait(self, budget: RetryBudget, index: int) -> bool:
        """Tell whether a head is of retries that must let first attempts go first."""
        head = self.heads[index]
        return head.retried and not budget.allows(head.queue)

    def _leave_out(self, index: int) -> None:
        head = self.heads[index]
        if self.budget is not None and not head.retried and index not in self.unfit:
            self.budget.leave_out(head.queue, _waiting(head)[2] - self.given[index])
        self.unfit.add(index)


def _waiting(head: Head) -> tuple[str, bool, int]:
    return head.queue, head.retried, _MANY if head.more else len(head.due)
