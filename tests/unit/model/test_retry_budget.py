"""Retries take at most a fifth of the starts of a queue while first attempts wait, and everything otherwise."""

from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.order import AGING, Head, Turns, share_out
from tidewheel.model.resources import Needs
from tidewheel.model.retry_budget import RETRY_SHARE

NOW = 1_000_000.0
FIRST, AGAIN, OTHER = 1, 2, 3


def head(lane: int, due: list[float], *, retried: bool = False, queue: str = "q", **fields: object) -> Head:
    given = {"priority": 1, "tenant": 1, **fields}
    return Head(lane, due=due, queue=queue, retried=retried, **given)  # type: ignore[arg-type]


def plan(heads: list[Head], limit: int, **fields: object) -> dict[int, int]:
    quotas = share_out(heads, limit, now=NOW, turns=Turns(), **fields).quotas  # type: ignore[arg-type]
    counts: dict[int, int] = {}
    for (lane, _), number in quotas.items():
        counts[lane] = counts.get(lane, 0) + number
    return counts


def test_older_retries_get_a_fifth_while_first_attempts_wait() -> None:
    heads = [head(FIRST, [NOW - 1] * 500), head(AGAIN, [NOW - 9] * 500, retried=True)]
    assert plan(heads, 100) == {FIRST: 80, AGAIN: 20}


def test_retries_that_are_due_later_do_not_overtake() -> None:
    heads = [head(FIRST, [NOW - 9] * 500), head(AGAIN, [NOW - 1] * 500, retried=True)]
    assert plan(heads, 100) == {FIRST: 100}


def test_without_first_attempts_retries_get_everything() -> None:
    assert plan([head(AGAIN, [NOW - 9] * 500, retried=True)], 100) == {AGAIN: 100}


def test_what_first_attempts_leave_goes_to_retries() -> None:
    heads = [head(FIRST, [NOW - 1] * 8), head(AGAIN, [NOW - 9] * 500, retried=True)]
    assert plan(heads, 100) == {FIRST: 8, AGAIN: 92}


def test_first_attempts_of_another_queue_are_no_reason_to_wait() -> None:
    heads = [head(OTHER, [NOW - 1] * 500, queue="other"), head(AGAIN, [NOW - 9] * 500, retried=True)]
    assert plan(heads, 100) == {AGAIN: 100}


def test_first_attempts_of_a_lower_priority_are_a_reason_to_wait() -> None:
    heads = [head(FIRST, [NOW - 1] * 500, priority=2), head(AGAIN, [NOW - 9] * 500, retried=True, priority=0)]
    assert plan(heads, 100)[AGAIN] <= 20


def test_first_attempts_of_a_lower_priority_that_run_out_leave_the_rest() -> None:
    heads = [head(FIRST, [NOW - 1] * 3, priority=2), head(AGAIN, [NOW - 9] * 500, retried=True, priority=0)]
    assert plan(heads, 100) == {FIRST: 3, AGAIN: 97}


def test_first_attempts_that_may_be_there_beyond_what_was_seen_count() -> None:
    heads = [head(FIRST, [NOW - 1] * 10, more=True), head(AGAIN, [NOW - 9] * 10, retried=True, more=True)]
    assert plan(heads, 100)[AGAIN] <= 20


def test_first_attempts_that_do_not_fit_are_no_reason_to_wait() -> None:
    needs = Needs(resources={"gpu": 2})
    heads = [head(FIRST, [NOW - 1] * 50, needs=needs), head(AGAIN, [NOW - 9] * 50, retried=True)]
    assert plan(heads, 40, free={"gpu": 1}) == {AGAIN: 40}


@given(st.integers(1, 7), st.integers(30, 200))
def test_many_small_claims_come_to_the_same_share(limit: int, claims: int) -> None:
    turns, again, total = Turns(), 0, 0
    heads = [head(FIRST, [NOW - 1] * 50), head(AGAIN, [NOW - 9] * 50, retried=True)]
    for _ in range(claims):
        shares = share_out(heads, limit, now=NOW, turns=turns)
        turns = shares.turns
        again += shares.quotas.get((AGAIN, 1), 0)
        total += sum(shares.quotas.values())
    assert total == limit * claims
    assert RETRY_SHARE * total - 1 <= again <= RETRY_SHARE * total


def test_the_aged_among_retries_are_part_of_the_fifth() -> None:
    old = NOW - 2 * AGING.total_seconds()
    turns, again, total = Turns(), 0, 0
    heads = [head(FIRST, [NOW - 1] * 50), head(AGAIN, [old] * 50, retried=True)]
    for _ in range(100):
        shares = share_out(heads, 10, now=NOW, turns=turns)
        turns = shares.turns
        again += shares.quotas.get((AGAIN, 1), 0)
        total += sum(shares.quotas.values())
    assert 0.1 * total <= again <= RETRY_SHARE * total + 1


def test_idle_times_earn_retries_nothing() -> None:
    turns = Turns()
    for _ in range(100):  # first attempts alone
        turns = share_out([head(FIRST, [NOW - 1] * 50)], 10, now=NOW, turns=turns).turns
    heads = [head(FIRST, [NOW - 1] * 50), head(AGAIN, [NOW - 9] * 50, retried=True)]
    assert share_out(heads, 10, now=NOW, turns=turns).quotas[AGAIN, 1] <= 2


@st.composite
def some_heads(draw: st.DrawFn) -> list[Head]:
    lanes = draw(st.lists(st.integers(1, 12), unique=True, max_size=8))
    return [
        head(
            lane,
            sorted(draw(st.lists(st.floats(NOW - 400, NOW), max_size=20))),
            retried=draw(st.booleans()),
            queue=draw(st.sampled_from(["a", "b"])),
            priority=draw(st.integers(0, 2)),
            tenant=draw(st.integers(1, 3)),
        )
        for lane in lanes
    ]


@given(some_heads(), st.integers(1, 60))
def test_no_room_is_left_while_something_waits(heads: list[Head], limit: int) -> None:
    shares = share_out(heads, limit, now=NOW, turns=Turns())
    assert sum(shares.quotas.values()) == min(limit, sum(len(one.due) for one in heads))


@given(some_heads(), st.integers(1, 60))
def test_while_first_attempts_wait_retries_have_no_more_than_their_share(heads: list[Head], limit: int) -> None:
    """But for the aged, who have their own."""
    young = [one for one in heads if not one.due or one.due[0] > NOW - AGING.total_seconds()]
    shares = share_out(young, limit, now=NOW, turns=Turns())
    for queue in ("a", "b"):
        mine = [one for one in young if one.queue == queue]
        given = {one.lane: shares.quotas.get((one.lane, one.priority), 0) for one in mine}
        if any(given[one.lane] < len(one.due) for one in mine if not one.retried):
            again = sum(given[one.lane] for one in mine if one.retried)
            assert again <= RETRY_SHARE * sum(given.values()) + 1e-6
