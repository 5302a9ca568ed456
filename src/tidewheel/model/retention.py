"""How long finished jobs are kept, and how long others may wait."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from ipaddress import ip_network
from typing import Final, NamedTuple

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.alert_bounds import USUAL, Bounds, parse_bounds
from tidewheel.model.checks import check_name, duration_text, parse_duration
from tidewheel.model.states import FINAL, State

KEEP: Final[Mapping[State, timedelta]] = {
    **dict.fromkeys(FINAL, timedelta(days=30)),
    State.SUCCEEDED: timedelta(days=7),
}
"""How long finished jobs are kept, from the first day on."""
MAX_AGE: Final = timedelta(days=14)
"""How long a job may wait since it was last due."""
LEAST: Final = timedelta(minutes=1)
MOST: Final = timedelta(days=36_500)

Keep = Mapping[State, timedelta]
KindKeep = Mapping[str, Keep]
"""What goes for single kinds instead."""
NO_KINDS: Final[KindKeep] = {}


class Upkeep(msgspec.Struct, frozen=True, kw_only=True):
    """What keepers go by."""

    keep: Keep = msgspec.field(default_factory=lambda: dict(KEEP))
    kinds: KindKeep = {}
    max_age: timedelta | None = MAX_AGE
    """None lets jobs wait for ever."""
    notify_private: tuple[str, ...] = ()
    """Private networks that messages may be sent to."""
    bounds: Bounds = USUAL
    """From when on alerts fire."""


class Rule(NamedTuple):
    """Finished jobs in a state go when they are older than this: those of one kind, or of all but some."""

    state: State
    age: timedelta
    kind: str | None
    but: tuple[str, ...]


def rules_of(keep: Keep, kinds: KindKeep) -> list[Rule]:
    """Return the rules that say the same, one for each state and one for each exception."""
    for field, ages in (("keep", keep), *((f"kinds[{kind}]", ages) for kind, ages in kinds.items())):
        for state, age in ages.items():
            if state not in FINAL:
                raise Invalid(field, f"{state} is no state of finished jobs")
            if age < timedelta(0):
                raise Invalid(field, f"{state} must not be negative, and is {duration_text(age)}")
    general = [
        Rule(state, age, None, tuple(sorted(kind for kind, ages in kinds.items() if state in ages)))
        for state, age in keep.items()
    ]
    special = [Rule(state, age, kind, ()) for kind, ages in kinds.items() for state, age in ages.items()]
    return general + special


class LogAges(NamedTuple):
    """How long lines are kept: none longer than `longest`, and those of some tenants shorter."""

    longest: timedelta
    shorter: dict[int | None, timedelta]
    """By the numbers of tenants; None stands for those without an age of their own."""


def log_ages(general: timedelta, own: Mapping[int, timedelta]) -> LogAges:
    """Return how long lines are kept if some tenants have an age of their own."""
    ages: dict[int | None, timedelta] = {None: general} | dict(own)
    longest = max(ages.values())
    return LogAges(longest, {tenant: age for tenant, age in ages.items() if age < longest})


def longest(rules: Iterable[Rule], states: Iterable[State]) -> timedelta | None:
    """Return after how long nothing of these states is kept any more; None if some is for ever."""
    rules = list(rules)
    for state in states:
        if not any(rule.state is state and rule.kind is None for rule in rules):
            return None
    return max((rule.age for rule in rules if rule.state in states), default=timedelta(0))


def parse_upkeep(
    keep: Iterable[str], max_age: str, notify_private: Iterable[str] = (), alert: Iterable[str] = ()
) -> Upkeep:
    """Return what texts such as `dead=90d`, `emails:succeeded=1d` and `14d` or `off` stand for."""
    general, kinds = dict(KEEP), dict[str, dict[State, timedelta]]()
    for text in keep:
        what, equals, age = text.partition("=")
        kind, colon, state = what.rpartition(":")
        if not equals or state not in list(FINAL):
            forms = f"state=age or kind:state=age, with one of {', '.join(FINAL)}"
            raise Invalid("keep", f"must be {forms}, not {text[:60]!r}")
        ages = kinds.setdefault(check_name("keep", kind), {}) if colon else general
        ages[State(state)] = _age("keep", age)
    oldest = None if max_age == "off" else _age("max_age", max_age)
    return Upkeep(
        keep=general,
        kinds=kinds,
        max_age=oldest,
        notify_private=_networks(notify_private),
        bounds=parse_bounds(alert),
    )


def _networks(texts: Iterable[str]) -> tuple[str, ...]:
    for text in texts:
        try:
            ip_network(text)
        except ValueError:
            raise Invalid("notify_private", f"must be a network such as 10.0.0.0/8, not {text[:60]!r}") from None
    return tuple(texts)


def check_age(field: str, age: timedelta) -> timedelta:
    """Refuse ages that nobody can mean."""
    if not LEAST <= age <= MOST:
        raise Invalid(field, f"must be between {duration_text(LEAST)} and 100 years, not {duration_text(age)}")
    return age


def _age(field: str, text: str) -> timedelta:
    return check_age(field, parse_duration(text, field))


def why_too_old(max_age: timedelta) -> str:
    """Return what a job says that has waited for too long."""
    return f"it has waited for longer than {duration_text(max_age)}"
