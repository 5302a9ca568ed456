"""Duties: chores that one node at a time performs, shared evenly among the nodes that are there."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name

MAX_TTL: Final = timedelta(hours=1)
MOST_NODES: Final = 16
"""How many nodes share the duties. There are not many more duties, and each node hears of all others at each beat."""


class Duty(msgspec.Struct, frozen=True):
    """A chore that a node performs for as long as its lease lasts."""

    name: str
    holder: UUID
    until: datetime
    epoch: int
    """Rises with each change of holder."""


class Agenda(msgspec.Struct, frozen=True, kw_only=True):
    """What there is to do for the keeper, as one look saw it; instants are the store's."""

    now: datetime
    lapsed: bool = False
    """Whether the lease of a worker that counts as alive has passed."""
    next_start_by: datetime | None = None
    """The first start deadline of a job that waits."""
    dropping: bool = False
    """Whether there are lanes behind `drop` gates."""
    next_opening: datetime | None = None
    """When the first gate opens by itself."""
    stopping: bool = False
    """Whether there are gates that stop what runs behind them."""
    telling: bool = False
    """Whether children of ended jobs are still to be told."""
    happened: bool = False
    """Whether something happened that someone may want to hear of."""
    awaited: bool = False
    """Whether someone wants to hear of jobs that are late while they still wait."""
    next_delivery: datetime | None = None
    """When the first message is to be sent."""
    next_fires: tuple[datetime | None, ...] = ()
    """For each shard of the schedules the first occurrence that is not recorded."""
    next_decisions: tuple[datetime | None, ...] = ()
    """For each shard the first occurrence whose overlap is not decided."""


def check_duties(names: Collection[str], ttl: timedelta) -> None:
    """Refuse what cannot be held."""
    for name in names:
        check_name("names", name)
    if not timedelta(0) < ttl <= MAX_TTL:
        raise Invalid("ttl", f"must be more than nothing and at most 1 h, not {ttl.total_seconds():g} s")


def share(holders: Mapping[str, UUID], offers: Mapping[UUID, Collection[str]]) -> dict[str, UUID]:
    """Tell whose each duty is to be: as even as can be, and with no more changes than that takes.

    `holders` are those who have duties and are there, `offers` what each node is ready for. The parts of one duty
    (`name/0`, `name/1`, …) are shared evenly among themselves, and so are all that have no parts. Everyone who sees the
    same comes to the same answer.
    """
    groups: dict[str, list[str]] = {}
    for name in sorted({name for offered in offers.values() for name in offered}):
        whole, slash, _ = name.partition("/")
        groups.setdefault(whole + slash if slash else "", []).append(name)
    return {name: node for names in groups.values() for name, node in _share_group(names, holders, offers)}


def _share_group(
    names: list[str], holders: Mapping[str, UUID], offers: Mapping[UUID, Collection[str]]
) -> Iterable[tuple[str, UUID]]:
    held = Counter(holders[name] for name in names if name in holders)
    least, more = divmod(len(names), len(offers))
    # One more than the others is for those who have the most already.
    order = sorted(offers, key=lambda node: (-held[node], node))
    room = {node: least + (place < more) for place, node in enumerate(order)}
    loose = []
    for name in names:
        holder = holders.get(name)
        if holder is not None and name in offers.get(holder, ()) and room[holder] > 0:
            room[holder] -= 1
            yield name, holder
        else:
            loose.append(name)
    for name in loose:
        node = max((node for node in order if name in offers[node]), key=room.__getitem__)
        room[node] -= 1
        yield name, node
