"""What there is to be done, and how often."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from typing import Final, NamedTuple

from tidewheel.clock import Clock
from tidewheel.keeper.reaper import Reaper
from tidewheel.model.states import State
from tidewheel.store.base import Store

KEEP: Final[Mapping[State, timedelta]] = {
    State.SUCCEEDED: timedelta(days=7),
    State.DEAD: timedelta(days=30),
    State.CANCELLED: timedelta(days=30),
    State.EXPIRED: timedelta(days=30),
    State.DROPPED: timedelta(days=30),
    State.SKIPPED: timedelta(days=30),
}
"""How long finished jobs are kept, from the first day on."""


MOST_PIECES: Final = 50
"""How many pieces are unblocked one after the other before the chore lets its duty be renewed."""


class Chore(NamedTuple):
    """One thing that is done again and again."""

    name: str
    every: timedelta
    run_once: Callable[[], Awaitable[int]]
    """Does a bounded piece and returns how much there was."""


def chores_of(store: Store, clock: Clock) -> list[Chore]:
    """Return all chores of a store."""

    async def census() -> int:
        await store.take_census()
        return 0  # nothing that anyone would want to read of

    async def unblock() -> int:
        told = 0
        for _ in range(MOST_PIECES):
            piece = await store.unblock()
            told += piece
            if not piece:
                break
        return told

    return [
        Chore("reaper", timedelta(seconds=1), Reaper(store, clock).run_once),
        Chore("expiry", timedelta(milliseconds=500), store.expire),
        Chore("dropping", timedelta(seconds=1), store.drop_gated),
        Chore("unblocking", timedelta(milliseconds=500), unblock),
        Chore("blocked", timedelta(seconds=30), store.recheck_blocked),
        Chore("census", timedelta(seconds=10), census),
        Chore("limits", timedelta(seconds=30), store.repair_limits),
        Chore("unused limits", timedelta(minutes=1), store.forget_unused_limits),
        Chore("days", timedelta(hours=1), store.prepare_days),
        Chore("retention", timedelta(minutes=10), lambda: store.retire(KEEP)),
    ]
