"""The order of a claim: priority, turns of tenants, FIFO, the share of the aged, what fits."""

from collections import Counter
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.order import AGED_SHARE, AGED_TURN, AGING, Head, Turns, passed_over, share_out, turns_by_age
from tidewheel.model.resources import Needs

NOW = 1_000_000.0
OLD = NOW - AGING.total_seconds()


def head(lane: int, priority: int, due: list[float], *, tenant: int = 1, **fields: object) -> Head:
    return Head(lane, priority, tenant, due, **fields)  # type: ignore[arg-type]


def plan(heads: list[Head], limit: int, turns: Turns | None = None, **fields: object) -> dict[tuple[int, int], int]:
    return share_out(heads, limit, now=NOW, turns=turns or Turns(), **fields).quotas  # type: ignore[arg-type]


@st.composite
def some_heads(draw: st.DrawFn) -> list[Head]:
    pairs = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(0, 2)), unique=True, max_size=12))
    return [
        head(
            lane,
            priority,
            sorted(draw(st.lists(st.floats(OLD - 100, NOW), max_size=8))),
            tenant=draw(st.integers(1, 3)),
            weight=draw(st.sampled_from([1.0, 2.0, 5.0])),
        )
        for lane, priority in pairs
    ]


@given(some_heads(), st.integers(1, 40))
def test_a_plan_takes_as_much_as_there_is_and_no_more(heads: list[Head], limit: int) -> None:
    quotas = plan(heads, limit)
    seen = {(h.lane, h.priority): len(h.due) for h in heads}
    assert all(0 < n <= seen[pair] for pair, n in quotas.items())
    assert sum(quotas.values()) == min(limit, sum(seen.values()))


@given(some_heads(), st.integers(1, 40))
def test_a_higher_priority_goes_first_but_for_the_share_of_the_aged(heads: list[Head], limit: int) -> None:
    quotas = plan(heads, limit)
    for priority in range(2):
        waiting = sum(len(h.due) - quotas.get((h.lane, h.priority), 0) for h in heads if h.priority <= priority)
        lower = sum(n for (_, level), n in quotas.items() if level > priority)
        if waiting:
            assert lower <= max(1, AGED_SHARE * limit)


@given(some_heads(), st.integers(1, 60), st.sets(st.integers(0, 11)))
def test_a_tenant_alone_gets_what_turns_would_give_it(heads: list[Head], limit: int, longer: set[int]) -> None:
    """Means that nobody needs bound nothing, but make the plan go start by start."""
    heads = [msgspec.structs.replace(h, weight=h.tenant, more=number in longer) for number, h in enumerate(heads)]
    earlier = Turns(served={(0, 1): 3.0, (1, 2): 2.5}, reached={0: 2.0, 2: 9.0}, owed=0.5)
    at_once = share_out(heads, limit, now=NOW, turns=earlier)
    one_by_one = share_out(heads, limit, now=NOW, turns=earlier, free={"cpu": 1})
    assert (at_once.order, at_once.quotas, at_once.guessed) == (
        one_by_one.order,
        one_by_one.quotas,
        one_by_one.guessed,
    )
    assert at_once.turns.served == pytest.approx(one_by_one.turns.served)
    assert at_once.turns.reached == pytest.approx(one_by_one.turns.reached)
    assert at_once.turns.owed == pytest.approx(one_by_one.turns.owed)


def test_without_aged_jobs_priority_is_strict() -> None:
    heads = [head(1, 2, [NOW - 9] * 10), head(1, 0, [NOW - 1] * 3), head(1, 1, [NOW - 5] * 3)]
    assert plan(heads, 5) == {(1, 0): 3, (1, 1): 2}


def test_an_urgent_job_starts_at_once_behind_any_number_of_old_ones() -> None:
    heads = [head(1, 2, [OLD - 1000.0] * 100, more=True), head(2, 0, [NOW])]
    assert plan(heads, 1) == {(2, 0): 1}


def test_the_aged_get_their_share_of_a_large_claim() -> None:
    heads = [head(1, 0, [NOW] * 200, more=True), head(1, 2, [OLD - 1] * 200, more=True)]
    assert plan(heads, 200) == {(1, 0): 180, (1, 2): 20}


