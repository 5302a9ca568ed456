"""What there is to be done, and how often."""

from collections.abc import Awaitable, Callable
from datetime import timedelta
from functools import partial
from typing import Final, NamedTuple

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock
from tidewheel.errors import NotFound
from tidewheel.keeper.alerts import Watch
from tidewheel.keeper.artifacts import Gravedigger
from tidewheel.keeper.notices import Postman
from tidewheel.keeper.occurrences import ANYWAY, duties_of
from tidewheel.keeper.outputs import Collector
from tidewheel.keeper.reaper import Reaper
from tidewheel.model.duty import Agenda
from tidewheel.model.retention import Upkeep
from tidewheel.notify import AddressGuard, Sender
from tidewheel.store.base import Store

MOST_PIECES: Final = 50
"""How many pieces are done one after the other before the chore lets others look whether it is still wanted."""
_NOW: Final = timedelta(0)
_UPKEEP: Final = Upkeep()


def _usual() -> timedelta | None:
    return None


async def _nothing_to_stop(_patience: float = 0.0) -> None:
    pass


class Chore(NamedTuple):
    """One thing that is done again and again."""

    name: str
    """With a slash it is a part (`name/0`, `name/1`, …) of a chore that several nodes share."""
    every: timedelta
    run_once: Callable[[], Awaitable[int]]
    """Does a bounded piece and returns how much there was."""
    pause: Callable[[], timedelta | None] = _usual
    """Asked after each run: how long nothing will be due, if that is known and shorter than `every`."""
    wanted: Callable[[Agenda], timedelta | None] | None = None
    """In how long there is something to do, as the agenda says, or None; a chore with this waits to be wanted and is
    done `every` so often all the same."""
    stop: Callable[[float], Awaitable[None]] = _nothing_to_stop
    """Ends what a run may have left under way, after so many seconds of patience."""


def chores_of(store: Store, clock: Clock, upkeep: Upkeep = _UPKEEP, blobs: Blobs | None = None) -> list[Chore]:
    """Return all chores of a store, and of the place for large things that belongs to it."""

    async def census() -> int:
        await store.take_census()
        return 0  # nothing that anyone would want to read of

    async def age() -> int:
        return 0 if upkeep.max_age is None else await store.expire_old(upkeep.max_age)

    reaper = Reaper(store, clock)
    minute = timedelta(minutes=1)
    return [
        Chore("reaper", minute, reaper.run_once, wanted=lambda seen: _NOW if seen.lapsed or reaper.watches else None),
        Chore("expiry", minute, partial(_in_pieces, store.expire), wanted=_until_a_deadline),
        Chore(
            "dropping",
            minute,
            partial(_in_pieces, store.drop_gated),
            wanted=lambda seen: _NOW if seen.dropping else None,
        ),
        Chore("gates", minute, store.tend_gates, wanted=_until_a_gate_moves),
        Chore(
            "unblocking", minute, partial(_in_pieces, store.unblock), wanted=lambda seen: _NOW if seen.telling else None
        ),
        Chore("blocked", timedelta(seconds=30), store.recheck_blocked),
        Chore("census", timedelta(seconds=10), census),
        Chore("limits", timedelta(seconds=30), store.repair_limits),
        Chore("unused-limits", timedelta(minutes=1), store.forget_unused_limits),
        Chore("days", timedelta(hours=1), store.prepare_days),
        Chore("age", minute, age),
        Chore("retention", timedelta(minutes=10), lambda: store.retire(upkeep.keep, kinds=upkeep.kinds)),
        _clearing("old-occurrences", timedelta(minutes=10), store.retire_occurrences),
        *(Chore(name, ANYWAY, duty.run_once, duty.pause, duty.wanted) for name, duty in duties_of(store, clock)),
        _clearing("statistics", timedelta(seconds=10), store.fold_statistics),
        _clearing("log-words", timedelta(seconds=5), store.index_logs),
        *_telling(store, clock, upkeep),
        _clearing("audit", timedelta(hours=1), store.retire_audit),
        *([] if blobs is None else _tidying(store, clock, blobs)),
    ]


def _tidying(store: Store, clock: Clock, blobs: Blobs) -> list[Chore]:
    """Return the chores that remove large things which nobody needs any more."""
    return [
        Chore("artifacts", timedelta(hours=1), Gravedigger(store, blobs, clock).run_once),
        Chore("outputs", timedelta(minutes=10), Collector(store, blobs, clock).run_once),
    ]


def _telling(store: Store, clock: Clock, upkeep: Upkeep) -> list[Chore]:
    """Return the chores that tell people what happens."""
    postman = Postman(store, Sender(AddressGuard(upkeep.notify_private), clock), clock)
    hour = timedelta(hours=1)
    return [
        Chore("notifications", timedelta(minutes=1), postman.run_once, wanted=_until_a_message, stop=postman.stop),
        Chore(
            "lateness",
            timedelta(minutes=1),
            partial(_in_pieces, store.notice_late),
            wanted=lambda seen: _NOW if seen.awaited else None,
        ),
        Chore("alerts", timedelta(seconds=30), Watch(store, upkeep.bounds).run_once),
        _clearing("old-alerts", hour, store.retire_alerts),
        _clearing("old-deliveries", hour, store.retire_deliveries),
    ]


class Clearing:
    """A chore that takes away what is old: if there is more than is taken in one go, the next follows at once."""

    def __init__(self, take_some: Callable[[], Awaitable[int]]) -> None:
        self._take_some = take_some
        self._last = 0

    async def run_once(self) -> int:
        """Take away piece after piece until there is nothing left, or for now enough."""
        return await _in_pieces(self._take_and_note)

    def pause(self) -> timedelta | None:
        """Return nothing to wait for, if there was something left."""
        return _NOW if self._last else None

    async def _take_and_note(self) -> int:
        self._last = 0  # should it fail, that is no reason to hurry
        self._last = await self._take_some()
        return self._last


def _clearing(name: str, every: timedelta, take_some: Callable[[], Awaitable[int]]) -> Chore:
    clearing = Clearing(take_some)
    return Chore(name, every, clearing.run_once, clearing.pause)


def chore_named(chores: list[Chore], name: str) -> Chore:
    """Return one of the chores. Raises NotFound."""
    for chore in chores:
        if chore.name == name:
            return chore
    raise NotFound("chore", name)


async def _in_pieces(do_piece: Callable[[], Awaitable[int]]) -> int:
    """Do piece after piece until there is nothing left, or for now enough."""
    done = 0
    for _ in range(MOST_PIECES):
        piece = await do_piece()
        done += piece
        if not piece:
            break
    return done


def _until_a_deadline(agenda: Agenda) -> timedelta | None:
    return None if agenda.next_start_by is None else agenda.next_start_by - agenda.now


def _until_a_message(agenda: Agenda) -> timedelta | None:
    if agenda.happened:
        return _NOW
    return None if agenda.next_delivery is None else agenda.next_delivery - agenda.now


def _until_a_gate_moves(agenda: Agenda) -> timedelta | None:
    if agenda.stopping:
        return _NOW
    return None if agenda.next_opening is None else agenda.next_opening - agenda.now
