"""Which rows a claim takes: a peek at the heads of some lanes, and the order of `model.order` over what it saw.

With thousands of (lane, priority) pairs a claim of a few hundred jobs looks only at those that can matter, and the plan
is still the one that a look at all of them would give:

- Of the lanes of one tenant at one priority, those with the oldest first jobs come first. So a few of them will do; if
  the youngest of these (the edge) gets nothing, those left out would not either, and if it gets something they are
  looked at too.
- When the pairs of the higher priorities are enough to fill the claim, those of lower ones can only come in by age.
- A pair that gives all that was seen of it is looked at more deeply.

Lanes with needs may turn out not to fit, those behind slow gates not to be let through, and of some pairs the first job
is not known: these are always looked at.
"""

from heapq import nsmallest
from typing import Final, cast

import msgspec

from tidewheel.model.order import AGING, Head, Shares, Turns, share_out
from tidewheel.model.priority import Priority
from tidewheel.store.base import ClaimRequest
from tidewheel.store.sqlite.lanes import UNKNOWN, is_new
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.slowing import rooms
from tidewheel.store.sqlite.values import json_text, span

Rows = list[tuple[int, int]]
"""The first queued rows of a pair, as (run_at, place), in their order."""
Pick = tuple[int, int]
"""The place of a row, and its pair."""

_AGING: Final = span(AGING)
_SECOND: Final = 1e6
_FRESH: Final = Turns()


class Peeked(msgspec.Struct, array_like=True, frozen=True):
    """What `peek` answers of one pair."""

    pair: int
    rows: Rows


_peeked: Final = msgspec.json.Decoder(list[Peeked]).decode


