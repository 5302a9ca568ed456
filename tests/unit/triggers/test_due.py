"""What is asked for by the time at which it is due: also when its nominal instant has passed, and after a change."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_schedule
from tidewheel.errors import Invalid
from tidewheel.model.schedule import Schedule, ScheduleSpec
from tidewheel.triggers import Cron, Interval, Occurrence, Once, Rule, Trigger
from tidewheel.triggers.backfilling import past_of
from tidewheel.triggers.planning import fire_after_change, trigger_of
from tidewheel.triggers.preview import between_of, coming_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)

rules: st.SearchStrategy[Rule] = st.one_of(
    st.sampled_from([Cron("0 0 * * *", "Europe/Berlin"), Cron("*/7 3 * * SUN"), Cron("30 2 29 2 *"), Once(NOON)]),
    st.integers(1, 100_000).map(lambda seconds: Interval(seconds * SECOND)),
)
shifts = st.sampled_from([timedelta(0), SECOND, 10 * MINUTE, 6 * HOUR, 400 * DAY])
instants = st.one_of(
    st.integers(-40 * 86400, 40 * 86400).map(lambda seconds: NOON + seconds * SECOND),
    st.integers(-2000, 2000).map(lambda days: NOON + days * DAY + 37 * MINUTE),
)
keys = st.sampled_from("abcdef")


def stored(spec: ScheduleSpec, **fields: object) -> Schedule:
    own = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
    made: dict[str, object] = {"created_at": NOON, "updated_at": NOON, **fields}
    return msgspec.convert({**own, "id": UUID(int=1), **made}, Schedule, from_attributes=True)


@given(rule=rules, jitter=shifts, spread=shifts, now=instants, key=keys)
def test_the_next_that_is_due_is_the_first_that_a_walk_meets(
    rule: Rule, jitter: timedelta, spread: timedelta, now: datetime, key: str
) -> None:
    trigger = Trigger(rule=rule, jitter=jitter, spread=spread)
    found = trigger.next_due(now, key=key)

    following = trigger.next_after(now, key=key)
    if found == following:  # so nothing nominal before now is due later: look at the last such
        found = None
    if found is not None:
        assert found.nominal <= now < found.fire_at
        assert trigger.next_after(found.nominal, key=key) == following
    for back in (SECOND, MINUTE, HOUR, DAY, 9 * DAY):
        if isinstance(rule, Interval) and rule.every < back / 1000:
            break
        passed = [each for each in trigger.between(now - back, now, limit=5000, key=key) if each.fire_at > now]
        assert passed in ([], [found])


class Walk:
    """The nominal instants that fire one after the other, by a definition and then by another."""

    def __init__(self, old: ScheduleSpec, new: ScheduleSpec, now: datetime) -> None:
        self.by_old = [each for each in self._some(old, now - 3 * DAY) if each.fire_at <= now]
        first = fire_after_change(stored(old), new, now, fired=0)
        assert first is not None
        self.by_new = [each for each in self._some(new, now - 3 * DAY) if each.fire_at >= first]

    def _some(self, spec: ScheduleSpec, since: datetime) -> tuple[Occurrence, ...]:
        return trigger_of(spec).between(since, since + 6 * DAY, limit=10_000, key=spec.name)


@given(
    rule=st.sampled_from([Interval(HOUR), Interval(7 * MINUTE), Cron("0 0 * * *"), Cron("15 */5 * * *", "Asia/Tokyo")]),
    before=st.tuples(keys, shifts, shifts),
    after=st.tuples(keys, shifts, shifts),
    minutes=st.integers(0, 3000),
)
def test_by_the_same_rule_each_instant_fires_once_whatever_a_change_makes_of_its_shift(
    rule: Rule, before: tuple[str, timedelta, timedelta], after: tuple[str, timedelta, timedelta], minutes: int
) -> None:
    old, new = (a_schedule(name, rule, spread=spread, jitter=jitter) for name, spread, jitter in (before, after))
    now = NOON + minutes * MINUTE

    walk = Walk(old, new, now)

    fired = [each.nominal for each in (*walk.by_old, *walk.by_new)]
    wanted = [each.nominal for each in Trigger(rule=rule).between(now - 3 * DAY, now + 3 * DAY, limit=10_000)]
    assert fired == wanted


def test_another_rule_fires_from_now_on() -> None:
    old, new = a_schedule("a", Interval(HOUR)), a_schedule("a", Interval(25 * MINUTE, NOON), end=NOON + DAY)

    assert fire_after_change(stored(old), new, NOON + 10 * MINUTE, fired=3) == NOON + 25 * MINUTE
    assert fire_after_change(stored(old), new, NOON + 2 * DAY, fired=3) is None


def test_bounds_that_are_widened_bring_back_nothing() -> None:
    """What lay outside when its time came was no occurrence."""
    old = a_schedule("a", Interval(HOUR), end=NOON, spread=50 * MINUTE)
    new = a_schedule("a", Interval(HOUR), spread=50 * MINUTE)
    now = NOON + 5 * HOUR + 55 * MINUTE

    found = fire_after_change(stored(old), new, now, fired=3)

    assert found is not None
    assert found > now


def test_a_preview_begins_with_what_is_due_next_though_its_nominal_time_has_passed() -> None:
    schedule = stored(a_schedule("a", Cron("0 0 * * *"), spread=6 * HOUR))
    due = trigger_of(schedule).next_after(NOON, key="a")
    assert due is not None
    schedule = msgspec.structs.replace(schedule, next_fire_at=due.fire_at)

    for now in (due.nominal, due.fire_at - SECOND):
        assert [each.fire_at for each in coming_of(schedule, now, 2)] == [due.fire_at, due.fire_at + DAY]
    assert coming_of(schedule, due.fire_at, 1)[0].fire_at == due.fire_at + DAY
    (shown,) = between_of(schedule, due.fire_at - SECOND, due.fire_at, 5, now=NOON)
    assert shown.fire_at == due.fire_at


def test_a_backfill_reaches_only_where_it_is_known_what_has_run() -> None:
    schedule = stored(a_schedule(rule=Interval(DAY)), created_at=NOON)
    now = NOON + 40 * DAY

    for since, until in ((NOON, now), (NOON - 5 * DAY, now), (NOON + DAY, NOON + 2 * DAY), (NOON - DAY, NOON)):
        with pytest.raises(Invalid, match=r"since: what ran between 2030-01-01T12:00:00.* is recorded no more"):
            past_of(schedule, since, until, now)
    assert len(past_of(schedule, now - 30 * DAY, now, now)) == 30
    assert len(past_of(schedule, NOON - 9 * DAY, NOON - SECOND, now)) == 9, "there was no such schedule yet"
    assert len(past_of(schedule, NOON - 9 * DAY, NOON + 9 * DAY, NOON + 29 * DAY)) == 18
