"""What the writer remembers of lanes, gates and tenants, and which (lane, priority) pairs have queued jobs.

The memory is exact for what this process writes. When another process has written, SQLite's data version tells, and the
parts that may have changed are read again; after a rollback everything is.
"""

from collections.abc import Iterable
from itertools import count
from typing import Any, Final

import apsw
import msgspec

from tidewheel.model.cap import QueueCap
from tidewheel.model.gate import Gate, GateMode, flag_of
from tidewheel.model.limit import LimitRule, rule_from
from tidewheel.model.priority import Priority
from tidewheel.model.resources import needs_text, parse_needs_text
from tidewheel.model.submission import LaneKey
from tidewheel.store.base import ClaimRequest
from tidewheel.store.lanes import Lane, can_run, gating_of
from tidewheel.store.sqlite.connection import SQL, rows, value
from tidewheel.store.sqlite.values import id_of, instant, some

First = tuple[int, int]
"""The `run_at` of the first queued job of a pair, and what tells it from others of the same instant."""
UNKNOWN: Final[First] = (0, 0)
"""Stands for the first job of a pair that must be looked at."""
NEVER: Final = 1 << 62
_LATER: Final = 1 << 48
"""Jobs that were added since the last look come after all rows that were seen."""
_MOST_REMEMBERED: Final = 64

_pairs: Final = msgspec.json.Decoder(list[tuple[int, int, int]]).decode


def pair_of(lane: int, priority: int) -> int:
    """Return the number that stands for a (lane, priority) in statements."""
    return lane << 2 | priority


def is_new(first: First) -> bool:
    """Tell whether a first job was added since the last look, so that its place among its equals is not known."""
    return first[1] >= _LATER