def test_the_aged_get_their_share_over_many_small_claims() -> None:
    turns, starts = Turns(), Counter[int]()
    for _ in range(1000):
        heads = [head(1, 0, [NOW]), head(2, 2, [OLD - 1])]
        shares = share_out(heads, 1, now=NOW, turns=turns)
        turns = shares.turns
        starts.update({priority: n for (_, priority), n in shares.quotas.items()})
    assert 95 <= starts[2] <= 105


def test_of_the_aged_the_oldest_goes_first_whatever_its_priority() -> None:
    heads = [head(1, 0, [NOW] * 20), head(1, 1, [OLD - 1]), head(1, 2, [OLD - 2])]
    assert plan(heads, 10) == {(1, 0): 9, (1, 2): 1}


def test_aged_jobs_that_do_not_fit_run_up_no_debt() -> None:
    big = Needs(resources={"cpu": 8})
    turns = Turns()
    for _ in range(1000):
        heads = [head(1, 0, [NOW]), head(2, 2, [OLD - 1] * 50, needs=big)]
        turns = share_out(heads, 1, now=NOW, turns=turns, free={"cpu": 1}).turns
    heads = [head(1, 0, [NOW] * 10), head(2, 2, [OLD - 1] * 50, needs=big)]
    quotas = share_out(heads, 10, now=NOW, turns=turns, free={"cpu": 800}).quotas
    assert quotas[1, 0] >= 8


def test_tenants_take_turns_however_much_one_has() -> None:
    heads = [head(1, 1, [NOW - 100] * 50, tenant=1, more=True), head(2, 1, [NOW] * 5, tenant=2)]
    assert plan(heads, 10) == {(1, 1): 5, (2, 1): 5}


def test_turns_go_on_from_claim_to_claim() -> None:
    turns, starts = Turns(), Counter[int]()
    for _ in range(30):
        heads = [head(lane, 1, [NOW - lane] * 9, tenant=lane) for lane in (1, 2, 3)]
        shares = share_out(heads, 1, now=NOW, turns=turns)
        turns = shares.turns
        starts.update({lane: n for (lane, _), n in shares.quotas.items()})
    assert starts == {1: 10, 2: 10, 3: 10}


def test_turns_follow_the_weights() -> None:
    heads = [head(1, 1, [NOW] * 90, tenant=1, weight=2.0), head(2, 1, [NOW] * 90, tenant=2)]
    assert plan(heads, 30) == {(1, 1): 20, (2, 1): 10}


def test_who_was_idle_saved_up_no_turns() -> None:
    turns = Turns()
    for _ in range(100):
        turns = share_out([head(1, 1, [NOW] * 5, tenant=1)], 5, now=NOW, turns=turns).turns
    heads = [head(1, 1, [NOW] * 50, tenant=1), head(2, 1, [NOW] * 50, tenant=2)]
    quotas = share_out(heads, 10, now=NOW, turns=turns).quotas
    assert quotas == {(1, 1): 5, (2, 1): 5}


def test_a_tenant_s_lanes_are_served_first_in_first_out() -> None:
    heads = [head(1, 1, [NOW - 9, NOW - 3]), head(2, 1, [NOW - 8, NOW - 7, NOW - 1])]
    assert plan(heads, 3) == {(1, 1): 1, (2, 1): 2}


def test_of_equals_in_time_the_first_submitted_goes_first_across_lanes() -> None:
    ids = [UUID(int=n) for n in range(4)]
    heads = [head(1, 1, [NOW] * 2, ids=[ids[1], ids[3]]), head(2, 1, [NOW] * 2, ids=[ids[0], ids[2]])]
    assert plan(heads, 1) == {(2, 1): 1}
    assert plan(heads, 3) == {(1, 1): 1, (2, 1): 2}


def test_no_more_is_planned_than_fits() -> None:
    needs = Needs(resources={"cpu": 2000})
    heads = [head(1, 0, [NOW] * 5, needs=needs), head(2, 1, [NOW] * 5)]
    assert plan(heads, 8, free={"cpu": 5000}) == {(1, 0): 2, (2, 1): 5}


def test_what_may_lie_beyond_the_view_gets_what_is_left() -> None:
    heads = [head(1, 1, [NOW] * 2, more=True), head(2, 0, [NOW])]
    assert plan(heads, 10) == {(2, 0): 1, (1, 1): 9}


