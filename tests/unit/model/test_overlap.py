from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.overlap import (
    MAX_WAITING,
    START,
    Action,
    Alive,
    Decision,
    Overlap,
    Overlaps,
    check_max_concurrency,
    decide_due,
    decide_overlap,
)

policies = st.sampled_from(Overlap)
counts = st.integers(0, 300)
limits = st.none() | st.integers(1, 300)


@pytest.mark.parametrize("policy", Overlap)
def test_with_nothing_alive_the_next_one_starts(policy: Overlap) -> None:
    assert decide_overlap(policy, 0, 0) == START


@pytest.mark.parametrize(("running", "waiting"), [(1, 0), (0, 1)])
def test_skip_skips_while_one_is_alive_even_if_it_has_not_begun(running: int, waiting: int) -> None:
    assert decide_overlap(Overlap.SKIP, running, waiting) == Decision(
        action=Action.SKIP, reason="1 earlier run is alive, and 1 may be"
    )


def test_queue_waits_while_one_is_alive() -> None:
    assert decide_overlap(Overlap.QUEUE, 1, 2) == Decision(
        action=Action.WAIT, reason="3 earlier runs are alive, and 1 may be"
    )


def test_a_queue_that_is_too_long_skips() -> None:
    assert decide_overlap(Overlap.QUEUE, 1, MAX_WAITING - 1).action is Action.WAIT
    assert decide_overlap(Overlap.QUEUE, 1, MAX_WAITING) == Decision(
        action=Action.SKIP, reason="100 earlier jobs wait already"
    )


def test_allow_starts_whatever_is_alive() -> None:
    assert decide_overlap(Overlap.ALLOW, 5000, 5000) == START


def test_allow_waits_at_the_limit_if_one_is_given() -> None:
    assert decide_overlap(Overlap.ALLOW, 4, 0, 5) == START
    assert decide_overlap(Overlap.ALLOW, 5, 0, 5).action is Action.WAIT


def test_cancel_previous_makes_room_for_one() -> None:
    assert decide_overlap(Overlap.CANCEL_PREVIOUS, 1, 0) == Decision(
        action=Action.CANCEL_PREVIOUS, reason="1 earlier run is alive, and 1 may be", cancel=1
    )
    assert decide_overlap(Overlap.CANCEL_PREVIOUS, 2, 3, 3).cancel == 3


@given(policies, counts, counts, limits)
def test_below_the_limit_all_start_and_at_the_limit_none_does(
    policy: Overlap, running: int, waiting: int, limit: int | None
) -> None:
    starts = decide_overlap(policy, running, waiting, limit) == START

    if limit is None and policy is Overlap.ALLOW:
        assert starts
    else:
        assert starts == (running + waiting < (limit or 1))


@given(policies, counts, counts, limits)
def test_what_does_not_start_has_a_reason(policy: Overlap, running: int, waiting: int, limit: int | None) -> None:
    decision = decide_overlap(policy, running, waiting, limit)

    assert bool(decision.reason) == (decision.action is not Action.START)


@given(policies, counts, counts, limits)
def test_after_cancelling_there_is_room_for_exactly_one(
    policy: Overlap, running: int, waiting: int, limit: int | None
) -> None:
    decision = decide_overlap(policy, running, waiting, limit)

    assert bool(decision.cancel) == (decision.action is Action.CANCEL_PREVIOUS)
    if decision.cancel:
        assert running + waiting - decision.cancel == (limit or 1) - 1


@given(policies, counts, counts, limits)
def test_the_queue_never_grows_past_its_bound(policy: Overlap, running: int, waiting: int, limit: int | None) -> None:
    if decide_overlap(policy, running, waiting, limit).action is Action.WAIT:
        assert waiting < MAX_WAITING


@pytest.mark.parametrize("value", [0, -1, 10_001])
def test_a_limit_under_which_nothing_runs_is_refused(value: int) -> None:
    with pytest.raises(Invalid, match=r"^max_concurrency: must be between 1 and 10000, not "):
        check_max_concurrency(value)


@pytest.mark.parametrize("value", [None, 1, 10_000])
def test_a_sensible_limit_passes(value: int | None) -> None:
    assert check_max_concurrency(value) == value


# What is due


def alive(states: str) -> list[Alive]:
    """Jobs in the order of their times, of which some run (`r`) and some wait (`w`)."""
    begin = datetime(2030, 1, 1, tzinfo=UTC)
    return [Alive(begin + timedelta(seconds=n), UUID(int=n), state == "r") for n, state in enumerate(states)]


def ids(*numbers: int) -> list[UUID]:
    return [UUID(int=number) for number in numbers]


def test_of_those_that_are_due_together_the_first_runs_and_skip_leaves_out_the_others() -> None:
    decided = decide_due(Overlap.SKIP, None, alive("www")[::-1], ids(0, 1, 2))

    assert list(decided.skip) == ids(1, 2)
    assert decided.cancel == ()


def test_one_that_runs_already_or_has_ended_is_let_be() -> None:
    assert decide_due(Overlap.SKIP, None, alive("rr"), ids(0, 1, 7)) == Overlaps({}, ())


def test_the_latest_takes_the_place_of_all_before_it() -> None:
    """Who waits is gone at once; who runs is asked to stop, once."""
    decided = decide_due(Overlap.CANCEL_PREVIOUS, None, alive("rww"), ids(1, 2))

    assert decided == Overlaps({}, tuple(ids(0, 1)))


def test_one_that_was_decided_before_counts_as_alive() -> None:
    decided = decide_due(Overlap.SKIP, 2, alive("rww"), ids(2))

    assert decided.skip == {UUID(int=2): "2 earlier runs are alive, and 2 may be"}


@given(
    policy=policies,
    limit=limits,
    states=st.text("rw", max_size=12),
    due=st.sets(st.integers(0, 11), max_size=12),
)
def test_whatever_is_due_no_job_is_both_skipped_and_cancelled_and_none_that_runs_is_skipped(
    policy: Overlap, limit: int | None, states: str, due: set[int]
) -> None:
    jobs = alive(states)
    decided = decide_due(policy, limit, jobs, ids(*due))

    assert not decided.skip.keys() & set(decided.cancel)
    assert decided.skip.keys() <= {job.job_id for job in jobs if not job.running} & set(ids(*due))
    assert not decided.cancel or policy is Overlap.CANCEL_PREVIOUS
    left = [job for job in jobs if job.job_id not in decided.skip and job.job_id not in decided.cancel]
    if policy is Overlap.CANCEL_PREVIOUS and due >= set(range(len(jobs))):
        assert sum(not job.running for job in left) <= (limit or 1)
