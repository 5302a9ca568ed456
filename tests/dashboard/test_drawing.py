"""What is computed for a page, without any page."""

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import NOON
from tidewheel.model.access import Role
from tidewheel.model.api_key import ApiKey, Known, make_key
from tidewheel.model.ids import make_id
from tidewheel.model.session import LIFETIME, begin_session
from tidewheel.model.states import State
from tidewheel.server.dashboard.figures import delays_of
from tidewheel.server.dashboard.graph import drawing_of
from tidewheel.server.dashboard.pages.logs import pieces_of
from tidewheel.server.dashboard.pulse import Pulse
from tidewheel.server.dashboard.rendering import NOTHING, number, query, size, span, when
from tidewheel.server.dashboard.timeline import WIDTH, timeline_of
from tidewheel.testing.clock import FakeClock

SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (None, NOTHING),
        (0.004, "4 ms"),
        (1.25, "1.2 s"),
        (59, "59 s"),
        (61, "1 min 1 s"),
        (3600, "1 h"),
        (90_000, "1 d 1 h"),
        (864_000, "10 d"),
    ],
)
def test_durations_are_told_in_two_figures(length: float | None, text: str) -> None:
    assert span(length) == text


def test_numbers_and_sizes_are_told_for_people() -> None:
    assert (number(None), number(0), number(1234567), number(3.26)) == (NOTHING, "0", "1\u202f234\u202f567", "3.3")
    assert (size(0), size(1536), size(50 << 20)) == ("0 B", "1.5 KiB", "50 MiB")


def test_a_time_is_told_with_the_exact_one_behind_it() -> None:
    told = str(when(NOON, NOON + 90 * SECOND))

    assert told == '<time datetime="2030-01-01T12:00:00+00:00" title="2030-01-01 12:00:00 UTC">1 min 30 s ago</time>'
    assert "in 5.0 s" in when(NOON + 5 * SECOND, NOON)


def test_a_query_leaves_out_what_is_empty() -> None:
    assert query({"state": "dead", "kind": ""}, cursor="a&b") == "?state=dead&cursor=a%26b"
    assert query({}) == ""


def job(**fields: Any) -> SimpleNamespace:
    base = {"created_at": NOON, "finished_at": None, "state": State.QUEUED, "last_started_at": None, "token": 0}
    return SimpleNamespace(**base | fields)


def attempt(token: int, began: int, ended: int) -> SimpleNamespace:
    return SimpleNamespace(token=token, started_at=NOON + began * SECOND, ended_at=NOON + ended * SECOND)


def test_a_timeline_shows_runs_and_the_waits_between_them() -> None:
    done = job(state=State.SUCCEEDED, finished_at=NOON + 10 * SECOND, token=2)

    bars = timeline_of(done, [attempt(1, 2, 4), attempt(2, 8, 10)], NOON + 99 * SECOND)

    assert [(bar.kind, bar.token, bar.length) for bar in bars] == [
        ("wait", None, 2 * SECOND),
        ("failed", 1, 2 * SECOND),
        ("wait", None, 4 * SECOND),
        ("succeeded", 2, 2 * SECOND),
    ]
    assert [bar.x for bar in bars] == [0, 200, 400, 800]


def test_a_timeline_of_a_running_job_goes_on_until_now() -> None:
    runs = job(state=State.RUNNING, last_started_at=NOON + SECOND, token=1)

    bars = timeline_of(runs, [], NOON + 4 * SECOND)

    assert [(bar.kind, bar.length) for bar in bars] == [("wait", SECOND), ("running", 3 * SECOND)]


def test_a_run_of_no_time_can_still_be_seen() -> None:
    done = job(state=State.DEAD, finished_at=NOON + 1000 * SECOND, token=1)

    bars = timeline_of(done, [attempt(1, 1000, 1000)], NOON)

    assert bars[-1].width >= 3
    assert bars[-1].x + bars[-1].width <= WIDTH


def test_a_graph_places_parents_before_and_children_after() -> None:
    this, parents, children = object(), [object(), object()], [object()]

    drawn = drawing_of(this, parents, children)

    places = {box.job: box.x for box in drawn.boxes}
    assert places[parents[0]] == places[parents[1]] < places[this] < places[children[0]]
    assert len(drawn.edges) == 3
    assert all(box.y >= 0 and box.y + 44 <= drawn.height for box in drawn.boxes)


def test_a_graph_of_one_is_one_box() -> None:
    assert len(drawing_of(object(), [], []).boxes) == 1


def point(minute: int, outcome: State, jobs: int, **delays: int) -> SimpleNamespace:
    buckets = [SimpleNamespace(seconds=float(seconds[1:]), count=count) for seconds, count in delays.items()]
    at = NOON + minute * 60 * SECOND
    waited, ran = SimpleNamespace(buckets=buckets), SimpleNamespace(buckets=[])
    return SimpleNamespace(at=at, outcome=outcome, jobs=jobs, start_delay=waited, run_time=ran)


def test_delays_are_those_of_all_that_ended_lately() -> None:
    points = [
        point(0, State.SUCCEEDED, 9, s1000=9),
        point(2, State.SUCCEEDED, 60, s1=60),
        point(3, State.DEAD, 39, s5=39),
        point(3, State.SUCCEEDED, 1, s60=1),
    ]

    assert delays_of(points, NOON + 60 * SECOND) == (1, 5)
    assert delays_of(points[2:], NOON) == (5, 60)
    assert delays_of([], NOON) == (None, None)


async def test_the_pulse_is_the_difference_of_counters() -> None:
    clock = FakeClock()
    pulse = Pulse(clock)

    assert pulse.feel("a", 100, 5) == (None, None)
    await clock.advance(2 * SECOND)
    assert pulse.feel("a", 120, 6) == (10, 0.5)
    assert pulse.feel("b", 7, 0) == (None, None)
    await clock.advance(2 * SECOND)
    assert pulse.feel("a", 20, 0) == (0, 0)  # old jobs were removed


def known(text: str, now: datetime, **fields: Any) -> Known:
    made = make_key(b"\1" * 37)
    assert made.text == text
    values: dict[str, Any] = {
        "id": make_id(0, 0),
        "prefix": made.proof.prefix,
        "name": "n",
        "role": Role.VIEWER,
        "created_at": NOON,
    }
    return Known(ApiKey(**values | fields), made.proof.digest, now)


def test_a_session_stands_for_its_key_until_either_ends() -> None:
    text = make_key(b"\1" * 37).text
    token = begin_session(text, NOON, "x" * 32)

    assert token.key_of(known(text, NOON)) is not None
    assert token.key_of(None) is None
    assert token.key_of(known(text, NOON + LIFETIME)) is None
    assert token.key_of(known(text, NOON, revoked_at=NOON)) is None
    assert token.key_of(known(text, NOON + SECOND, expires_at=NOON.astimezone(UTC))) is None
    other = begin_session(make_key(b"\2" * 37).text, NOON, "x" * 32)
    assert other.key_of(known(text, NOON)) is None


def test_an_excerpt_is_cut_where_something_was_found() -> None:
    pieces = pieces_of("wrote report.pdf", [(6, 12), (8, 9)])

    assert pieces == [("wrote ", False), ("report", True), (".pdf", False)]
    assert pieces_of("all", []) == [("all", False)]
