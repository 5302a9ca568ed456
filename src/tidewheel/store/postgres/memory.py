"""What one worker's claimer remembers between claims: a set of hints. Losing it costs time, never a job."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple
from uuid import UUID

from tidewheel.model.limit import look_time
from tidewheel.model.order import Turns
from tidewheel.model.priority import Priority
from tidewheel.store.lanes import Lane

MARK_LAG: Final = 0.05
"""Marks stay this many seconds behind the present, for submits that are about to commit."""
LOOK_BACK: Final = 2.0
LOOK_BACK_EVERY: Final = 0.25
"""Four times a second a peek begins this many seconds earlier, for submits that took longer to commit."""
SWEEP_EVERY: Final = 1.0
"""Seconds of the store's time between two looks at what lies behind the marks."""
CHEAP_SWEEP: Final = 0.01
"""Seconds."""

Pair = tuple[int, int]
"""(lane, priority)."""
_Labels = tuple[tuple[str, str], ...]
Scope = tuple[tuple[str, ...], tuple[str, ...] | None, _Labels, str | None, Priority | None, str | None]
"""Queues, kinds, labels, the tenant, the least priority and needs: who leaves some out has marks and turns apart."""


class Mark(NamedTuple):
    """Where to begin in a pair: at this instant, and of jobs of the same instant at this id."""

    run_at: datetime
    job_id: UUID


_FIRST_ID: Final = UUID(int=0)
BEGINNING: Final = Mark(datetime(1, 1, 1, tzinfo=UTC), _FIRST_ID)


class Memory:
    """What one worker's claimer remembers for one scope."""

    def __init__(self) -> None:
        self.lanes: dict[int, Lane] = {}
        self.rules: set[str] = set()
        """The names of the rules for limit keys."""
        self.overdue: set[int] = set()
        """The lanes of jobs that waited long for a limit."""
        self.look_at: int | None = None
        """When a token comes that someone waits for, in microseconds."""
        self.marks: dict[Pair, Mark] = {}
        self.turns = Turns()
        self.version = -1
        self.now = float("-inf")
        self.swept = float("-inf")
        self.sweep_took = float("inf")
        """Seconds that the last look from the very beginning took."""
        self.calm = False
        """Whether there was room left after the last claim."""
        self.moved = True
        """Whether the marks have moved on since they were published."""
        self.alive = False
        """Whether the worker was alive at the last peek."""
        self.looked_back = float("-inf")
        self.active: list[Pair] = []
        self.active_until = float("-inf")
        self.due_elsewhere: float | None = None
        self.plan: list[Pair] = []
        self.plan_until = float("-inf")
        self.guessed = False
        self.next_due: float | None = None

    @property
    def next_look(self) -> float | None:
        """When to look whether waiters may go because tokens came, in seconds."""
        return None if self.look_at is None else look_time(self.look_at) / 1e6

    def wait_for_token(self, look_at: int | None) -> bool:
        """Note that someone waits for a token that comes then; tell whether others should hear of that."""
        if look_at is None or (self.look_at is not None and self.look_at <= look_at):
            return False
        self.look_at = look_at
        return True

    def must_sweep(self, now: float) -> bool:
        """Tell whether to ask for the turn to sweep. A clock that stepped back is no reason to wait."""
        return not 0 <= now - self.swept < SWEEP_EVERY

    def can_sweep_by_peek(self, now: float) -> bool:
        """Tell whether the next peek may begin at the very beginning, which saves the sweep.

        It may if there is little else to do, and if that was found to be cheap.
        """
        return self.calm and self.must_sweep(now) and self.sweep_took < CHEAP_SWEEP

    def can_take_all(self, now: float) -> bool:
        """Tell whether the next peek may take what it sees: there will be room, and nothing else is to be done."""
        return self.calm and not self.plan and (self.can_sweep_by_peek(now) or not self.has_other_work(now))

    def has_other_work(self, now: float) -> bool:
        """Tell whether it is time to sweep, or to let those go who waited for a token."""
        return self.must_sweep(now) or self.is_token_there(now)

    def is_token_there(self, now: float) -> bool:
        """Tell whether a token has come that someone waits for."""
        return self.look_at is not None and self.look_at <= now * 1e6

    def note_time(self, now: float) -> bool:
        """Note the store's time; if it stepped back, all marks lie in the future and are forgotten."""
        stepped_back = now < self.now - MARK_LAG
        self.now = now
        if stepped_back:
            self.marks.clear()
        return stepped_back

    def look_again(self, at: float | None) -> None:
        """Note that something of what is due may be taken at that time."""
        if at is not None:
            self.next_due = at if self.next_due is None else min(at, self.next_due)

    def floors(self, pairs: list[Pair], now: float) -> list[Mark]:
        """Return from where to look in each pair: from its mark, and now and then from before it."""
        if 0 <= now - self.looked_back < LOOK_BACK_EVERY:
            return [self.marks.get(pair, BEGINNING) for pair in pairs]
        self.looked_back = now
        back = Mark(datetime.fromtimestamp(now - LOOK_BACK, UTC), _FIRST_ID)
        return [min(back, self.marks.get(pair, BEGINNING)) for pair in pairs]

    def set_marks(self, pairs: list[Pair], firsts: Mapping[int, tuple[float, bytes]], now: float) -> None:
        """Set the marks to the first job that was seen in each pair, but not into the last moments."""
        edge = now - MARK_LAG
        self.marks.update(dict.fromkeys(pairs, Mark(datetime.fromtimestamp(edge, UTC), _FIRST_ID)))
        for number, (run_at, job_id) in firsts.items():
            if run_at < edge:
                self.marks[pairs[number - 1]] = Mark(datetime.fromtimestamp(run_at, UTC), UUID(bytes=job_id))

    def advance(self, rows: Sequence[Any]) -> None:
        """Move the marks up to what was taken, but not into the last moments."""
        if not rows:
            return
        self.moved = True
        edge = Mark(rows[0]["started_at"] - timedelta(seconds=MARK_LAG), _FIRST_ID)
        places: dict[Pair, list[tuple[datetime, UUID]]] = {}
        for row in rows:
            places.setdefault((row["lane"], row["priority"]), []).append((row["run_at"], row["id"]))
        for pair, taken in places.items():
            self.marks[pair] = max(self.marks.get(pair, BEGINNING), min(Mark(*max(taken)), edge))

    def fall_back(self, firsts: Mapping[Pair, Mark]) -> bool:
        """Move the marks back to where jobs were found behind them; tell whether there were any."""
        late = {pair: first for pair, first in firsts.items() if first < self.marks.get(pair, BEGINNING)}
        self.marks |= late
        return bool(late)
