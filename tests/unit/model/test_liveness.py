from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.liveness import CLOCK_RATE_ERROR, ExpiredWorker, Watched, holder_deadline, observe

TTL = timedelta(seconds=30)
ONE, OTHER = UUID(int=1), UUID(int=2)

ttls = st.timedeltas(timedelta(seconds=2), timedelta(hours=1))
sightings = st.lists(
    st.tuples(
        st.floats(0, 20),
        st.dictionaries(st.sampled_from([ONE, OTHER, UUID(int=3)]), st.integers(1, 3), max_size=3),
    ),
    max_size=30,
)


def silent(worker_id: UUID = ONE, beat: int = 7, ttl: timedelta = TTL) -> ExpiredWorker:
    return ExpiredWorker(id=worker_id, beat=beat, ttl=ttl)


def test_a_worker_that_is_seen_expired_for_the_first_time_is_not_dead() -> None:
    dead, watched = observe({}, [silent()], 100.0)

    assert dead == []
    assert watched == {ONE: Watched(beat=7, since=100.0)}


def test_a_step_of_the_stores_clock_reaps_nobody() -> None:
    everybody = [silent(UUID(int=n), beat=n) for n in range(100)]
    _, watched = observe({}, everybody, 100.0)
    beaten = [silent(UUID(int=n), beat=n + 1) for n in range(100)]

    dead, _ = observe(watched, beaten, 130.0)

    assert dead == []


def test_a_worker_with_the_same_beat_for_a_whole_lease_is_dead() -> None:
    watched = {ONE: Watched(beat=7, since=100.0)}

    assert observe(watched, [silent()], 129.999)[0] == []
    assert observe(watched, [silent()], 130.0)[0] == [silent()]


def test_watching_goes_on_from_the_first_sight() -> None:
    _, watched = observe({}, [silent()], 100.0)
    _, watched = observe(watched, [silent()], 115.0)

    assert watched == {ONE: Watched(beat=7, since=100.0)}


def test_a_new_beat_begins_a_new_watch() -> None:
    dead, watched = observe({ONE: Watched(beat=7, since=100.0)}, [silent(beat=8)], 200.0)

    assert dead == []
    assert watched == {ONE: Watched(beat=8, since=200.0)}


def test_a_worker_that_is_no_longer_expired_is_forgotten() -> None:
    _, watched = observe({ONE: Watched(beat=7, since=100.0)}, [], 110.0)

    assert watched == {}
    assert observe(watched, [silent()], 200.0)[0] == []


def test_each_worker_is_judged_by_its_own_lease() -> None:
    watched = {ONE: Watched(beat=7, since=100.0), OTHER: Watched(beat=7, since=100.0)}
    short = silent(OTHER, ttl=timedelta(seconds=2))

    assert observe(watched, [silent(), short], 103.0)[0] == [short]


def test_the_dead_are_found_again_if_their_reaping_failed() -> None:
    dead, watched = observe({ONE: Watched(beat=7, since=100.0)}, [silent()], 130.0)

    assert observe(watched, [silent()], 131.0)[0] == dead == [silent()]


def test_what_was_known_before_is_left_alone() -> None:
    before = {ONE: Watched(beat=7, since=100.0)}

    observe(before, [silent(OTHER)], 101.0)

    assert before == {ONE: Watched(beat=7, since=100.0)}


@given(sightings)
def test_the_dead_were_seen_at_every_look_of_a_whole_lease_with_one_beat(
    looks: Sequence[tuple[float, dict[UUID, int]]],
) -> None:
    now = 0.0
    watched: dict[UUID, Watched] = {}
    history: list[tuple[float, dict[UUID, int]]] = []
    for wait, beats in looks:
        now += wait
        history.append((now, beats))
        dead, watched = observe(watched, [silent(key, beat) for key, beat in beats.items()], now)

        for worker_id, beat in beats.items():
            unbroken = now
            for at, seen in reversed(history):
                if seen.get(worker_id) != beat:
                    break
                unbroken = at
            assert (silent(worker_id, beat) in dead) == (now - unbroken >= 30)
        assert watched.keys() == beats.keys()


# The holder


@pytest.mark.parametrize(
    ("ttl", "trusted"),
    [(timedelta(seconds=30), 28.7), (timedelta(seconds=2), 1.88), (timedelta(hours=1), 3563.0)],
)
def test_a_holder_stops_before_its_lease_does(ttl: timedelta, trusted: float) -> None:
    assert holder_deadline(1000.0, ttl) == pytest.approx(1000.0 + trusted)


@given(st.floats(0, 1e9), ttls)
def test_a_holder_may_work_for_most_of_its_lease(sent_at: float, ttl: timedelta) -> None:
    held = holder_deadline(sent_at, ttl) - sent_at

    assert 0.93 * ttl.total_seconds() < held < ttl.total_seconds()


@given(st.floats(0, 1e6), ttls, st.floats(1 - CLOCK_RATE_ERROR, 1.5), st.floats(0, 3), st.floats(0, 5))
def test_a_holder_with_a_slow_clock_has_stopped_before_it_can_be_called_dead(
    sent_at: float, ttl: timedelta, rate: float, travel: float, first_look: float
) -> None:
    """In true time: the beat is sent, arrives, its lease passes, and a reaper then watches for a whole lease."""
    stopped = sent_at + (holder_deadline(sent_at, ttl) - sent_at) / rate
    lease_until = sent_at + travel + ttl.total_seconds()
    _, watched = observe({}, [silent(ttl=ttl)], lease_until + first_look)

    assert stopped < lease_until
    assert observe(watched, [silent(ttl=ttl)], max(stopped, lease_until + first_look))[0] == []


@given(st.floats(0, 1e6), ttls)
def test_even_if_the_stores_clock_stepped_at_once_the_watch_outlasts_the_holder(sent_at: float, ttl: timedelta) -> None:
    _, watched = observe({}, [silent(ttl=ttl)], sent_at)

    assert observe(watched, [silent(ttl=ttl)], holder_deadline(sent_at, ttl))[0] == []
