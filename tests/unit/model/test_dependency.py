"""Who may wait for whom, who is let go, and results as arguments."""

from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.dependency import (
    Decision,
    Standing,
    check_after,
    check_own_id,
    decide,
    fill_references,
    find_cycle,
    find_references,
    stand,
)
from tidewheel.model.ids import make_id
from tidewheel.model.states import State

A, B, C, D = (UUID(int=n) for n in range(1, 5))
NODES = st.integers(0, 7).map(lambda n: UUID(int=n))
GRAPHS = st.dictionaries(NODES, st.lists(NODES, max_size=4))


# Rings


@pytest.mark.parametrize(
    ("after", "ring"),
    [
        ({}, []),
        ({A: [], B: [A], C: [A, B]}, []),
        ({A: [D], B: [A]}, []),
        ({A: [A]}, [A]),
        ({A: [B], B: [A]}, [A, B]),
        ({A: [B], B: [C], C: [B]}, [B, C]),
        ({D: [], A: [D, C], B: [A], C: [B]}, [A, C, B]),
    ],
)
def test_a_ring_is_found_if_there_is_one(after: dict[UUID, list[UUID]], ring: list[UUID]) -> None:
    assert find_cycle(after) == ring


@given(GRAPHS)
def test_what_is_called_a_ring_is_one_and_without_one_there_is_an_order(graph: dict[UUID, list[UUID]]) -> None:
    ring = find_cycle(graph)
    if ring:
        assert len(set(ring)) == len(ring)
        for job, parent in zip(ring, [*ring[1:], ring[0]], strict=True):
            assert parent in graph[job]
        return
    left = dict(graph)
    while left:
        free = [job for job, parents in left.items() if not any(parent in left for parent in parents)]
        assert free
        for job in free:
            del left[job]


def test_a_long_chain_needs_no_deep_stack() -> None:
    chain = [UUID(int=n) for n in range(100_000)]
    after = {job: [chain[index - 1]] if index else [] for index, job in enumerate(chain)}
    assert find_cycle(after) == []
    after[chain[0]] = [chain[-1]]
    assert len(find_cycle(after)) == len(chain)


# Who is let go


@pytest.mark.parametrize(
    ("policy", "ended", "expected"),
    [
        ("skip", {}, Standing([A, B], None)),
        ("skip", {A: State.SUCCEEDED}, Standing([B], None)),
        ("skip", {A: State.SUCCEEDED, B: State.SUCCEEDED}, Standing([], None)),
        ("skip", {B: State.DEAD}, Standing([A, B], B)),
        ("run", {A: State.DEAD}, Standing([B], None)),
        ("run", {A: State.DEAD, B: State.SKIPPED}, Standing([], None)),
        ("hold", {A: State.DEAD, B: State.SUCCEEDED}, Standing([A], None)),
    ],
)
def test_a_new_job_waits_for_those_of_its_parents_that_it_must(
    policy: str, ended: dict[UUID, str], expected: Standing
) -> None:
    assert stand([A, B], policy, ended) == expected


def test_children_go_by_their_own_policies() -> None:
    edges = [(A, B), (A, C), (A, D)]
    policies = {B: "skip", C: "run", D: "hold"}
    assert decide(edges, {A: State.SUCCEEDED}, policies) == Decision(edges, {})
    assert decide(edges, {A: State.DEAD}, policies) == Decision([(A, C)], {B: A})
    assert decide(edges, {A: State.DEAD}, {}) == Decision([], {}), "nobody is blocked any more"
    assert decide(edges, {}, policies) == Decision([], {}), "nobody has ended"


def test_skipping_goes_on_downwards_and_counts_each_child_once() -> None:
    edges = [(A, B), (A, C), (B, D), (C, D)]
    assert decide(edges, {A: State.DEAD}, dict.fromkeys((B, C, D), "skip")) == Decision([], {B: A, C: A, D: B})
    runs = {B: "skip", C: "skip", D: "run"}
    assert decide(edges, {A: State.DEAD}, runs) == Decision([(B, D), (C, D)], {B: A, C: A})
    assert decide(edges, {A: State.DEAD}, {B: "hold", C: "skip", D: "skip"}) == Decision([], {C: A, D: C})


def test_a_child_that_is_skipped_is_not_counted_down_as_well() -> None:
    ended = {A: State.SUCCEEDED, B: State.CANCELLED}
    assert decide([(A, C), (B, C)], ended, {C: "skip"}) == Decision([], {C: B})


# What may be asked for


@pytest.mark.parametrize("bad", [UUID(int=1), UUID("0190a6f2-7b1c-4abc-8def-0123456789ab"), "text", 7])
def test_an_own_id_must_be_of_version_seven(bad: object) -> None:
    with pytest.raises(Invalid) as refusal:
        check_own_id(bad)
    assert refusal.value.field == "id"
    check_own_id(make_id(1, 1))


def test_parents_are_ids_each_once_and_not_too_many() -> None:
    check_after((A, B), "hold")
    check_after(tuple(UUID(int=n) for n in range(100_000)), "skip")
    for after in ("text", ("text",), (A, A), tuple(UUID(int=n) for n in range(100_001))):
        with pytest.raises(Invalid, match="after"):
            check_after(after, "skip")
    with pytest.raises(Invalid, match="on_parent_failure"):
        check_after((), "later")


# Results as arguments


def _of(job: UUID) -> dict[str, str]:
    return {"$result_of": str(job)}


def test_results_stand_where_they_were_asked_for() -> None:
    args = {"a": _of(A), "deep": [1, {"b": [_of(B), _of(A)]}], "plain": "$result_of"}
    assert find_references(args) == [A, B]
    filled = fill_references(args, {A: {"x": 1}, B: None})
    assert filled == {"a": {"x": 1}, "deep": [1, {"b": [None, {"x": 1}]}], "plain": "$result_of"}
    assert args["a"] == _of(A), "what was given stays as it is"


def test_a_result_that_looks_like_a_reference_is_left_alone() -> None:
    assert fill_references({"a": _of(A)}, {A: _of(B)}) == {"a": _of(B)}


def test_a_result_that_is_missing_is_an_error() -> None:
    with pytest.raises(Invalid, match=f"no result of job {A}"):
        fill_references({"a": _of(A)}, {B: 1})


@pytest.mark.parametrize(
    "bad",
    [
        {"$result_of": str(A)},
        {"a": {"$result_of": 7}},
        {"a": {"$result_of": "no id"}},
        {"a": [{"$result_of": str(A), "more": 1}]},
    ],
)
def test_what_only_looks_like_a_reference_is_refused(bad: Any) -> None:
    with pytest.raises(Invalid) as refusal:
        find_references(bad)
    assert refusal.value.field == "args"


@given(
    st.recursive(
        st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)
    )
)
def test_arguments_without_references_stay_as_they_are(value: Any) -> None:
    assert find_references(value) == []
    assert fill_references(value, {}) == value
