"""Limit keys: who may start, who must wait, and whom to let go when there is room or tokens came.

Whoever decides holds the locks of the limits, taken in the order of their keys, and looks for waiters in a statement
that begins after that: so whoever began to wait before is seen.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from tidewheel.model.cap import is_cap_key
from tidewheel.model.limit import (
    Release,
    Standing,
    admit,
    changed_by,
    in_turn,
    release_by_end,
    release_by_refill,
    release_by_room,
    rule_of,
)
from tidewheel.model.order import AGING
from tidewheel.store.postgres.connection import SQL, Connection

Slot = tuple[int, str]
"""A tenant's number and the name of one of its keys."""

KEY_MARK: Final = "\x1f"
"""Between the names of keys that come as one text; no key may contain it."""
_ALL: Final = 1_000_000
"""Without a limit any more, all may go."""
_LOOKS: Final = 1000


class Admitted(NamedTuple):
    """What became of picked jobs."""

    rows: list[Any]
    """Those that were started."""
    others_may_go: bool
    """Whether waiters of other keys were let go instead of those that found no room."""
    look_at: int | None
    """When the first token comes that one of the others now waits for."""
    waits: frozenset[int] = frozenset()
    """The lanes of those that found no room."""


NONE_ADMITTED: Final = Admitted([], others_may_go=False, look_at=None)


class Locked(NamedTuple):
    """Limits under their locks, and the time."""

    standings: dict[Slot, Standing]
    now: int


async def admit_picked(
    connection: Connection, worker_id: UUID, picked: Sequence[Any], rules: Collection[str], overdue: Collection[int]
) -> Admitted:
    """Start the picked jobs whose limit keys have room; the others wait for the first key that has none.

    Those in lanes of the overdue waited long for a limit, and come first if it is their turn.
    """
    rows = sorted(picked, key=start_order)
    slots: dict[tuple[int, str], list[Slot]] = {}
    candidates = []
    for row in rows:
        named = (row["tenant"], row["names"])
        if named not in slots:
            slots[named] = [(named[0], key) for key in named[1].split(KEY_MARK) if not is_cap_key(key)]
        candidates.append(slots[named])
    standings, now = await lock(connection, {slot for each in slots.values() for slot in each}, rules)
    old = [index for index, row in enumerate(rows) if row["lane"] in overdue]
    old.sort(key=lambda index: rows[index]["stood_at"])
    order = in_turn(candidates, old, standings, now) if old else None
    admission = admit(candidates, {slot: standing.room(now) for slot, standing in standings.items()}, order)
    refused = admission.refused
    started_old = Counter(slot for index in set(old).difference(refused) for slot in candidates[index])
    changed = changed_by(standings, admission.taken, refused.values(), now, started_old)
    started = [rows[index] for index in admission.admitted]
    # These first: a row that is still queued would be turned away with the others.
    claimed_at = rows[0]["started_at"] if rows else None
    ids = [row["id"] for row in started]
    await connection.execute(SQL["start_picked"], worker_id, ids, claimed_at, *_columns(changed))
    looks = [standing.look_at for standing in changed.values() if standing.look_at is not None]
    if not refused:
        return Admitted(started, others_may_go=False, look_at=None)
    ids = [rows[index]["id"] for index in refused]
    await connection.execute(SQL["make_limited"], ids, [key for _, key in refused.values()])
    await _turn_away(connection, [rows[index] for index in refused], set(refused.values()))
    # What a refused job left free under its other keys goes to whoever waits for these.
    others = {slot for index in refused for slot in candidates[index]} - set(refused.values())
    plans = {
        slot: release_by_room(changed.get(slot, standings[slot]), now) if slot in standings else None for slot in others
    }
    waits = frozenset(rows[index]["lane"] for index in refused)
    return Admitted(started, bool(await _carry_out(connection, plans)), min(looks, default=None), waits)


async def free(connection: Connection, held: Mapping[Slot, int]) -> int:
    """Note that runs that held keys have ended, let as many waiters go as there is room for, and tell how many."""
    if not held:
        return 0
    standings, now = await lock(connection, held)
    plans: dict[Slot, Release | None] = {}
    for slot, number in held.items():
        standing = standings.get(slot)
        if standing is None:
            plans[slot] = None
        else:
            left = replace(standing, running=max(0, standing.running - number))
            plans[slot] = release_by_end(left, number, now)
    return await _carry_out(connection, plans)


