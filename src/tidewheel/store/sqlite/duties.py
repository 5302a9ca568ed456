"""Duties that the nodes share, and what there is to do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.model.duty import MOST_NODES, Agenda, Duty, share
from tidewheel.store.scheduling import SHARDS
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import decode_keys, id_of, instant, json_text, some, span

_SHARDS: Final = json_text(list(range(SHARDS)))
_instants: Final = msgspec.json.Decoder(list[int | None]).decode


def share_duties(session: Session, node: UUID, names: Sequence[str], ttl: timedelta) -> list[Duty] | None:
    """See `store.keeping.DutyStore.share_duties`."""
    now = session.now
    until = now + span(ttl)
    if session.value("count_others", node=node.bytes, now=now) >= MOST_NODES:
        return None
    session.run("be_there", node=node.bytes, duties=json_text(sorted(set(names))), until=until)
    offers = {id_of(stored): decode_keys(duties) for stored, duties in session.rows("who_is_there", now=now)}
    found = {name: (some(id_of, holder), epoch) for name, holder, epoch in session.rows("duties")}
    holders = {name: holder for name, (holder, _) in found.items() if holder is not None and holder in offers}
    due = share(holders, offers)
    for name, holder in holders.items():
        if holder == node and due.get(name) != node:
            session.run("give_up_duty", name=name, holder=node.bytes)
    mine = []
    for name in sorted(name for name, whose in due.items() if whose == node):
        holder = holders.get(name)
        if holder == node:
            mine.append(Duty(name, node, instant(until), found[name][1]))
        elif holder is None:
            epoch = session.value("hold_duty", name=name, holder=node.bytes)
            mine.append(Duty(name, node, instant(until), epoch))
    return mine


def leave_duties(session: Session, node: UUID) -> None:
    """See `store.keeping.DutyStore.leave_duties`."""
    session.run("give_up_all_duties", holder=node.bytes)
    session.run("forget_node", node=node.bytes)


def agenda(connection: apsw.Connection, now: int) -> Agenda:
    """See `store.keeping.DutyStore.agenda`."""
    ((lapsed, start_by, dropping, opening, stopping, telling, happened, awaited, delivery, fires, decisions),) = rows(
        connection, "agenda", {"now": now, "shards": _SHARDS}
    )
    return Agenda(
        now=instant(now),
        lapsed=bool(lapsed),
        next_start_by=some(instant, start_by),
        dropping=bool(dropping),
        next_opening=some(instant, opening),
        stopping=bool(stopping),
        telling=bool(telling),
        happened=bool(happened),
        awaited=bool(awaited),
        next_delivery=some(instant, delivery),
        next_fires=tuple(some(instant, micros) for micros in _instants(fires)),
        next_decisions=tuple(some(instant, micros) for micros in _instants(decisions)),
    )
