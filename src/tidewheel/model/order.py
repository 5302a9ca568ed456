"""The order of a claim: strict priority, fair turns of tenants, FIFO within a tenant, a share for the aged.

Under a limit the aged have such a share, too (`turns_by_age`). Who waited long for one is overdue once it is let go:
the overdue come first in a tenth of the starts, and a limit gives them its room when it is their turn.

Of what failed before no more is taken than `model.retry_budget` allows.

A claim first peeks at the heads of the lanes it may run, without locking anything. `share_out` turns what it saw into a
quota for each (lane, priority), and the store then takes just that many rows of each. The quota is a plan, not a lock:
rows that someone else takes in between are simply not got.
"""

import heapq
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import cycle, islice, repeat
from uuid import UUID

import msgspec

from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs, fits, take
from tidewheel.model.retry_budget import RetryBudget

AGING = timedelta(minutes=5)
"""After this wait a job counts as aged."""
AGED_SHARE = 0.1
"""The least share of the starts that goes to the aged, oldest first, whatever their priority."""

AGED_TURN = round(1 / AGED_SHARE)
"""Of so many starts under a limit, one goes by age."""

_ONE = 1 - 1e-9
"""Ten tenths make a little less than one."""
_NEVER = float("inf")
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
    paces: tuple[UUID, ...] = ()
    """The slow gates it lies behind: each start needs room under all of them."""
    overdue: bool = False
    """Whether its jobs waited long for a limit before they were let go."""


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
    kept: float = 1.0
    """Starts that are kept for the overdue."""
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
    plan.serve_the_overdue()
    plan.serve_the_aged()
    plan.serve_by_priority()
    plan.serve_what_waited_for_first_attempts()
    return plan.result()


def turns_by_age(passed: int, number: int) -> int:
    """Return how many of the next starts under a limit go to the oldest that are overdue, whatever their priority.

    `passed` started by their priority since one had its turn by age, and `number` can start now.
    """
    return (passed + number) // AGED_TURN