def plan(session: Session, request: ClaimRequest, room: int, now: int) -> list[Pick]:
    """Choose up to `room` rows to take, and note what was seen of the pairs."""
    if room < 1:
        return []
    work = _Plan(session, request, room, now)
    pairs = work.choose()
    if not pairs:
        return []
    depth = min(room, 2 * room // len(pairs) + 1) + 1
    work.peek(pairs, depth)
    shares = work.share()
    while work.look_further(shares, depth):
        shares = work.share()
    session.turns[request.worker_id, request.at_least] = shares.turns
    return work.pick(shares)


def peek_rows(session: Session, pairs: list[int], depth: int) -> dict[int, Rows]:
    """Return the first rows of pairs, due or not, up to so many of each."""
    return {peeked.pair: peeked.rows for peeked in _peeked(session.value("peek", pairs=json_text(pairs), depth=depth))}


class _Plan:
    """The working state of one plan."""

    def __init__(self, session: Session, request: ClaimRequest, room: int, now: int) -> None:
        self.session = session
        self.request = request
        self.room = room
        self.now = now
        self.first = session.lanes.first
        self.seen: dict[int, Rows] = {}
        self.depths: dict[int, int] = {}
        self.heads: dict[int, Head] = {}
        self.left_out: dict[int, list[int]] = {}
        """Edge → the younger pairs of its group."""
        self.rooms = rooms(session, now) if session.lanes.any_slow else {}

    def choose(self) -> list[int]:
        """Return the pairs to look at first."""
        chosen = self._overdue()
        certain = 0
        for priority in self.request.priorities:
            if certain >= self.room:
                chosen += self._aged(priority)
                continue
            groups, anyway = self._due_groups(priority)
            chosen += anyway
            width = min(self.room, self.room // max(1, len(groups)) + 2)
            for group in groups:
                oldest = self._oldest(group, width)
                chosen += oldest
                if not self.session.lanes.by_id[group[0] >> 2].retried:  # retries may have to wait for lower ones
                    certain += len(oldest)
        return list(dict.fromkeys(chosen))

    def _overdue(self) -> list[int]:
        """Return the pairs that come before all others."""
        overdue = self.session.lanes.overdue
        if not overdue:
            return []
        waiting = self.session.lanes.waiting_for
        return [
            pair for level in self.request.priorities for pair in waiting(self.request, level) if pair >> 2 in overdue
        ]

    def _aged(self, priority: Priority) -> list[int]:
        """Return the pairs of a priority that can only come in by age."""
        first = self.first[priority]
        if min(first.values(), default=(self.now, 0))[0] > self.now - _AGING:
            return []
        pairs = self.session.lanes.waiting_for(self.request, priority)
        aged = [pair for pair in pairs if first[pair][0] <= self.now - _AGING]
        return nsmallest(self.room, aged, first.__getitem__)

    def _due_groups(self, priority: Priority) -> tuple[list[list[int]], list[int]]:
        """Return the due pairs of a priority by tenant, and apart those that must be looked at anyway.

        Retries are apart for each queue: some may have to wait that are older than others that need not.
        """
        groups: dict[object, list[int]] = {}
        anyway = []
        first, now, lanes = self.first[priority], self.now, self.session.lanes.by_id
        for pair in self.session.lanes.waiting_for(self.request, priority):
            if first[pair][0] <= now:
                lane = lanes[pair >> 2]
                if lane.needs is not None or lane.slowed_by or first[pair] is UNKNOWN:
                    anyway.append(pair)
                    continue
                group = (lane.tenant, lane.queue) if lane.retried else lane.tenant
                if group in groups:
                    groups[group].append(pair)
                else:
                    groups[group] = [pair]
        return list(groups.values()), anyway

    def _oldest(self, group: list[int], width: int) -> list[int]:
        """Return the oldest pairs of a group, and note which were left out."""
        if len(group) <= width:
            return group
        first = self.first[group[0] & 3]
        oldest = nsmallest(width, group, first.__getitem__)
        edge = first[oldest[-1]]
        rest = [pair for pair in group if first[pair] > edge]
        # Of the same instant, and not yet known to come later.
        oldest += [pair for pair in rest if first[pair][0] == edge[0] and is_new(first[pair])]
        if width < self.room:
            self.left_out[oldest[width - 1]] = rest
        return oldest

    def peek(self, pairs: list[int], depth: int) -> None:
        """Look at the first rows of pairs."""
        lanes = self.session.lanes.by_id
        for pair, rows in peek_rows(self.session, pairs, depth).items():
            self.seen[pair] = rows
            self.depths[pair] = depth
            due = [run_at / _SECOND for run_at, _ in rows if run_at <= self.now]
            if due:
                lane = lanes[pair >> 2]
                # Places rise as ids do, and serve as well for telling who came first.
                ids = cast("list[bytes]", [place for _, place in rows])
                more = len(due) == depth
                told = (lane.weight, lane.needs, ids, lane.queue, lane.retried, lane.slowed_by, lane.overdue)
                self.heads[pair] = Head(lane.id, pair & 3, lane.tenant, due, more, *told)

    def share(self) -> Shares:
        """Share the claim out among what was seen."""
        turns = self.session.turns.get((self.request.worker_id, self.request.at_least), _FRESH)
        heads = list(self.heads.values())
        free = self.request.free
        return share_out(heads, self.room, now=self.now / _SECOND, turns=turns, free=free, rooms=self.rooms)

    def look_further(self, shares: Shares, depth: int) -> bool:
        """Look at what the shares show to matter too; tell whether there was such."""
        quotas = {lane << 2 | priority: n for (lane, priority), n in shares.quotas.items()}
        short = [pair for pair, n in quotas.items() if len(self.seen[pair]) == self.depths[pair] <= n]
        hit = [edge for edge in self.left_out if edge in quotas]
        wider = [pair for edge in hit for pair in self.left_out.pop(edge) if pair not in self.seen]
        if short:
            self.peek(short, self.room + 1)
        if wider:
            self.peek(wider, depth)
        return bool(short or wider)

    def pick(self, shares: Shares) -> list[Pick]:
        """Take the quotas from what was seen, and note where each pair begins after that."""
        picks: list[Pick] = []
        for pair, rows in self.seen.items():
            quota = shares.quotas.get((pair >> 2, pair & 3), 0)
            if quota:
                picks += [(place, pair) for _, place in rows[:quota]]
            if quota < len(rows):
                self.first[pair & 3][pair] = rows[quota]
            else:
                del self.first[pair & 3][pair]
        return picks
