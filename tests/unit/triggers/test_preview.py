"""Coming occurrences as people are shown them: no more than there will be, and with a word on days with set clocks."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_schedule
from tidewheel.errors import Invalid
from tidewheel.model.schedule import Schedule, ScheduleSpec
from tidewheel.triggers import Cron, Interval, Trigger
from tidewheel.triggers.planning import first_fire, plan
from tidewheel.triggers.preview import MOST_SHOWN, Preview, between_of, coming_of, preview_of

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)


def stored(spec: ScheduleSpec) -> Schedule:
    """A schedule as it is right after it was made."""
    fields = {field: getattr(spec, field) for field in ScheduleSpec.__struct_fields__}
    first = first_fire(spec, NOON)
    return Schedule(id=UUID(int=1), created_at=NOON, updated_at=NOON, next_fire_at=first, **fields)


def ahead(schedule: Schedule, now: datetime) -> tuple[Schedule, datetime | None]:
    """The same when a minute is written ahead, and the last that is recorded if it is the last of all."""
    done = plan(schedule, now, now + MINUTE)
    last = done.occurrences[-1].fire_at if done.occurrences and done.next_fire_at is None else None
    return msgspec.structs.replace(schedule, next_fire_at=done.next_fire_at, fired=done.fired), last


def times(shown: list[Preview]) -> list[datetime]:
    return [each.fire_at for each in shown]


# How many


@pytest.mark.parametrize("moved", [{}, {"jitter": 15 * SECOND}, {"spread": 15 * SECOND}])
@pytest.mark.parametrize("bound", [{"max_occurrences": 5}, {"end": NOON + 100 * SECOND}])
def test_no_more_are_shown_than_are_left_however_many_are_written_ahead(
    moved: dict[str, Any], bound: dict[str, Any]
) -> None:
    schedule = stored(a_schedule(rule=Interval(20 * SECOND), start=NOON + 20 * SECOND, **bound, **moved))
    expected = times(coming_of(schedule, NOON, 10))
    assert len(expected) == 5
    last = None
    for seconds in range(0, 130, 10):
        now = NOON + seconds * SECOND
        schedule, ended = ahead(schedule, now)
        last = ended or last
        left = [at for at in expected if at > now]
        assert times(coming_of(schedule, now, 10, last)) == left
        assert times(coming_of(schedule, now, 2, last)) == left[:2]
        assert times(between_of(schedule, now, NOON + DAY, 10, now=now, last=last)) == left
        for later in range(0, 130, 15):
            since = now + later * SECOND
            found = times(between_of(schedule, since, NOON + DAY, 10, now=now, last=last))
            assert found == [at for at in left if at > since]


def test_of_a_paused_one_is_shown_what_would_come_if_it_were_resumed() -> None:
    schedule = stored(a_schedule(rule=Interval(MINUTE), max_occurrences=3))
    paused = msgspec.structs.replace(schedule, next_fire_at=None, fired=1)
    now = NOON + 10 * MINUTE
    expected = [now + MINUTE, now + 2 * MINUTE]
    assert times(coming_of(paused, now, 10, NOON + MINUTE)) == expected
    assert times(between_of(paused, now, now + DAY, 10, now=now, last=NOON + MINUTE)) == expected


def test_of_one_that_is_over_nothing_is_to_come_and_the_past_is_as_the_rule_says() -> None:
    schedule = stored(a_schedule(rule=Interval(MINUTE), max_occurrences=3))
    over, now, last = msgspec.structs.replace(schedule, next_fire_at=None, fired=3), NOON + HOUR, NOON + 3 * MINUTE
    assert coming_of(over, now, 10, last) == []
    assert between_of(over, now, now + DAY, 10, now=now, last=last) == []
    assert times(between_of(over, NOON, now + DAY, 10, now=now, last=last)) == [NOON + n * MINUTE for n in (1, 2, 3)]


def test_a_window_shows_its_first_ones_up_to_a_bound() -> None:
    schedule = stored(a_schedule(rule=Interval(SECOND)))
    found = between_of(schedule, NOON - HOUR, NOON + HOUR, 7, now=NOON)
    assert times(found) == [NOON - HOUR + n * SECOND for n in range(1, 8)]
    over_now = between_of(schedule, NOON - 2 * SECOND, NOON + HOUR, 4, now=NOON)
    assert times(over_now) == [NOON + n * SECOND for n in (-1, 0, 1, 2)]
    assert len(between_of(schedule, NOON, NOON + 10_000 * DAY, MOST_SHOWN, now=NOON)) == MOST_SHOWN
    assert between_of(schedule, NOON + HOUR, NOON, 5, now=NOON) == []
    for limit in (0, MOST_SHOWN + 1):
        with pytest.raises(Invalid, match="limit"):
            between_of(schedule, NOON, NOON + HOUR, limit, now=NOON)


# Days on which clocks are set

TWICE = "comes twice; this is the first time"


@pytest.mark.parametrize(
    ("zone", "expression", "day", "expected"),
    [
        # Clocks go back for Ramadan, and forward after it.
        (
            "Africa/Casablanca",
            "30 2 * * *",
            "2024-03-10",
            ["02:30+01:00", "fold", f"clocks go back by 1h: 02:00 to 03:00 {TWICE}"],
        ),
        (
            "Africa/Casablanca",
            "30 2 * * *",
            "2024-04-14",
            ["03:00+01:00", "gap", "clocks go forward by 1h: 02:00 to 03:00 does not exist; runs right after it"],
        ),
        # By half an hour.
        (
            "Australia/Lord_Howe",
            "15 2 * * *",
            "2024-10-06",
            ["02:30+11:00", "gap", "clocks go forward by 30m: 02:00 to 02:30 does not exist; runs right after it"],
        ),
        (
            "Australia/Lord_Howe",
            "45 1 * * *",
            "2024-04-07",
            ["01:45+11:00", "fold", f"clocks go back by 30m: 01:30 to 02:00 {TWICE}"],
        ),
        # Its own time is right after the gap: nothing moved it.
        (
            "Europe/Berlin",
            "0 3 * * *",
            "2030-03-31",
            ["03:00+02:00", "gap", "clocks go forward by 1h: 02:00 to 03:00 does not exist"],
        ),
        # Another zone time, without daylight saving: the last half hour of a day is skipped, or comes twice.
        (
            "Asia/Pyongyang",
            "0 12 * * *",
            "2018-05-04",
            ["12:00+08:30", "gap", "clocks go forward by 30m: 23:30 to 00:00 does not exist"],
        ),
        (
            "Asia/Pyongyang",
            "45 23 * * *",
            "2018-05-05",
            ["00:00+09:00", "gap", "clocks go forward by 30m: 23:30 to 00:00 does not exist; runs right after it"],
        ),
        ("Asia/Pyongyang", "0 0 * * *", "2018-05-05", ["00:00+09:00", None, ""]),
        ("Asia/Pyongyang", "0 12 * * *", "2018-05-05", ["12:00+09:00", None, ""]),
        (
            "Asia/Pyongyang",
            "45 23 * * *",
            "2015-08-14",
            ["23:45+09:00", "fold", f"clocks go back by 30m: 23:30 to 00:00 {TWICE}"],
        ),
        # A day that never was: the next one is marked, and nothing moved to it.
        ("Pacific/Apia", "0 0 * * *", "2011-12-29", ["00:00-10:00", None, ""]),
        *(
            (
                "Pacific/Apia",
                f"0 {hour} * * *",
                "2011-12-31",
                [
                    f"{hour:02}:00+14:00",
                    "gap",
                    "clocks go forward by 1d: 2011-12-30 00:00 to 2011-12-31 00:00 does not exist",
                ],
            )
            for hour in (0, 12)
        ),
    ],
)
def test_a_day_on_which_clocks_are_set_is_marked_and_told(
    zone: str, expression: str, day: str, expected: list[str | None]
) -> None:
    trigger, noon = Trigger(rule=Cron(expression, zone)), datetime.fromisoformat(f"{day}T12:00:00+00:00")
    shown = preview_of(trigger, trigger.due_between(noon - 3 * DAY, noon + 3 * DAY, limit=20))
    first = next(each for each in shown if f"{each.local:%Y-%m-%d}" == day)
    assert [first.local.isoformat(timespec="minutes")[11:], first.change, first.note] == expected