def passed_over(passed: int, number: int, by_age: int) -> int:
    """Return how many have started by their priority after these, of which some were overdue.

    A turn that nobody was old enough for is kept for the next who is. It is one, so that the aged run up no debt.
    """
    return max(0, min(AGED_TURN - 1, passed + number - AGED_TURN * by_age))


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
        # Bounded as what the aged are owed is; but kept for those who come later, for a limit lets few of them go.
        self.kept = min(turns.kept + AGED_SHARE * limit, max(1.0, limit))
        self.passed_over = dict.fromkeys((*Priority, *(head.priority for head in heads)), _NEVER)
        """For each priority: when the oldest of the aged became due that have a lower one."""
        retried = any(head.retried for head in heads)
        self.budget = RetryBudget(map(_waiting, heads), turns.retries) if retried else None
        self.held_back: dict[str, deque[tuple[int, Waiting]]] = {}
        """Queue → retries that must let first attempts go first, most urgent first, with their tenants."""
        self.unbounded = free is None and self.budget is None and not any(head.paces for head in heads)
        """Whether every start that is planned can be given."""

    def serve_the_overdue(self) -> None:
        """Give the overdue what is kept for them, oldest first."""
        queue = self._queue([index for index, head in enumerate(self.heads) if head.overdue])
        while self.kept >= _ONE and self.left and self._skip_unfit(queue):
            if self._give(queue.pop()[2]):
                self.kept -= 1

    def serve_the_aged(self) -> None:
        """Give the aged what they are owed, oldest first."""
        aged = [index for index, head in enumerate(self.heads) if self._next_due(index) <= self.old]
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
        self.held_back.clear()
        levels: dict[int, dict[int, list[int]]] = {}
        for index, head in enumerate(self.heads):
            if head.more or self.given[index] < len(head.due):
                levels.setdefault(head.priority, {}).setdefault(head.tenant, []).append(index)
        for priority in sorted(levels):
            if not self.left:
                break
            if self.unbounded and len(levels[priority]) == 1:
                self._serve_alone(priority, *levels[priority].popitem())
            else:
                self._serve_level(priority, levels[priority])

    def serve_what_waited_for_first_attempts(self) -> None:
        """Give what is left to retries, once there are no first attempts left that they must wait for."""
        if self.left and self.budget is not None:
            self.serve_by_priority()

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
        while turns and self.left:
            served, _, tenant = turns[0]
            queue = queues[tenant]
            waiting = self._next(tenant, queue) if queue else self._guess(unseen[tenant])
            if waiting is not None and self._give(waiting[2]):
                self.reached[priority] = served
                served += 1.0 / self.heads[waiting[2]].weight
                self.served[priority, tenant] = served
                self._pay(waiting[0], priority)
            if self._skip_unfit(queue) or unseen[tenant]:
                heapq.heapreplace(turns, (served, _first(queue), tenant))
            else:
                heapq.heappop(turns)
            if self.budget is not None and self.held_back:
                self._call_back(self.budget, priority, queues, turns)

    def _serve_alone(self, priority: int, tenant: int, own: list[int]) -> None:
        """Do what `_serve_level` does for the one tenant of a level whom nothing bounds, which takes no turns."""
        queue = self._queue(own)
        seen = queue[: -self.left - 1 : -1]
        unseen = [index for index in own if self.heads[index].more]
        guessed = self.left - len(seen) if unseen else 0
        given = [index for _, _, index in seen] + list(islice(cycle(unseen), guessed))
        self.guessed |= guessed > 0
        turn = max(self.reached.get(priority, 0.0), self.served.get((priority, tenant), 0.0))
        share = 1.0 / self.heads[own[0]].weight
        self.reached[priority] = turn + (len(given) - 1) * share
        self.served[priority, tenant] = turn + len(given) * share
        oldest = self.passed_over[priority]
        self.owed -= sum(due <= self.old and due < oldest for due, _, _ in seen)
        for index, number in Counter(given).items():
            self.given[index] += number
        self.left -= len(given)
        self.order += [(self.heads[index].lane, priority) for index in given]

    def _next(self, tenant: int, queue: list[Waiting]) -> Waiting | None:
        """Return the first of a queue; None if that is a retry which must let first attempts go first."""
        waiting = queue.pop()
        if self.budget is None or not self._must_wait(self.budget, waiting[2]):
            return waiting
        self.held_back.setdefault(self.heads[waiting[2]].queue, deque()).append((tenant, waiting))
        return None

    def _guess(self, unseen: deque[int]) -> Waiting | None:
        """Return the next of a tenant's heads that may have more than was seen, one after the other."""
        while unseen:
            index = unseen.popleft()
            if index in self.unfit or (self.budget is not None and self._must_wait(self.budget, index)):
                continue
            unseen.append(index)
            self.guessed = True
            return _NEVER, b"", index
        return None

    def _pay(self, due: float, priority: int) -> None:
        """Count a start by priority among those that the aged have coming, if nothing older is passed over for it.

        Else jobs of low priority would wait for ever under a load so high that those of high priority are aged, too.
        """
        if due <= self.old and due < self.passed_over[priority]:
            self.owed -= 1

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
                    if not any(turn[2] == tenant for turn in turns):
                        served = max(self.reached.get(priority, 0.0), self.served.get((priority, tenant), 0.0))
                        heapq.heappush(turns, (served, waiting[0], tenant))
                    queues[tenant].append(waiting)

    def result(self) -> Shares:
        live = {(head.priority, head.tenant) for head in self.heads}
        served = {key: value for key, value in self.served.items() if key in live}
        credit = {} if self.budget is None else self.budget.credit
        turns = Turns(served, self.reached, max(0.0, self.owed), self.kept, credit)
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

    def _next_due(self, index: int) -> float:
        """Return when the first of what is seen and left of a head became due."""
        due, given = self.heads[index].due, self.given[index]
        return due[given] if given < len(due) else _NEVER

    def _skip_unfit(self, queue: list[Waiting]) -> bool:
        """Drop what did not fit from the front of a queue, and tell whether anything is left."""
        while self.unfit and queue and queue[-1][2] in self.unfit:
            queue.pop()
        return bool(queue)

    def _give(self, index: int) -> bool:
        """Give one start to a head if its needs fit what is free and its gates let it through."""
        head = self.heads[index]
        if head.paces and any(self.rooms.get(pace, 1) < 1 for pace in head.paces):
            self._leave_out(index)
            return False
        if self.free is not None and head.needs is not None:
            if not fits(head.needs, self.free):
                self._leave_out(index)
                return False
            self.free = take(self.free, head.needs)
        for pace in head.paces:
            self.rooms[pace] = self.rooms.get(pace, 1) - 1
        self.given[index] += 1
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


def _first(queue: Sequence[Waiting]) -> float:
    """Return when the first of a queue became due; what is not seen comes after all that is."""
    return queue[-1][0] if queue else _NEVER
