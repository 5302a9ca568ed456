"""Slow gates within a claim: how many they let through, and what has passed them."""

from collections import Counter
from collections.abc import Iterable
from typing import Final
from uuid import UUID

from tidewheel.model.pace import GatePace, look_at, passed, room
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import id_of

_SECOND: Final = 1e6

Paces = dict[UUID, GatePace]


def paces(session: Session) -> Paces:
    """Return the paces of all slow gates; asked only where some lane is slow."""
    return {id_of(number): GatePace(rate, ready_at / _SECOND) for number, rate, ready_at in session.rows("slow_gates")}


def rooms(session: Session, now: int) -> dict[UUID, int]:
    """Return how many each slow gate lets through now."""
    return {gate: room(pace, now / _SECOND) for gate, pace in paces(session).items()}


def count_passed(session: Session, pairs: Iterable[int], now: int) -> None:
    """Note that jobs of these pairs have started."""
    lanes = session.lanes.by_id
    counts = Counter(gate for pair in pairs for gate in lanes[pair >> 2].slowed_by)
    known = paces(session) if counts else {}
    for gate, count in counts.items():
        if gate in known:
            ready = passed(known[gate], count, now / _SECOND).ready
            session.run("move_gate", id=gate.bytes, ready_at=round(ready * _SECOND))


def next_look(known: Paces, slowed_by: Iterable[UUID], now: int) -> int:
    """Return when it is worth looking again at what lies behind these gates."""
    looks = [look_at(known[gate], now / _SECOND) for gate in slowed_by if gate in known]
    return max(now, round(max(looks, default=0.0) * _SECOND))