def test_what_may_lie_beyond_the_view_comes_before_a_lower_priority() -> None:
    heads = [head(1, 0, [NOW] * 2, more=True), head(2, 0, [NOW], more=True), head(1, 1, [NOW] * 9)]
    shares = share_out(heads, 9, now=NOW, turns=Turns())
    assert shares.quotas == {(1, 0): 5, (2, 0): 4}
    assert shares.guessed


def test_a_plan_of_what_was_seen_is_no_guess() -> None:
    heads = [head(1, 0, [NOW] * 2, more=True), head(1, 1, [NOW] * 9)]
    assert not share_out(heads, 2, now=NOW, turns=Turns()).guessed


def test_jobs_of_high_priority_that_are_aged_do_not_use_up_the_share_of_older_ones() -> None:
    """Else those of low priority would wait for ever under a load that is too high for long."""
    turns, kinds = Turns(), []
    for _ in range(20):
        shares = share_out([head(1, 0, [OLD - 5] * 9), head(2, 2, [OLD - 9])], 1, now=NOW, turns=turns)
        turns = shares.turns
        kinds += [lane for lane, _ in shares.order]
    assert Counter(kinds) == {1: 18, 2: 2}


def test_what_was_not_seen_is_shared_by_weight_too() -> None:
    heads = [head(1, 1, [NOW - 9] * 5, more=True), head(2, 1, [NOW - 5] * 5, tenant=2, weight=3.0, more=True)]
    assert plan(heads, 40) == {(1, 1): 10, (2, 1): 30}


def test_who_has_no_more_than_was_seen_gets_no_more() -> None:
    heads = [head(1, 1, [NOW - 9] * 5), head(2, 1, [NOW - 5] * 5, tenant=2, more=True), head(3, 2, [NOW - 1])]
    assert plan(heads, 40) == {(1, 1): 5, (2, 1): 35}


def test_a_slow_gate_bounds_all_that_lies_behind_it_together() -> None:
    gate, other = UUID(int=1), UUID(int=2)
    heads = [
        head(1, 0, [NOW - 9] * 5, paces=(gate,)),
        head(2, 0, [NOW - 8] * 5, paces=(gate, other), more=True),
        head(3, 2, [NOW - 1] * 5),
    ]
    assert plan(heads, 10, rooms={gate: 3, other: 9}) == {(1, 0): 3, (3, 2): 5}
    assert plan(heads, 10, rooms={gate: 9, other: 2}) == {(1, 0): 5, (2, 0): 2, (3, 2): 3}
    assert plan(heads, 10, rooms={gate: 0, other: 2}) == {(3, 2): 5}


def test_the_overdue_come_first_in_a_tenth_of_the_starts_and_else_by_their_priority() -> None:
    heads = [head(1, 0, [NOW - 1] * 100), head(2, 2, [NOW] * 100, overdue=True)]
    assert plan(heads, 1) == {(2, 2): 1}, "one start is kept for them"
    turns, given = Turns(), Counter[int]()
    for _ in range(100):
        shares = share_out(heads, 1, now=NOW, turns=turns)
        turns = shares.turns
        given.update(lane for lane, _ in shares.order)
    assert given[2] in {10, 11}
    assert plan([heads[1]], 5) == {(2, 2): 5}, "nobody else is there"


@given(st.lists(st.tuples(st.integers(1, 30), st.integers(0, 3)), min_size=1))
def test_of_ten_starts_under_a_limit_one_goes_by_age_and_no_more(starts: list[tuple[int, int]]) -> None:
    """Whatever the room, and however many are old enough."""
    passed, number, aged, wanted = 0, 0, 0, 0
    for room, old in starts:
        by_age = min(turns_by_age(passed, room), old)
        passed = passed_over(passed, room, by_age)
        number, aged, wanted = number + room, aged + by_age, wanted + old
    assert 0 <= passed < AGED_TURN
    assert aged <= min(wanted, number // AGED_TURN + 1)


def test_a_turn_by_age_comes_after_nine_others_and_is_kept() -> None:
    assert [turns_by_age(passed, 1) for passed in range(AGED_TURN)] == [0] * 9 + [1]
    assert passed_over(0, 500, 0) == AGED_TURN - 1
    assert passed_over(AGED_TURN - 1, 1, 1) == passed_over(3, 1, 1) == 0
