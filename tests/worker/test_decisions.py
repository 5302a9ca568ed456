"""The pure decisions of a worker: outcomes, preemption, capacity, its lease."""

from dataclasses import dataclass
from datetime import timedelta

import pytest

from tests.builders import a_run
from tidewheel.model.job import Options
from tidewheel.model.outcome import Usage
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import Cause
from tidewheel.tasks.definition import Preempt
from tidewheel.tasks.ending import KNOWN_ELSEWHERE, End, Ended, outcome_of, refused
from tidewheel.worker.capacity import free_of
from tidewheel.worker.lease import Lease
from tidewheel.worker.preempt import next_to_resume, victim

THREE_TRIES = Options(retry=RetryPolicy(max_attempts=3, delay=timedelta(seconds=8), jitter="none"))


# Outcomes


def test_a_result_is_a_success_with_its_usage() -> None:
    usage = Usage(cpu_seconds=1.5)
    outcome = outcome_of(a_run(), Ended(end=End.RETURNED, result="7", usage=usage), 0.5)

    assert (outcome.cause, outcome.result, outcome.usage) == (Cause.RETURNED, "7", usage)


@pytest.mark.parametrize("end", [End.ERROR, End.TIMEOUT, End.RETRY])
def test_a_failure_is_tried_again_as_its_policy_says_until_that_is_used_up(end: End) -> None:
    first = outcome_of(a_run(THREE_TRIES), Ended(end=end, message="no"), 0.5)
    second = outcome_of(a_run(THREE_TRIES, failures=1), Ended(end=end), 0.5)
    third = outcome_of(a_run(THREE_TRIES, failures=2), Ended(end=end), 0.5)

    assert [first.cause, second.cause, third.cause] == [Cause.FAILED, Cause.FAILED, Cause.GAVE_UP]
    assert [first.delay, second.delay] == [timedelta(seconds=8), timedelta(seconds=16)]
    assert first.error is not None
    assert (first.error.reason, first.error.message) == (end.value, "no")


def test_a_task_may_choose_its_own_wait() -> None:
    ended = Ended(end=End.RETRY, after=timedelta(minutes=3))

    assert outcome_of(a_run(THREE_TRIES), ended, 0.5).delay == timedelta(minutes=3)
    assert outcome_of(a_run(THREE_TRIES, failures=2), ended, 0.5).cause is Cause.GAVE_UP


def test_a_fatal_end_is_final_at_once() -> None:
    assert outcome_of(a_run(THREE_TRIES), Ended(end=End.FATAL), 0.5).cause is Cause.GAVE_UP


@pytest.mark.parametrize("end", [End.SIGNAL, End.OOM])
def test_an_abnormal_end_counts_as_a_loss_and_not_as_a_failure(end: End) -> None:
    outcome = outcome_of(a_run(THREE_TRIES, failures=1), Ended(end=end), 0.5)

    assert outcome.cause is Cause.CRASHED
    assert outcome.delay == timedelta(seconds=8)


@pytest.mark.parametrize("end", [End.SIGNAL, End.OOM])
def test_who_may_not_be_tried_again_is_not_after_an_abnormal_end_either(end: End) -> None:
    outcome = outcome_of(a_run(THREE_TRIES, failures=1, losses=1), Ended(end=end), 0.5)

    assert outcome.cause is Cause.GAVE_UP
    assert outcome.error is not None
    assert outcome.error.reason == end.value


def test_who_was_asked_to_stop_has_stopped() -> None:
    outcome = outcome_of(a_run(), Ended(end=End.STOPPED), 0.5)

    assert (outcome.cause, outcome.error) == (Cause.STOPPED, None)


def test_of_a_long_traceback_the_end_is_kept() -> None:
    outcome = outcome_of(a_run(), Ended(end=End.ERROR, message="m" * 9_999, detail="x" * 99_999 + "the end"), 0.5)

    assert outcome.error is not None
    assert outcome.error.detail is not None
    assert len(outcome.error.message) <= 2_000
    assert len(outcome.error.detail) < 17_000
    assert outcome.error.detail.endswith("the end")


# Preemption and capacity


