"""Limits: how many jobs that share a key may run at once, how many may start in a time, and how many may wait."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.bucket import Level
from tidewheel.model.cap import CAP_MARK, KeyCap, Overflow, check_waiting, is_cap_key
from tidewheel.model.checks import check_key, check_name, shown
from tidewheel.model.order import passed_over, turns_by_age
from tidewheel.model.rate import Pace, check_pace, next_token

Key = TypeVar("Key", bound=Hashable)

VALUE_MARK: Final = "="
"""Between the name of a rule and the value that tells one of its keys from another: `account=17`."""
MOST_WAITING: Final = 10_000
"""How many who wait for a limit are counted."""
MOST_HOLDERS: Final = 5
"""How many who hold one are named."""
MOST: Final = 2**31 - 1
"""More never run at once, and a larger number fits in no column."""
LOOK_STEP: Final = 10_000
"""Microseconds to which the time of a look is rounded up, so that many keys are looked at together."""


class Limit(msgspec.Struct, frozen=True):
    """A cap on the jobs of one key: how many run at once, how many start in a time, or both."""

    tenant: str
    key: str
    most: int | None
    running: int = 0
    rate: Pace | None = None
    tokens: int | None = None
    """How many may start at once by the rate."""
    rule: str | None = None
    """The rule that it follows; None if it was set for itself."""


class LimitUse(msgspec.Struct, frozen=True):
    """Who uses a limit now."""

    tenant: str
    key: str
    waiting: int
    """How many wait for it; no more than `MOST_WAITING` are counted."""
    holders: list[UUID]
    """Jobs that run under it, no more than `MOST_HOLDERS`, oldest first."""


class LimitRule(msgspec.Struct, frozen=True):
    """What holds for the key of its name, and for every key `name=value`, each for itself and for each tenant."""

    name: str
    most: int | None = None
    rate: Pace | None = None
    by_hand: bool = False
    """Whether an operator set it, which counts for more than what tasks declare."""
    waiting: int | None = None
    """How many jobs may wait with each key; only for names that begin with `cap:`, which have nothing else."""
    overflow: Overflow = "reject"
    """What happens to one too many of these."""

    def cap_of(self, tenant: str, key: str) -> KeyCap:
        """Return the cap of one of its keys."""
        return KeyCap(tenant, key, self.waiting or 0, self.overflow)


def check_bounds(most: int | None, rate: Pace | None) -> None:
    """Refuse limits that would stop everything for ever, or nothing."""
    if most is None and rate is None:
        raise Invalid("most", "must be given, or a rate, or both")
    if most is not None:
        _check_most(most)
    if rate is not None:
        check_pace(rate)


def _check_most(most: object) -> None:
    if type(most) is not int:
        raise Invalid("most", f"must be a whole number, not {shown(most)}")
    if abs(most) > MOST:
        raise Invalid("most", f"must be between 1 and {MOST}")
    if most < 1:
        raise Invalid("most", f"must be at least 1, not {most}; close a gate to stop a kind")


def check_limit(key: str, most: int | None, rate: Pace | None = None) -> None:
    """Refuse a limit that cannot be."""
    check_key("key", key)
    if is_cap_key(key):
        raise Invalid("key", f"{key!r} begins with {CAP_MARK} and counts jobs that wait; set a rule for it")
    check_bounds(most, rate)


def check_rule(rule: LimitRule) -> LimitRule:
    """Refuse a rule that cannot be."""
    check_name("name", rule.name)
    if not is_cap_key(rule.name):
        if rule.waiting is not None:
            raise Invalid("name", f"must begin with {CAP_MARK} for a cap on what waits, not be {rule.name!r}")
        check_bounds(rule.most, rule.rate)
    elif rule.most is not None or rule.rate is not None:
        raise Invalid("name", f"{rule.name!r} begins with {CAP_MARK} and can only have a cap on what waits")
    else:
        check_waiting("waiting", rule.waiting, rule.overflow)
    return rule


def by_hand(rule: LimitRule) -> LimitRule:
    """Return a rule as an operator sets it."""
    return msgspec.structs.replace(rule, by_hand=True)


def check_declared(rules: Iterable[LimitRule]) -> list[LimitRule]:
    """Return rules as tasks declare them; one that is declared twice must be declared alike."""
    declared: dict[str, LimitRule] = {}
    for rule in rules:
        plain = msgspec.structs.replace(check_rule(rule), by_hand=False)
        if declared.setdefault(rule.name, plain) != plain:
            raise Invalid("name", f"the limit {rule.name!r} is declared twice, and differently")
    return list(declared.values())


def rule_of(key: str) -> str:
    """Return the name of the rule that a key would follow."""
    return key.partition(VALUE_MARK)[0]


class Standing(msgspec.Struct, frozen=True, array_like=True):
    """A limit as the store has it. Instants are microseconds."""

    most: int | None
    running: int
    starts: int | None
    seconds: int | None
    burst: int | None
    tokens: float | None
    filled_at: int | None
    look_at: int | None
    """When to see whether waiters may go because tokens came; None if nobody waits for tokens."""
    passed: int = 0
    """How many started by their priority since one had its turn by age."""

    @property
    def pace(self) -> Pace | None:
        if self.starts is None or self.seconds is None or self.burst is None:
            return None
        return Pace(self.starts, self.seconds, self.burst)

    def level(self, pace: Pace, now: int) -> Level[int]:
        """Return how full its bucket is now; a new one is full."""
        if self.tokens is None or self.filled_at is None:
            return pace.bucket.full(now)
        return pace.bucket.filled(Level(self.tokens, self.filled_at), now)

    def room(self, now: int) -> int:
        """Return how many more may start now."""
        slots = None if self.most is None else self.most - self.running
        if self.starts is None or (pace := self.pace) is None:
            return slots or 0
        tokens = self.level(pace, now).whole()
        return tokens if slots is None else min(slots, tokens)

    def gained(self, now: int) -> int:
        """Return how many tokens came since the look was agreed on: so many may be let go for them, and no more."""
        pace = self.pace
        if pace is None or self.look_at is None or now < self.look_at:
            return 0
        return 1 + int((now - self.look_at) / pace.bucket.interval)

    def started(self, number: int, now: int, overdue: int = 0) -> "Standing":
        """Return it after some more have started, of which some were overdue."""
        after = msgspec.structs.replace(
            self, running=self.running + number, passed=passed_over(self.passed, number, overdue)
        )
        if (pace := self.pace) is None:
            return after
        left = self.level(pace, now).after(number)
        return msgspec.structs.replace(after, tokens=max(0.0, left.tokens), filled_at=left.at)

    def awaited(self, now: int) -> "Standing":
        """Return it with the time of the next look, for someone waits who may go when a token comes."""
        pace = self.pace
        if pace is None or (self.most is not None and self.running >= self.most):
            return self if self.look_at is None else msgspec.structs.replace(self, look_at=None)
        level = self.level(pace, now)
        look_at = next_token(level, pace)
        if self.look_at is not None and now < self.look_at:
            look_at = min(look_at, self.look_at)
        return msgspec.structs.replace(self, tokens=level.tokens, filled_at=level.at, look_at=look_at)


def limit_of(row: Sequence[Any], now: int) -> Limit:
    """Build a limit from (tenant, key, rule, …standing)."""
    tenant, key, rule, *rest = row
    standing = Standing(*rest)
    pace = standing.pace
    tokens = None if pace is None else standing.level(pace, now).whole()
    return Limit(tenant, key, standing.most, standing.running, pace, tokens, rule)


def rule_from(row: Iterable[Any]) -> LimitRule:
    """Build a rule from (name, most, starts, seconds, burst, by_hand, waiting, overflow)."""
    name, most, starts, seconds, burst, by_hand, waiting, overflow = row
    rate = None if starts is None else Pace(starts, seconds, burst)
    return LimitRule(name, most, rate, bool(by_hand), waiting, overflow)


class Release(NamedTuple):
    """How many waiters of a key may go, and how its limit stands afterwards if some do."""

    number: int
    then: Standing

    @property
    def by_age(self) -> int:
        """How many of them are the oldest, whatever their priority, if they are old enough."""
        return turns_by_age(self.then.passed, self.number)

    def outcome(self, released: int) -> Standing:
        """Return how the limit stands after so many have gone; if none did, nobody waits."""
        return msgspec.structs.replace(self.then, look_at=None) if self.number and not released else self.then


def release_by_room(standing: Standing, now: int) -> Release:
    """Return how many may go because there is room."""
    return Release(max(0, standing.room(now)), standing.awaited(now))


def release_by_end(standing: Standing, ended: int, now: int) -> Release:
    """Return how many may go because some runs ended. An end gives no token back, so by a rate alone nobody may."""
    if standing.starts is None:
        return Release(max(0, standing.room(now)), standing)
    if standing.most is None:
        return Release(0, standing)
    return Release(max(0, min(standing.room(now), ended)), standing.awaited(now))


def release_by_refill(standing: Standing, now: int) -> Release:
    """Return how many may go because tokens came."""
    return Release(max(0, min(standing.room(now), standing.gained(now))), standing.awaited(now))


def look_time(look_at: int) -> int:
    """Return when to wake up for a look."""
    return -(-look_at // LOOK_STEP) * LOOK_STEP


class Admission(msgspec.Struct, Generic[Key], frozen=True):
    """Which of the candidates may run, and for the others the key that they now wait for."""

    admitted: tuple[int, ...]
    refused: Mapping[int, Key]
    taken: Mapping[Key, int]


def in_turn(
    candidates: Sequence[Sequence[Key]], overdue: Sequence[int], standings: Mapping[Key, Standing], now: int
) -> list[int]:
    """Return the order in which candidates are given room: the given one, but first those whose turn by age it is.

    `overdue` are the numbers of those that waited long, oldest first.
    """
    turns: dict[Key, int] = {}
    first: dict[int, None] = {}
    for index in overdue:
        keys = [key for key in candidates[index] if key in standings]
        for key in keys:
            turns.setdefault(key, turns_by_age(standings[key].passed, max(0, standings[key].room(now))))
        if any(turns[key] > 0 for key in keys):
            first[index] = None
            for key in keys:
                turns[key] -= 1
    return [*first, *(index for index in range(len(candidates)) if index not in first)]


def admit(
    candidates: Sequence[Sequence[Key]], free: Mapping[Key, int], order: Iterable[int] | None = None
) -> Admission[Key]:
    """Decide in order which candidates start; each takes all of its keys or none.

    `candidates` are the keys of each job, best first unless another order is given; `free` is the room under each key
    that has a limit. Keys without a limit ask for nothing.
    """
    left = dict(free)
    admitted: list[int] = []
    refused: dict[int, Key] = {}
    for index in range(len(candidates)) if order is None else order:
        keys = candidates[index]
        for key in keys:
            if left.get(key, 1) <= 0:
                refused[index] = key
                break
        else:
            for key in keys:
                if key in left:
                    left[key] -= 1
            admitted.append(index)
    taken = {key: free[key] - room for key, room in left.items() if room != free[key]}
    return Admission(tuple(admitted), refused, taken)


def changed_by(
    standings: Mapping[Key, Standing],
    taken: Mapping[Key, int],
    full: Iterable[Key],
    now: int,
    overdue: Mapping[Key, int],
) -> dict[Key, Standing]:
    """Return how limits stand after an admission: under some of them jobs started, and for some jobs wait.

    `overdue` is how many of those that started under each waited long for it.
    """
    changed = {key: standings[key].started(number, now, overdue.get(key, 0)) for key, number in taken.items()}
    for key in set(full):
        standing = changed.get(key, standings[key])
        if standing.starts is not None:
            changed[key] = standing.awaited(now)
    return changed
