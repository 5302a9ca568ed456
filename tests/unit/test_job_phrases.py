"""Phrases, the moments in which jobs with them were made, and where these lead."""

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model import job_phrases
from tidewheel.model.ids import make_id
from tidewheel.model.job_phrases import (
    LONG,
    MOST_NOTED,
    MOST_STRETCHES,
    Said,
    Stretch,
    Trail,
    bounds_of_moment,
    bounds_of_period,
    moment_of,
    parts_of,
    period_of,
    phrases_of,
    said_by_one_alone,
    said_of_ends,
    stretches_on,
    trail_of,
)

MOMENTS = st.integers(2**30, 2**30 + 400)
TRAILS = st.lists(
    st.builds(
        lambda moments, reach: Trail(frozenset(m for m in moments if m >= reach), reach),
        st.frozensets(MOMENTS),
        MOMENTS,
    ),
    min_size=1,
    max_size=3,
)


def test_a_job_is_found_by_its_labels_name_and_description_in_small_letters() -> None:
    assert phrases_of('{"Team":"Blue","a":"x\\"y"}', '{"name":"A","description":"Ü","timeout":3}') == (
        "team=blue",
        'a=x"y',
        "a",
        "Ü",
    )
    assert phrases_of(None, '{"timeout":3}') == phrases_of(None, None) == ()


def test_of_one_job_no_more_is_noted_than_there_is_room_for_and_the_rest_is_said_to_be_long() -> None:
    labels = {f"label-{number}": "x" * 100 for number in range(32)}
    noted = phrases_of(json.dumps(labels), json.dumps({"name": "short", "description": "y" * 10_000}))
    [end] = said_of_ends([(1, UUID(int=7), "z" * 2_000)])

    assert sum(map(len, noted)) <= MOST_NOTED + 1
    assert (noted[0], noted[-2:]) == ("label-0=" + "x" * 100, (LONG, "short"))
    assert end.phrase == LONG


def test_long_texts_are_not_remembered() -> None:
    before = job_phrases._short_phrases_of.cache_info().currsize
    for number in range(10):
        phrases_of(None, json.dumps({"name": f"{number}" * 1_000}))

    assert job_phrases._short_phrases_of.cache_info().currsize == before


def test_the_parts_of_a_word_are_all_that_is_three_characters_long() -> None:
    assert parts_of("abcabc") == ["abc", "bca", "cab"]
    assert parts_of("ab") == []


@given(st.integers(2**38, 2**44), st.integers(0, 2**74 - 1))
def test_an_id_lies_within_its_moment_and_its_period(milliseconds: int, bits: int) -> None:
    job_id = make_id(milliseconds, bits)
    for below, floor in (bounds_of_moment(moment_of(job_id)), bounds_of_period(period_of(moment_of(job_id)))):
        assert floor <= job_id < below


def test_what_another_job_of_the_moment_is_found_by_is_not_its_own() -> None:
    one, other = make_id(2**40, 1), make_id(2**40, 2)
    rows = [
        (one, 1, '{"a":"1","b":"2"}', None, "Broke"),
        (other, 1, '{"b":"2"}', None, None),
        (other, 2, '{"a":"1"}', None, None),
    ]
    moment = moment_of(one)
    assert said_by_one_alone(one, rows) == [Said(1, "a=1", moment), Said(1, "broke", moment)]


def test_a_phrase_of_which_not_all_moments_were_read_bounds_what_is_known() -> None:
    assert trail_of([[9, 7, 5], [8, 2]], 3, 1) == Trail(frozenset({9, 8, 7, 5}), 5)
    assert trail_of([[9, 7], [8, 2]], 3, 1) == Trail(frozenset({9, 8, 7, 2}), 1)
    assert trail_of([], 3, 1) == Trail(frozenset(), 1)


@given(TRAILS, MOMENTS)
def test_no_job_that_may_be_on_all_trails_is_passed_over(trails: list[Trail], moment: int) -> None:
    floor = 2**30
    stretches, rest = stretches_on(trails, floor)
    job_id = make_id(moment << 10, 0)
    may_be = all(moment < trail.reach or moment in trail.moments for trail in trails)
    is_seen = any(stretch.floor <= job_id < stretch.below for stretch in stretches)
    assert not may_be or is_seen or (rest is not None and job_id < rest)
    assert len(stretches) <= MOST_STRETCHES
    _check_order(stretches, rest)


def _check_order(stretches: list[Stretch], rest: UUID | None) -> None:
    edges = [edge for stretch in stretches for edge in stretch]
    assert edges == sorted(edges, reverse=True)
    assert rest is None or not edges or rest <= edges[-1]
