"""What a schedule records next: complete, in order, the same however often it is asked."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_schedule
from tidewheel.errors import Invalid
from tidewheel.model.misfire import Misfire, MisfirePolicy, plan_catch_up
from tidewheel.model.schedule import Fate, Schedule, ScheduleSpec
from tidewheel.triggers import Cron, Interval, Once
from tidewheel.triggers.planning import (
    KEEP_OCCURRENCES,
    MOST_AT_ONCE,
    Planned,
    check_definition,
    check_fires,
    fire_after,
    first_fire,
    plan,
    recurrence_of,
)

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
policies = st.sampled_from(["latest", "all", "skip"])


def stored(spec: ScheduleSpec, made_at: datetime = NOON) -> Schedule:
    """A schedule as it is right after it was made."""
    fields = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
    first = first_fire(spec, made_at)
    return Schedule(id=UUID(int=1), created_at=made_at, updated_at=made_at, next_fire_at=first, **fields)


def all_plans(schedule: Schedule, now: datetime, until: datetime) -> tuple[list[Planned], Schedule]:
    """Plan and carry out until nothing is left."""
    found: list[Planned] = []
    while schedule.next_fire_at is not None and schedule.next_fire_at <= until:
        planned = plan(schedule, now, until)
        assert planned.occurrences, "each plan goes on"
        found += planned.occurrences
        schedule = msgspec.structs.replace(schedule, next_fire_at=planned.next_fire_at, fired=planned.fired)
    return found, schedule


@given(
    every=st.integers(1, 4000),
    away=st.integers(0, 9000),
    policy=policies,
    most=st.integers(1, 1000),
    grace=st.integers(0, 9000),
)
def test_pieces_are_the_same_as_the_whole(every: int, away: int, policy: MisfirePolicy, most: int, grace: int) -> None:
    """However long nobody was there, what runs is what one look at all of it would choose."""
    misfire = Misfire(policy=policy, most=most, grace=timedelta(seconds=grace))
    schedule = stored(a_schedule(rule=Interval(every * SECOND), misfire=misfire))
    now = NOON + away * SECOND
    until = now + MINUTE

    found, after = all_plans(schedule, now, until)

    times = [planned.fire_at for planned in found]
    step = every * SECOND
    first = schedule.next_fire_at
    assert first is not None
    assert times == [first + n * step for n in range(max(0, (until - first) // step + 1))]
    whole = plan_catch_up([at for at in times if at <= now], misfire, now)
    runs = [planned.fire_at for planned in found if planned.outcome is Fate.MADE]
    assert runs == [*whole.run, *(at for at in times if at > now)]
    assert after.fired == len(found)
    assert after.next_fire_at is not None
    assert after.next_fire_at > until


def test_nothing_is_planned_before_its_time() -> None:
    schedule = stored(a_schedule())

    assert plan(schedule, NOON, NOON + 59 * SECOND).occurrences == ()
    assert plan(schedule, NOON, NOON + 59 * SECOND).next_fire_at == NOON + MINUTE


def test_very_many_that_were_missed_come_in_pieces_and_those_of_long_ago_as_one() -> None:
    schedule = stored(a_schedule(rule=Interval(SECOND), misfire=Misfire(policy="all")))
    now = NOON + 100 * DAY

    first = plan(schedule, now, now + MINUTE)

    assert [planned.fire_at for planned in first.occurrences] == [NOON + SECOND]
    assert first.next_fire_at == now - KEEP_OCCURRENCES + SECOND
    assert first.occurrences[0].outcome is Fate.MISSED
    moved = msgspec.structs.replace(schedule, next_fire_at=first.next_fire_at, fired=first.fired)
    second = plan(moved, now, now + MINUTE)
    assert len(second.occurrences) == MOST_AT_ONCE // 2
    assert {planned.outcome for planned in second.occurrences} == {Fate.MISSED}


def test_a_schedule_with_so_many_occurrences_counts_each_of_them() -> None:
    """Leaping over some would let others run that should not."""
    schedule = stored(a_schedule(rule=Interval(SECOND), max_occurrences=5000))

    found, after = all_plans(schedule, NOON + 100 * DAY, NOON + 100 * DAY)

    assert (len(found), after.fired, after.next_fire_at) == (5000, 5000, None)
    assert [planned.outcome for planned in found] == [*[Fate.MISSED] * 4999, Fate.MADE]


def test_an_old_schedule_that_has_ended_still_runs_its_last_one() -> None:
    schedule = stored(a_schedule(rule=Interval(SECOND), end=NOON + HOUR))

    found, after = all_plans(schedule, NOON + 100 * DAY, NOON + 100 * DAY)

    assert [planned.fire_at for planned in found if planned.outcome is Fate.MADE] == [NOON + HOUR]
    assert (len(found), after.next_fire_at) == (3600, None)


def test_occurrences_that_are_moved_stay_in_order_and_are_planned_when_they_fire() -> None:
    schedule = stored(a_schedule(rule=Interval(MINUTE), jitter=MINUTE, spread=HOUR))

    found, _ = all_plans(schedule, NOON, NOON + HOUR)

    times = [planned.fire_at for planned in found]
    assert 58 <= len(times) <= 60
    assert all(earlier < later for earlier, later in pairwise(times))
    assert max(times) <= NOON + HOUR


def test_what_never_fires_says_why() -> None:
    for spec, why in (
        (a_schedule(rule=Once(NOON)), "never fires after 2030-01-01T12:00:00+00:00: Once at 2030-01-01 12:00:00 UTC"),
        (a_schedule(end=NOON), "its end was 2030-01-01T12:00:00"),
        (a_schedule(rule=Cron("*/5 2 * 3 SUN#2", "America/New_York")), "never fires"),
    ):
        with pytest.raises(Invalid, match="trigger: ") as refused:
            first_fire(spec, NOON)
        assert why in refused.value.why
        assert fire_after(spec, NOON) is None
    with pytest.raises(Invalid, match="it has had its 3 occurrences"):
        check_fires(None, a_schedule(max_occurrences=3), NOON, fired=3)


def test_a_definition_is_read_before_it_is_stored() -> None:
    assert check_definition(a_schedule()) == a_schedule()
    assert recurrence_of(a_schedule(rule=Cron("0 5 * * *", "Europe/Berlin"))).endswith("(Europe/Berlin)")
    bad = msgspec.structs.replace(a_schedule(), trigger=msgspec.Raw(b'{"rule":{"type":"interval","every":"PT0.5S"}}'))
    with pytest.raises(Invalid):
        check_definition(bad)
