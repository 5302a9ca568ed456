"""Which time charts show and what is added up for it, without any page."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from tests.builders import NOON
from tidewheel.errors import Forbidden
from tidewheel.model.states import State
from tidewheel.model.statistics import KEEP_STATISTICS, StatFilter, begin_of, check_stat_filter, spans_of
from tidewheel.server.dashboard.figures import MOST_KINDS, History, history_of
from tidewheel.server.dashboard.memory import FIRST_STEPS, MOST_KEPT, MOST_POINTS, Memory
from tidewheel.server.dashboard.period import DAY, RANGES, Period, Window, period_of
from tidewheel.server.problems import Refused
from tidewheel.server.reading import bad_parameter
from tidewheel.testing.clock import FakeClock

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
NOW = NOON + timedelta(minutes=17, seconds=23)
WINDOW = Window(NOON, NOON + 4 * MINUTE, MINUTE)


@pytest.mark.parametrize("each", RANGES, ids=lambda each: each.name)
@pytest.mark.parametrize("ago", [0 * DAY, 2 * DAY, 200 * DAY])
def test_a_chart_has_all_the_time_that_was_chosen_in_at_most_a_few_hundred_points(each: Any, ago: timedelta) -> None:
    query = {"range": each.name, "to": (NOW - ago).isoformat()}

    windows = period_of(query, NOW).windows(NOW)

    until = NOW - ago
    for since, before, step in windows:
        assert since <= until - each.length < since + step
        assert before - step < until <= before
        assert (before - since) / step <= 241
        assert since == begin_of(since, step)
        assert step / (MINUTE if step % HOUR else HOUR) <= 12
    assert [window.step for window in windows] == sorted(window.step for window in windows)


@pytest.mark.parametrize("name", ["7d", "30d"])
def test_long_times_are_read_by_the_hour_and_no_minutes_are(name: str) -> None:
    for since, before, step in period_of({"range": name}, NOW).windows(NOW):
        spans = spans_of(check_stat_filter(StatFilter(since=since, before=before, step=step)), NOW)

        assert (spans.hours_since, spans.minutes_since) == (since, spans.minutes_before)


@pytest.mark.parametrize("each", RANGES, ids=lambda each: each.name)
def test_of_what_is_long_ago_only_the_hours_are_asked_for(each: Any) -> None:
    period = period_of({"range": each.name, "to": (NOW - 3 * DAY).isoformat()}, NOW)

    assert all(not step % HOUR for _, _, step in period.windows(NOW))


@pytest.mark.parametrize(
    ("query", "told", "until", "wrong"),
    [
        ({}, "the last hour", None, ""),
        ({"range": "7d"}, "the last 7 days", None, ""),
        ({"range": "90d"}, "the last hour", None, "range: must be one of 1h, 6h, 24h, 7d, 30d"),
        ({"range": "\x00"}, "the last hour", None, "range: must be one of 1h, 6h, 24h, 7d, 30d"),
        ({"to": "2030-01-01T11:00Z"}, "the hour until 01 Jan 2030 11:00 UTC", NOON - HOUR, ""),
        ({"to": "2030-01-01T11:00"}, "the hour until 01 Jan 2030 11:00 UTC", NOON - HOUR, ""),
        ({"to": "2031-01-01T11:00Z"}, "the last hour", None, ""),
        ({"to": "9999-12-31T23:59:59-23:59"}, "the last hour", None, ""),
        ({"to": "soon"}, "the last hour", None, "to: must be a time such as"),
        ({"to": "2030-01-01T11:00+99:00"}, "the last hour", None, "to: must be a time such as"),
        ({"kind": "a b"}, "the last hour", None, "kind: must"),
        ({"queue": "x" * 300}, "the last hour", None, "queue: must"),
    ],
)
def test_what_makes_no_sense_is_told_and_the_nearest_that_does_is_shown(
    query: dict[str, str], told: str, until: datetime | None, wrong: str
) -> None:
    period = period_of(query, NOW)

    assert (period.told, period.until) == (told, until)
    assert period.wrong.startswith(wrong)
    assert bool(period.wrong) == bool(wrong)


@pytest.mark.parametrize("to", ["0001-01-01T00:00:00+23:59", "2001-01-01", "2028-11-27T11:17Z"])
def test_before_what_is_kept_the_oldest_is_shown(to: str) -> None:
    period = period_of({"range": "30d", "to": to}, NOW)

    assert period.wrong == "to: numbers are kept for 400 days, and these are the oldest"
    [first, *_] = period.windows(NOW)
    assert NOW - KEEP_STATISTICS - 4 * HOUR <= first.since <= NOW - KEEP_STATISTICS + DAY
    assert period.earlier(NOW) is None


def test_earlier_and_later_lead_from_one_end_of_what_is_kept_to_the_other() -> None:
    period, ways = period_of({"range": "30d"}, NOW), 0
    while to := period.earlier(NOW):
        period, ways = period_of({"range": "30d", "to": to}, NOW), ways + 1
        assert period.wrong == ""
    assert ways == 12
    while to := period.later(NOW):
        period, ways = period_of({"range": "30d", "to": to}, NOW), ways - 1
    assert ways == 1, "and the next is what goes on"


def point(at: datetime, kind: str, outcome: State, jobs: int, *times: float) -> SimpleNamespace:
    """All of it waited for so long, and ran for so long."""
    waited, ran = (
        SimpleNamespace(buckets=[SimpleNamespace(seconds=seconds, count=jobs)]) for seconds in times or (1.0, 2.0)
    )
    return SimpleNamespace(at=at, kind=kind, outcome=outcome, jobs=jobs, start_delay=waited, run_time=ran)


def columns_of(history: History) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(history.series)
    return found


def test_a_step_in_which_nothing_was_recorded_is_a_gap_and_no_zero() -> None:
    points = [
        point(NOON, "a", State.SUCCEEDED, 90, 1, 3),
        point(NOON, "b", State.DEAD, 9, 2, 4),
        point(NOON, "b", State.CANCELLED, 1, 8, 64),
        point(NOON + 2 * MINUTE, "a", State.SUCCEEDED, 1, 5, 5),
    ]

    told = columns_of(history_of(points, WINDOW))

    assert told["at"] == [(NOON + minute * MINUTE).timestamp() for minute in range(4)]
    assert [told[name] for name in ("succeeded", "failed", "other", "failure_rate")] == [
        [90, None, 1, None],
        [9, None, 0, None],
        [1, None, 0, None],
        [0.09, None, 0.0, None],
    ]
    assert [told[f"delay{share}"][0] for share in (50, 95, 99)] == [1, 2, 2]
    assert [told[f"run{share}"] for share in (50, 95, 99)] == [
        [3, None, 5, None],
        [4, None, 5, None],
        [4, None, 5, None],
    ]


def test_kinds_are_listed_by_what_failed_most_and_by_what_ended_most() -> None:
    points = [
        point(NOON, "busy", State.SUCCEEDED, 90),
        point(NOON + MINUTE, "busy", State.EXPIRED, 10, 60, 600),
        point(NOON, "broken", State.DEAD, 50),
        point(NOON, "fine", State.SUCCEEDED, 70),
    ]

    history = history_of(points, WINDOW)

    assert [row.kind for row in history.failing] == ["broken", "busy", "fine"]
    assert [row.kind for row in history.busy] == ["busy", "fine", "broken"]
    assert tuple(history.busy[0]) == ("busy", 100, 10, 0.1, 1, 60, 2, 600)
    assert (history.total.jobs, history.total.failed, history.kinds) == (220, 60, 3)


def test_however_many_kinds_there_are_few_are_listed_and_all_are_counted() -> None:
    points = [point(NOON, f"kind-{number:04}", State.DEAD, number + 1) for number in range(1000)]

    history = history_of(points, WINDOW)

    assert len(history.failing) == len(history.busy) == MOST_KINDS
    assert history.failing[0].kind == "kind-0999"
    assert (history.kinds, history.total.jobs) == (1000, 500_500)


class FakeDesk:
    """Answers as the endpoint does, with so many points for each step, and remembers what it was asked."""

    def __init__(self, tenant: str = "a", *, each: int = 0, refuses: Sequence[int] = (), may: bool = True) -> None:
        self.visitor = SimpleNamespace(tenant=tenant)
        self.asked: list[dict[str, Any]] = []
        self.read = 0
        self._each, self._refuses, self._may = each, refuses, may

    def check(self, name: str) -> None:
        if not self._may:
            raise Forbidden(name, "viewer")

    async def ask(self, _: str, *, query: dict[str, Any]) -> Any:
        self.asked.append(query)
        if query["step"] in self._refuses:
            raise bad_parameter("from", "there would be more than 30000 points")
        since, before = datetime.fromisoformat(query["from"]), datetime.fromisoformat(query["to"])
        step = timedelta(seconds=query["step"])
        moments = [since + number * step for number in range((before - since) // step)]
        points = [point(at, f"k{number}", State.SUCCEEDED, 1) for at in moments for number in range(self._each)]
        self.read += len(points)
        return SimpleNamespace(points=points)

    @property
    def looks(self) -> int:
        """How often the last steps were read, which are read first."""
        return sum(datetime.fromisoformat(query["to"]) > NOW for query in self.asked)


LONG: Period = period_of({"range": "30d"}, NOW)


async def look(memory: Memory, desk: Any, period: Period = LONG) -> Any:
    return await memory.look(desk, period, NOW)


async def test_open_pages_do_not_read_thirty_days_again_and_again() -> None:
    clock, desk = FakeClock(NOW), FakeDesk()
    memory = Memory(clock)
    for _ in range(50):
        await look(memory, desk)
        await clock.advance(timedelta(seconds=1))
    assert desk.looks == 1
    await clock.advance(timedelta(minutes=3))
    await look(memory, desk)
    assert desk.looks == 2


async def test_what_one_tenant_was_told_no_other_is() -> None:
    memory, desks = Memory(FakeClock(NOW)), [FakeDesk("a"), FakeDesk("b")]

    for desk in desks:
        await look(memory, desk)
        await look(memory, desk, period_of({"range": "30d", "kind": "x"}, NOW))

    assert [{query["kind"] for query in desk.asked} for desk in desks] == [{None, "x"}] * 2
    with pytest.raises(Forbidden):
        await look(memory, FakeDesk("a", may=False))


@pytest.mark.parametrize("name", [each.name for each in RANGES])
async def test_each_step_of_a_period_is_read_once(name: str) -> None:
    desk = FakeDesk(each=2)

    told = await look(Memory(FakeClock(NOW)), desk, period_of({"range": name}, NOW))

    assert set(columns_of(told.history)["succeeded"]) == {2}


@pytest.mark.parametrize(
    ("name", "each", "step"), [("1h", 300, 60), ("1h", 1_000, 300), ("30d", 80, 3 * 3600), ("30d", 300, 12 * 3600)]
)
async def test_too_much_by_one_step_is_read_by_a_longer_one(name: str, each: int, step: int) -> None:
    told = await look(Memory(FakeClock(NOW)), FakeDesk(each=each), period_of({"range": name}, NOW))

    assert (told.wrong, columns_of(told.history)["step"]) == ("", step)
    assert set(columns_of(told.history)["succeeded"]) == {each}


async def test_what_the_endpoint_refuses_is_read_by_a_longer_step() -> None:
    desk = FakeDesk(refuses=[3 * 3600])

    told = await look(Memory(FakeClock(NOW)), desk)

    assert ({query["step"] for query in desk.asked}, told.wrong) == ({3 * 3600, 12 * 3600}, "")


@pytest.mark.parametrize(("name", "each"), [("1h", 5_000), ("1h", 20_000), ("30d", 400), ("30d", 20_000)])
async def test_what_is_too_much_by_every_step_is_told_before_it_is_read(name: str, each: int) -> None:
    period, desk = period_of({"range": name}, NOW), FakeDesk(each=each)

    told = await look(Memory(FakeClock(NOW)), desk, period)

    assert told.wrong == f"There is too much to add up for {period.told}: choose less time, a queue or a kind."
    assert told.history.total.jobs == 0
    assert desk.read <= 2 * max(MOST_POINTS, FIRST_STEPS * each)


@pytest.mark.parametrize("error", [Refused("overloaded", "later"), RuntimeError("broken")])
async def test_what_went_wrong_otherwise_is_not_taken_for_too_much(error: Exception) -> None:
    desk: Any = FakeDesk()

    async def ask(_: str, **__: Any) -> Any:
        raise error

    desk.ask = ask
    with pytest.raises(type(error)):
        await look(Memory(FakeClock(NOW)), desk)


async def test_while_one_reads_anew_others_are_told_what_was_there() -> None:
    clock = FakeClock(NOW)
    memory, desk = Memory(clock), cast("Any", FakeDesk())
    before = await look(memory, desk)
    await clock.advance(timedelta(minutes=4))
    seen: list[Any] = []
    real = desk.ask

    async def ask(name: str, *, query: dict[str, Any]) -> Any:
        if not seen:
            seen.append(await look(memory, desk))
        return await real(name, query=query)

    desk.ask = ask
    after = await look(memory, desk)

    assert len(seen) == 1
    assert seen[0] is before
    assert after is not before


async def test_a_reading_that_failed_is_tried_again() -> None:
    clock = FakeClock(NOW)
    memory, desk = Memory(clock), cast("Any", FakeDesk())
    await look(memory, desk)
    await clock.advance(timedelta(minutes=4))
    real = desk.ask

    async def fail(*_: Any, **__: Any) -> Any:
        raise Refused("unavailable", "the database is away")

    desk.ask = fail
    with pytest.raises(Refused):
        await look(memory, desk)
    desk.ask = real
    await look(memory, desk)
    assert desk.looks == 2


async def test_only_some_of_what_was_looked_at_is_kept() -> None:
    memory, desk = Memory(FakeClock(NOW)), FakeDesk()
    for number in range(MOST_KEPT + 5):
        await look(memory, desk, period_of({"kind": f"k{number}"}, NOW))
        await look(memory, desk)
    assert desk.looks == MOST_KEPT + 6
    await look(memory, desk, period_of({"kind": "k0"}, NOW))
    assert desk.looks == MOST_KEPT + 7
