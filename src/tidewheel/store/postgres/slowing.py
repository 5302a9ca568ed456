"""Slow gates within a claim: how many they let through, and what has passed them.

A claimer that has none of their lanes pays nothing for them. One that has looks at their paces before it plans; what it
then takes it takes under the locks of these gates, which come before all others that a claim holds.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from tidewheel.model.order import Head, Shares
from tidewheel.model.pace import GatePace, fit, look_at, passed, room
from tidewheel.store.lanes import Lane
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.memory import Pair


class Paces:
    """What slow gates let through at an instant."""

    def __init__(self, rows: Sequence[Any] = ()) -> None:
        self._paces: dict[UUID, GatePace] = {row["id"]: GatePace(row["rate"], row["ready"]) for row in rows}
        self._now: float = rows[0]["now"] if rows else 0.0

    @property
    def rooms(self) -> dict[UUID, int]:
        """How many may pass each of them."""
        return {gate: room(pace, self._now) for gate, pace in self._paces.items()}

    def after(self, counts: Mapping[UUID, int]) -> dict[UUID, GatePace]:
        """Return the paces of the gates that so many pass now."""
        return {
            gate: passed(self._paces[gate], count, self._now) for gate, count in counts.items() if gate in self._paces
        }

    def look_again(self, heads: Sequence[Head], shares: Shares) -> float | None:
        """Return when to look again for what a plan leaves behind slow gates; None if it leaves nothing."""
        kept = [
            head for head in heads if head.paces and (head.more or len(head.due) > shares.quotas.get(_pair(head), 0))
        ]
        if not kept or not self._paces:
            return None
        counts: Counter[UUID] = Counter()
        for head in heads:
            for gate in head.paces:
                counts[gate] += shares.quotas.get(_pair(head), 0)
        paces = self._paces | self.after(counts)
        return min(
            max((look_at(paces[gate], self._now) for gate in head.paces if gate in paces), default=self._now)
            for head in kept
        )


def _pair(head: Head) -> Pair:
    return head.lane, head.priority


def slow_gates(heads: Iterable[Head]) -> list[UUID]:
    """Return the slow gates that some of these heads lie behind."""
    return sorted({gate for head in heads for gate in head.paces})


async def lock_paces(connection: Connection, quotas: Mapping[Pair, int], lanes: Mapping[int, Lane]) -> Paces:
    """Lock the slow gates of these pairs, and return what they let through."""
    gates = sorted({gate for lane, _ in quotas for gate in lanes[lane].slowed_by})
    return Paces(await connection.fetch(SQL["lock_slow_gates"], gates))


def within(paces: Paces, quotas: Mapping[Pair, int], lanes: Mapping[int, Lane]) -> dict[Pair, int]:
    """Return as much of the quotas as the gates let through."""
    return fit(quotas, {pair: lanes[pair[0]].slowed_by for pair in quotas}, paces.rooms)


async def count_passed(connection: Connection, paces: Paces, rows: Iterable[Any], lanes: Mapping[int, Lane]) -> None:
    """Note that these jobs have started."""
    moved = paces.after(Counter(gate for row in rows for gate in lanes[row["lane"]].slowed_by))
    if moved:
        await connection.execute(SQL["move_gates"], list(moved), [pace.ready for pace in moved.values()])