@dataclass
class Occupant:
    priority: Priority = Priority.LOW
    preempt: Preempt = "pause"
    since: float = 0.0
    paused: bool = False
    needs: Needs = NO_NEEDS
    held: frozenset[tuple[str, str]] = frozenset()


def test_nobody_makes_way_who_holds_a_limit_key_that_the_urgent_job_needs() -> None:
    a, b = frozenset({("default", "a")}), frozenset({("default", "b"), ("default", "c")})
    holder, other = Occupant(since=2.0, held=a), Occupant(since=1.0, held=b)

    assert victim([holder, other], Priority.HIGH, a) is other
    assert victim([holder], Priority.HIGH, a) is None
    assert victim([holder], Priority.HIGH, frozenset({("acme", "a")})) is holder, "another tenant's key is another key"
    assert victim([holder, other], Priority.HIGH) is holder


def test_the_least_urgent_makes_way_and_of_these_the_last_to_start() -> None:
    medium = Occupant(Priority.MEDIUM)
    low, younger = Occupant(since=1.0), Occupant(since=2.0)

    assert victim([medium, low, younger]) is younger
    assert victim([medium]) is medium
    assert victim([Occupant(Priority.HIGH)]) is None


def test_nobody_makes_way_for_an_equal() -> None:
    assert victim([Occupant(Priority.MEDIUM)], Priority.MEDIUM) is None
    assert victim([Occupant(Priority.LOW)], Priority.MEDIUM) is not None


def test_who_must_not_be_preempted_or_is_paused_already_stays() -> None:
    assert victim([Occupant(preempt="never"), Occupant(paused=True)]) is None


def test_pausing_is_chosen_over_starting_anew() -> None:
    pausable, younger = Occupant(since=1.0), Occupant(preempt="requeue", since=2.0)

    assert victim([younger, pausable]) is pausable


def test_a_run_whose_task_is_not_known_any_more_is_given_back_uncounted() -> None:
    run = a_run(failures=1)

    for outcome in (outcome_of(run, Ended(end=End.UNKNOWN), 0.5), refused(run, 0.0, known=False)):
        assert outcome is not None
        assert (outcome.cause, outcome.error, outcome.delay) == (Cause.RELEASED, None, KNOWN_ELSEWHERE)
    assert refused(run, 0.0, known=True) is None


def test_the_most_urgent_goes_on_first() -> None:
    low, medium = Occupant(paused=True), Occupant(Priority.MEDIUM, paused=True, since=5.0)

    assert next_to_resume([low, medium, Occupant(Priority.HIGH)]) is medium
    assert next_to_resume([Occupant()]) is None


def test_a_paused_run_keeps_all_but_its_cores() -> None:
    total = {"cpu": 2000, "memory": 100, "gpu": 1}
    one = Occupant(needs=Needs(resources={"cpu": 2000, "memory": 60}))

    assert free_of(total, [one]) == {"cpu": 0, "memory": 40, "gpu": 1}
    assert free_of(total, [one], aside=one) == {"cpu": 2000, "memory": 40, "gpu": 1}
    one.paused = True
    assert free_of(total, [one]) == {"cpu": 2000, "memory": 40, "gpu": 1}


def test_more_taken_than_there_is_leaves_nothing() -> None:
    holders = [Occupant(needs=Needs(resources={"cpu": 2000}))] * 2

    assert free_of({"cpu": 2000}, holders) == {"cpu": 0}


# The lease


def test_a_lease_counts_from_before_the_beat_was_sent_and_ends_before_the_store_thinks() -> None:
    lease = Lease(timedelta(seconds=10), 100.0)

    assert lease.until < 110.0
    assert lease.fence_at < lease.until
    assert lease.renew(105.0, 108.0)
    assert 114.0 < lease.until < 115.0


def test_an_answer_after_the_end_of_the_lease_is_worth_nothing() -> None:
    lease = Lease(timedelta(seconds=10), 100.0)
    until = lease.until

    assert not lease.renew(109.0, until)
    assert lease.until == until


def test_an_answer_that_was_overtaken_does_not_shorten_the_lease() -> None:
    lease = Lease(timedelta(seconds=10), 100.0)
    lease.renew(105.0, 105.1)
    until = lease.until

    assert lease.renew(103.0, 105.2)
    assert lease.until == until
