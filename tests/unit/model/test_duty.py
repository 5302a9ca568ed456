"""Duties are shared evenly, and change hands no more than that takes."""

from collections import Counter
from datetime import timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.duty import check_duties, share

NODES = [UUID(int=number) for number in range(1, 7)]
SINGLE = ["census", "expiry", "reaper"]
PARTS = [f"occurrences/{number}" for number in range(8)]
NAMES = [*SINGLE, *PARTS]

some_nodes = st.lists(st.sampled_from(NODES), min_size=1, unique=True)
some_holders = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(NODES))


def spread(due: dict[str, UUID], names: list[str], nodes: list[UUID]) -> list[int]:
    counted = Counter(due[name] for name in names)
    return [counted[node] for node in nodes]


@given(some_nodes, some_holders)
def test_nobody_has_two_more_than_another_of_either_sort(nodes: list[UUID], holders: dict[str, UUID]) -> None:
    due = share(holders, dict.fromkeys(nodes, NAMES))
    assert sorted(due) == sorted(NAMES)
    for names in (SINGLE, PARTS):
        counts = spread(due, names, nodes)
        assert max(counts) - min(counts) <= 1


@given(some_nodes, some_holders)
def test_what_was_shared_evenly_stays_as_it_is(nodes: list[UUID], holders: dict[str, UUID]) -> None:
    due = share(holders, dict.fromkeys(nodes, NAMES))
    assert share(due, dict.fromkeys(nodes, NAMES)) == due


@given(some_nodes, some_holders)
def test_whoever_gives_up_takes_nothing_of_that_sort_instead(nodes: list[UUID], holders: dict[str, UUID]) -> None:
    due = share(holders, dict.fromkeys(nodes, NAMES))
    for names in (SINGLE, PARTS):
        losers = {holders[name] for name in names if name in holders and holders[name] != due[name]}
        winners = {due[name] for name in names if due[name] != holders.get(name)}
        assert not losers & winners


def test_a_node_that_comes_gets_its_part_and_no_other_changes_hands() -> None:
    first, second = NODES[:2]
    alone = share({}, {first: NAMES})
    assert set(alone.values()) == {first}
    both = share(alone, {first: NAMES, second: NAMES})
    assert spread(both, PARTS, [first, second]) == [4, 4]
    three = share(both, dict.fromkeys(NODES[:3], NAMES))
    assert spread(three, PARTS, NODES[:3]) == [3, 3, 2]
    assert all(three[name] == both[name] for name in PARTS if three[name] != NODES[2])


def test_of_four_duties_and_three_nodes_nobody_has_none() -> None:
    names = ["a", "b", "c", "d"]
    holders = {"a": NODES[0], "b": NODES[0], "c": NODES[1], "d": NODES[1]}
    assert sorted(spread(share(holders, dict.fromkeys(NODES[:3], names)), names, NODES[:3])) == [1, 1, 2]


def test_a_duty_goes_only_to_those_who_are_ready_for_it() -> None:
    """As while a newer version is rolled out."""
    old, new = NODES[:2]
    due = share({"alerts": old}, {old: ["expiry", "reaper"], new: ["alerts", "expiry", "reaper"]})
    assert due["alerts"] == new
    assert set(due.values()) == {old, new}


@pytest.mark.parametrize(
    ("names", "ttl", "field"),
    [(["two words"], 5, "names"), ([""], 5, "names"), (["a"], 0, "ttl"), (["a"], -1, "ttl"), (["a"], 7200, "ttl")],
)
def test_bad_names_and_leases_are_refused(names: list[str], ttl: int, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_duties(names, timedelta(seconds=ttl))
    assert caught.value.field == field