class Lanes:
    """Lanes, and the pairs of them that have queued jobs."""

    def __init__(self) -> None:
        self.by_id: dict[int, Lane] = {}
        self.gates: list[Gate] = []
        self.any_slow = False
        """Whether some lane lies behind a slow gate."""
        self.overdue: set[int] = set()
        """The lanes of jobs that waited long for a limit."""
        self.first: list[dict[int, First]] = []
        """For each priority: pair → its first queued job. Pairs without queued jobs may be missing."""
        self.soonest = NEVER
        """The earliest `run_at` of what was marked since someone looked."""
        self.rules: set[str] = set()
        """The names of the rules about how many run at once or start in a time."""
        self.caps: dict[tuple[str, str], QueueCap] = {}
        """The caps, by tenant and queue."""
        self.cap_rules: dict[str, LimitRule] = {}
        """The rules that cap what waits with a key."""
        self.refill_at = NEVER
        """When tokens come for someone who waits for them, or before that."""
        self._added = count(_LATER)
        self._ids: dict[LaneKey, int] = {}
        self._keys: dict[int, LaneKey] = {}
        self._tenants: dict[str, tuple[int, float]] = {}
        self._served: dict[object, dict[int, Lane]] = {}
        self._version = -1
        self._current = False

    def doubt(self) -> None:
        """Note that another process has written something."""
        self._current = False

    def forget(self) -> None:
        """Note that nothing remembered can be relied on, for it may never have been committed."""
        self._version = -1
        self._current = False

    def catch_up(self, connection: apsw.Connection) -> None:
        """Read again what may have changed."""
        if self._current:
            return
        ((_, version, _, look_at),) = rows(connection, "meta", {})
        self.look_again_at(look_at)
        if version != self._version:
            self._version = version
            self.read(connection)
        self.first = [{} for _ in Priority]
        for pair, run_at, place in _pairs(value(connection, "active_pairs", {})):
            self.first[pair & 3][pair] = (run_at, place)
        self._current = True

    def mark(self, pair: int, run_at: int) -> None:
        """Note that a pair got a queued job."""
        self.soonest = min(self.soonest, run_at)
        level = self.first[pair & 3]
        first = level.get(pair)
        if first is None or first[0] > run_at:
            level[pair] = (run_at, next(self._added))

    def look_at(self, instant: int) -> None:
        """Note that someone waits for a token that comes then."""
        if instant < self.refill_at:
            self.refill_at = instant
            self.soonest = min(self.soonest, instant)

    def look_again_at(self, instant: int | None) -> None:
        """Note when the next token comes for which someone waits; None if nobody does."""
        self.refill_at = NEVER if instant is None else instant

    def mistrust(self, pairs: Iterable[int]) -> None:
        """Note that the first jobs of pairs may be others now."""
        for pair in pairs:
            self.first[pair & 3][pair] = UNKNOWN

    def waiting_for(self, request: ClaimRequest, priority: Priority) -> list[int]:
        """Return the pairs of a priority with queued jobs, due or not, that a worker may and can run now."""
        needs = None if request.needs is None else needs_text(request.needs)
        key = (request.queues, request.kinds, needs, request.tenant, *sorted(request.labels.items()))
        served = self._served.get(key)
        if served is None:
            if len(self._served) >= _MOST_REMEMBERED:
                self._served.clear()
            # Whether needs fit is asked anew each time: what is free changes with every claim.
            anywhere = msgspec.structs.replace(request, free=None)
            served = {number: lane for number, lane in self.by_id.items() if can_run(lane, anywhere)}
            self._served[key] = served
        return [
            pair
            for pair in self.first[priority]
            if (lane := served.get(pair >> 2)) is not None and (lane.needs is None or can_run(lane, request))
        ]

    def tenant(self, connection: apsw.Connection, name: str) -> int:
        """Return the number of a tenant, adding it if it is new."""
        if name not in self._tenants:
            self._tenants[name] = (value(connection, "add_tenant", {"name": name}), 1.0)
            self.changed(connection)
        return self._tenants[name][0]

    def known_tenant(self, name: str) -> int | None:
        """Return the number of a tenant, if there is such."""
        return self._tenants.get(name, (None, 0.0))[0]

    def intern(self, connection: apsw.Connection, key: LaneKey) -> Lane:
        """Return a lane, adding it if it is new."""
        number = self._ids.get(key)
        return self._add(connection, key) if number is None else self.by_id[number]

    def like(
        self, connection: apsw.Connection, lane: int, *, retried: bool | None = None, overdue: bool = False
    ) -> int:
        """Return the lane for retries or for first attempts, as told, that is like another in all else."""
        key = self._keys[lane]
        return self.intern(
            connection, key._replace(retried=key.retried if retried is None else retried, overdue=overdue)
        ).id

    def changed(self, connection: apsw.Connection) -> None:
        """Tell the other processes that tenants, lanes or gates have changed."""
        connection.execute(SQL["lanes_changed"])
        self._version += 1

    def read(self, connection: apsw.Connection) -> None:
        """Read tenants, lanes and gates anew."""
        tenants = rows(connection, "tenants", {})
        names = {number: name for number, name, _ in tenants}
        self._tenants = {name: (number, weight) for number, name, weight in tenants}
        self.gates = [gate_of(row) for row in rows(connection, "gates", {})]
        caps = (QueueCap(*row) for row in rows(connection, "caps", {"tenant": None}))
        self.caps = {(cap.tenant, cap.queue): cap for cap in caps}
        rules = [rule_from(row) for row in rows(connection, "limit_rules", {})]
        self.rules = {rule.name for rule in rules if rule.waiting is None}
        self.cap_rules = {rule.name: rule for rule in rules if rule.waiting is not None}
        self.by_id, self._ids, self._keys, self.any_slow, self.overdue = {}, {}, {}, False, set()
        for number, tenant, queue, kind, needs, *flags, gate in rows(connection, "lanes", {}):
            self._keep(number, LaneKey(names[tenant], queue, kind, needs, *map(bool, flags)), gate)
        self._served.clear()

    def _add(self, connection: apsw.Connection, key: LaneKey) -> Lane:
        flag = flag_of(self.gates, kind=key.kind, queue=key.queue, tenant=key.tenant)
        values = {**key._asdict(), "tenant": self.tenant(connection, key.tenant), "gate": flag}
        number = value(connection, "add_lane", values)
        self.changed(connection)
        self._served.clear()
        return self._keep(number, key, flag)

    def _keep(self, number: int, key: LaneKey, gate: str) -> Lane:
        tenant, weight = self._tenants[key.tenant]
        needs = parse_needs_text(key.needs) if key.needs else None
        gating = gating_of(gate, self.gates, kind=key.kind, queue=key.queue, tenant=key.tenant)
        flags = key.retried, key.overdue
        lane = Lane(number, tenant, key.tenant, weight, key.queue, key.kind, needs, key.keyed, *gating, *flags)
        self.any_slow = self.any_slow or bool(lane.slowed_by)
        if lane.overdue:
            self.overdue.add(number)
        self.by_id[number] = lane
        self._ids[key] = number
        self._keys[number] = key
        return lane


def gate_of(row: Any) -> Gate:
    """Build a gate from its row."""
    number, mode, kind, queue, tenant, reason, author, created_at, rate, ready_at, expires_at, stop_running = row
    return Gate(
        id=id_of(number),
        mode=GateMode(mode),
        kind=kind,
        queue=queue,
        tenant=tenant,
        reason=reason,
        author=author,
        created_at=instant(created_at),
        rate=rate,
        ready_at=None if rate is None else instant(ready_at),
        expires_at=some(instant, expires_at),
        stop_running=bool(stop_running),
    )
