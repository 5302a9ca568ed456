"""Ids sort by time and by the order in which they were made."""

from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.ids import IdMaker, make_id, time_of

MILLISECONDS = st.integers(0, 2**42)


@given(MILLISECONDS, st.integers(0, 2**74 - 1))
def test_an_id_is_a_uuid_of_version_seven_that_carries_its_time(milliseconds: int, bits: int) -> None:
    made = make_id(milliseconds, bits)
    assert (made.version, made.variant) == (7, UUID(int=2 << 62).variant)
    assert time_of(made) == datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)


@given(st.lists(MILLISECONDS, min_size=2, max_size=50), st.randoms(use_true_random=False))
def test_ids_rise_strictly_whatever_the_clock_does(clock: list[int], random: Random) -> None:
    ticks = iter(clock)
    make = IdMaker(lambda: next(ticks), random)
    made = [make() for _ in clock]
    assert made == sorted(set(made))
    assert [one.bytes for one in made] == sorted(one.bytes for one in made)


@given(MILLISECONDS, st.integers(0, 2**74 - 1), st.integers(0, 2**74 - 1))
def test_more_random_bits_make_a_later_id(milliseconds: int, one: int, other: int) -> None:
    assert (make_id(milliseconds, one) < make_id(milliseconds, other)) == (one < other)


def test_ids_of_one_millisecond_do_not_repeat() -> None:
    make = IdMaker(lambda: 1_000, Random(1))
    made = {make() for _ in range(100_000)}
    assert len(made) == 100_000
    assert {time_of(one) for one in made} == {datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC)}


@given(st.uuids())
def test_the_time_of_a_foreign_id_is_some_instant(foreign: UUID) -> None:
    assert time_of(foreign).tzinfo is UTC
