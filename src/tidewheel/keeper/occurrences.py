"""Makes the jobs of schedules: writes them ahead, and decides about overlap when they are due.

Occurrences are written between half a minute and a minute ahead, in one transaction with their jobs, so that a job
starts on time whatever becomes of the keeper meanwhile. Each shard of the schedules is a duty of its own. Two keepers
that do the same duty do no harm: what the second records or decides, the store finds done.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.model.duty import Agenda
from tidewheel.model.schedule import Schedule
from tidewheel.store.faults import Fault, silent
from tidewheel.store.scheduling import SHARDS, Ahead, OccurrenceStore
from tidewheel.triggers.planning import AHEAD, Plan, plan

BATCH: Final = 200
"""How many schedules are looked at in one piece."""
MOST_RECORDED: Final = 1000
"""How many occurrences are recorded in one transaction, unless one schedule has more."""
MOST_PIECES: Final = 20
"""How many pieces are done one after the other before the chore lets its duty be renewed."""
ANYWAY: Final = timedelta(minutes=1)
"""How often to look though neither the agenda nor the last look says that there is anything to do."""

RECORD_EVERY: Final = 1.0
"""Seconds between two looks for what to write ahead, at the least, unless there is more to do: there is time enough."""
DECIDE_EVERY: Final = 0.2
"""Seconds between two decisions, at the least: what becomes due in between is decided together."""

_log = logging.getLogger(__name__)


class Occurrences:
    """Looks after the schedules of one shard."""

    def __init__(
        self,
        store: OccurrenceStore,
        clock: Clock,
        shard: int,
        *,
        ahead: timedelta = AHEAD,
        fault: Fault = silent,
        turn: asyncio.Lock | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._shard = shard
        self._ahead = ahead
        self._near = ahead / 2
        self._fault = fault
        self._turn = turn or asyncio.Lock()
        self._wake_at: float | None = None
        self._decided_at = float("-inf")
        self._unplanned: dict[UUID, int] = {}
        """Versions of schedules that could not be read, planned or recorded."""

    def pause(self) -> timedelta | None:
        """Return how long it is until something is to be done, as far as the last look could tell."""
        return None if self._wake_at is None else timedelta(seconds=max(0.0, self._wake_at - self._clock.monotonic()))

    def wanted(self, agenda: Agenda) -> timedelta | None:
        """Return zero if there is something to do, as the agenda says: others make and change schedules.

        What is to come is no reason to look at the agenda: of that the duty itself knows by its last look.
        """
        fire, decision = agenda.next_fires[self._shard], agenda.next_decisions[self._shard]
        near = fire is not None and fire - self._near <= agenda.now
        return timedelta(0) if near or (decision is not None and decision <= agenda.now) else None

    async def run_once(self) -> int:
        """Do what is to be done now, in bounded pieces; return how many occurrences were recorded or decided."""
        done = 0
        for _ in range(MOST_PIECES):
            looked_at = self._clock.monotonic()
            # Those that cannot be read or planned stay where they are, and must not fill the piece.
            limit = BATCH + len(self._unplanned)
            ahead = await self._store.look_ahead(self._shard, self._near, limit=limit)
            for each in ahead.unreadable:
                self._note_unplanned(each.schedule_id, each.version, each.why)
            self._fault("looked")
            if ahead.next_decision is not None and ahead.next_decision <= ahead.now:
                self._decided_at = looked_at
                async with self._turn:
                    done += await self._store.decide_overlaps(self._shard)
                self._fault("decided")
            plans = [planned for each in ahead.schedules if (planned := self._plan(each, ahead.now)) is not None]
            for piece in _pieces(plans):
                done += await self._record(piece)
                self._fault("recorded")
            full = len(ahead.schedules) + len(ahead.unreadable) == limit
            self._wake_at = looked_at if full else self._next(ahead, plans, looked_at)
            if self.pause() != timedelta(0):
                break
        return done

    def _plan(self, schedule: Schedule, now: datetime) -> Plan | None:
        """Plan a schedule; one that cannot be read any more must not hold up the others."""
        try:
            return plan(schedule, now, now + self._ahead)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is this schedule's alone
            why = f"schedule {schedule.name!r} ({schedule.id}) cannot be planned: {error}"
            self._note_unplanned(schedule.id, schedule.version, why)
            return None

    async def _record(self, plans: Sequence[Plan]) -> int:
        """Record plans; one that the store cannot take must not hold up the others."""
        try:
            return await self._store.record_occurrences(plans)
        except Unavailable:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            if len(plans) > 1:
                return sum([await self._record([each]) for each in plans])
            schedule = plans[0].schedule
            why = f"schedule {schedule.name!r} ({schedule.id}) cannot be recorded: {error}"
            self._note_unplanned(schedule.id, schedule.version, why)
            return 0

    def _note_unplanned(self, schedule_id: UUID, version: int, why: str) -> None:
        """Tell people of a schedule that needs them, once for each of its versions."""
        if self._unplanned.get(schedule_id) != version:
            self._unplanned[schedule_id] = version
            _log.error("%s", why, extra={"schedule": str(schedule_id)})

    def _next(self, ahead: Ahead, plans: Sequence[Plan], looked_at: float) -> float | None:
        """Return when, on the own clock, there will be something to do, if anything."""
        if any(_is_behind(planned, ahead.now) for planned in plans):
            return looked_at
        fires = [ahead.next_fire_at, *(planned.next_fire_at for planned in plans)]
        writes = [(at - self._near - ahead.now).total_seconds() for at in fires if at is not None]
        decisions = [
            ahead.next_decision,
            *(
                each.occurrences[0].fire_at
                for each in plans
                if each.occurrences and each.schedule.most_alive is not None
            ),
        ]
        waits = [(at - ahead.now).total_seconds() for at in decisions if at is not None]
        instants = [
            *(looked_at + max(wait, RECORD_EVERY) for wait in writes),
            *(max(looked_at + wait, self._decided_at + DECIDE_EVERY) for wait in waits),
        ]
        return min(instants, default=None)


def duties_of(store: OccurrenceStore, clock: Clock) -> list[tuple[str, Occurrences]]:
    """Return the duty of each shard with its name.

    They decide in turn: when very many are due in one second, workers that start them come first.
    """
    turn = asyncio.Lock()
    return [(f"occurrences/{shard}", Occurrences(store, clock, shard, turn=turn)) for shard in range(SHARDS)]


def _is_behind(planned: Plan, now: datetime) -> bool:
    """Tell whether there is more to record for a schedule than one plan holds."""
    return planned.next_fire_at is not None and planned.next_fire_at <= now


def _pieces(plans: Sequence[Plan]) -> list[list[Plan]]:
    """Split plans so that no transaction is too long."""
    pieces: list[list[Plan]] = []
    room = 0
    for each in plans:
        if len(each.occurrences) > room:
            pieces.append([])
            room = MOST_RECORDED
        pieces[-1].append(each)
        room -= len(each.occurrences)
    return [piece for piece in pieces if piece]