async def let_go(connection: Connection, slots: Collection[Slot]) -> int:
    """Let as many waiters of each key back into the queue as it has room for; all, if it has no limit."""
    if not slots:
        return 0
    standings, now = await lock(connection, slots)
    plans = {slot: release_by_room(standings[slot], now) if slot in standings else None for slot in slots}
    return await _carry_out(connection, plans)


async def refill(connection: Connection) -> int:
    """Let those go for whom tokens came, and tell how many; keys that someone else looks at are left to them."""
    standings, now = _locked(await connection.fetch(SQL["lock_due_looks"], _LOOKS))
    plans: dict[Slot, Release | None] = {slot: release_by_refill(standing, now) for slot, standing in standings.items()}
    return await _carry_out(connection, plans)


async def lock(connection: Connection, slots: Collection[Slot], rules: Collection[str] = ()) -> Locked:
    """Lock the limits of some keys; those of keys that follow one of the rules are made as needed."""
    ordered = sorted(slots)
    names = [slot[0] for slot in ordered], [slot[1] for slot in ordered]
    locked = _locked(await connection.fetch(SQL["lock_limits"], *names))
    new = [slot for slot in ordered if slot not in locked.standings and rule_of(slot[1]) in rules] if rules else []
    if not new:
        return locked
    await make_limits(connection, new)
    return _locked(await connection.fetch(SQL["lock_limits"], *names))


async def make_limits(connection: Connection, slots: Sequence[Slot]) -> None:
    """Make the limits of keys by the rules that hold for them, if there are such."""
    columns = [slot[0] for slot in slots], [slot[1] for slot in slots], [rule_of(slot[1]) for slot in slots]
    await connection.execute(SQL["make_limits"], *columns)


def start_order(row: Any) -> tuple[int, datetime, UUID]:
    """Return what orders jobs that are to be started."""
    return row["priority"], row["run_at"], row["id"]


def standing_of(row: Sequence[Any]) -> Standing:
    """Build a standing from its columns."""
    return Standing(*row)


def _locked(rows: Sequence[Any]) -> Locked:
    return Locked({(row[0], row[1]): standing_of(row[3:]) for row in rows}, rows[0][2] if rows else 0)


async def _carry_out(connection: Connection, plans: Mapping[Slot, Release | None]) -> int:
    """Let waiters go as planned, write how the limits stand, and tell how many went; None stands for no limit."""
    if not plans:
        return 0
    standings = {slot: plan.then for slot, plan in plans.items() if plan is not None}
    rooms = {slot: _ALL if plan is None else plan.number for slot, plan in plans.items()}
    rooms = {slot: room for slot, room in rooms.items() if room}
    if not rooms:
        await connection.execute(SQL["set_limit_standings"], *_columns(standings))
        return 0
    named = list(rooms)
    released = await connection.fetch(
        SQL["release_waiters"],
        [slot[0] for slot in named],
        [slot[1] for slot in named],
        list(rooms.values()),
        [plan.by_age if (plan := plans[slot]) is not None else 0 for slot in named],
        AGING,
        *_columns(standings),
    )
    gone = {named[row[0] - 1] for row in released}
    idle = {
        slot: plan.outcome(0)
        for slot, plan in plans.items()
        if plan is not None and plan.number and slot not in gone and plan.then.look_at is not None
    }
    if idle:
        await connection.execute(SQL["set_limit_standings"], *_columns(idle))
    return len(released)


async def _turn_away(connection: Connection, refused: Sequence[Any], full: set[Slot]) -> None:
    """Let what comes next in the lanes of refused jobs wait for the same full keys, so that it hides nothing else."""
    for tenant in {tenant for tenant, _ in full}:
        pairs = list({(row["lane"], row["priority"]) for row in refused if row["tenant"] == tenant})
        keys = [key for owner, key in full if owner == tenant]
        await connection.execute(SQL["turn_away"], [lane for lane, _ in pairs], [level for _, level in pairs], keys)


def _columns(standings: Mapping[Slot, Standing]) -> tuple[list[Any], ...]:
    now = list(standings.values())
    return (
        [slot[0] for slot in standings],
        [slot[1] for slot in standings],
        [standing.running for standing in now],
        [standing.tokens for standing in now],
        [standing.filled_at for standing in now],
        [standing.look_at for standing in now],
        [standing.passed for standing in now],
    )
