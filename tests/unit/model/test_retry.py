from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_DELAY
from tidewheel.model.retry import RetryPolicy, check_retry, retries_left, retry_delay

SECOND = timedelta(seconds=1)

rands = st.floats(0, 1, exclude_max=True)
failure_counts = st.integers(1, 10_000)


@st.composite
def policies(draw: st.DrawFn) -> RetryPolicy:
    delay, cap = sorted(draw(st.tuples(*[st.timedeltas(timedelta(0), MAX_DELAY)] * 2)))
    return check_retry(
        RetryPolicy(
            max_attempts=draw(st.integers(1, 10_000)),
            backoff=draw(st.sampled_from(["fixed", "linear", "exponential"])),
            delay=delay,
            cap=cap,
            jitter=draw(st.sampled_from(["none", "full"])),
        )
    )


def waits(count: int = 6, **policy: Any) -> list[int]:
    plain = RetryPolicy(**{"delay": 10 * SECOND, "cap": 100 * SECOND, "jitter": "none", **policy})
    return [retry_delay(plain, failures, 0.5) // SECOND for failures in range(1, count + 1)]


def test_a_fixed_wait_stays_the_same() -> None:
    assert waits(backoff="fixed") == [10, 10, 10, 10, 10, 10]


def test_a_linear_wait_grows_by_the_delay_up_to_the_cap() -> None:
    assert waits(11, backoff="linear") == [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 100]


def test_an_exponential_wait_doubles_up_to_the_cap() -> None:
    assert waits(backoff="exponential") == [10, 20, 40, 80, 100, 100]


def test_full_jitter_waits_a_random_part_of_the_time() -> None:
    policy = RetryPolicy(delay=10 * SECOND, cap=100 * SECOND)

    assert retry_delay(policy, 3, 0.0) == timedelta(0)
    assert retry_delay(policy, 3, 0.25) == 10 * SECOND
    assert retry_delay(policy, 9, 0.75) == 75 * SECOND


def test_by_default_five_tries_are_spread_over_minutes() -> None:
    policy = RetryPolicy()

    longest = [retry_delay(policy, failures, 0.999999) for failures in range(1, 5)]

    assert [round(wait / SECOND) for wait in longest] == [15, 30, 60, 120]
    assert retries_left(policy, 4)
    assert not retries_left(policy, 5)


def test_a_try_that_follows_no_failure_waits_as_after_the_first() -> None:
    policy = RetryPolicy(jitter="none")

    assert retry_delay(policy, 0, 0.5) == retry_delay(policy, 1, 0.5) == policy.delay


def test_a_single_attempt_means_no_retry() -> None:
    assert retries_left(RetryPolicy(max_attempts=1), 0)
    assert not retries_left(RetryPolicy(max_attempts=1), 1)


@given(policies(), failure_counts, rands)
def test_a_wait_is_never_negative_nor_over_the_cap(policy: RetryPolicy, failures: int, rand: float) -> None:
    assert timedelta(0) <= retry_delay(policy, failures, rand) <= policy.cap


@given(policies(), failure_counts, rands)
def test_a_wait_never_shrinks_with_more_failures(policy: RetryPolicy, failures: int, rand: float) -> None:
    assert retry_delay(policy, failures, rand) <= retry_delay(policy, failures + 1, rand)


@given(policies(), failure_counts, rands)
def test_jitter_only_ever_shortens_a_wait(policy: RetryPolicy, failures: int, rand: float) -> None:
    plain = msgspec.structs.replace(policy, jitter="none")

    assert retry_delay(policy, failures, rand) <= retry_delay(plain, failures, rand)


@given(policies())
def test_every_policy_ends(policy: RetryPolicy) -> None:
    assert retries_left(policy, policy.max_attempts - 1)
    assert not retries_left(policy, policy.max_attempts)


@given(policies())
def test_a_policy_survives_being_stored(policy: RetryPolicy) -> None:
    assert msgspec.json.decode(msgspec.json.encode(policy), type=RetryPolicy) == policy


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"max_attempts": 0}, "job.retry.max_attempts: must be between 1 and 10000, not 0"),
        ({"max_attempts": 10_001}, "job.retry.max_attempts: must be between 1 and 10000, not 10001"),
        ({"delay": -SECOND}, "job.retry.delay: must be between 0s and 3650d, not -1s"),
        ({"delay": timedelta.max, "cap": timedelta.max}, "job.retry.delay: must be between 0s and 3650d"),
        ({"cap": -SECOND}, "job.retry.cap: must be between 0s and 3650d, not -1s"),
        ({"cap": SECOND}, "job.retry.cap: must not be shorter than the delay"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_retry(RetryPolicy(**bad), "job.retry")

    assert str(caught.value).startswith(message)


def test_a_policy_of_unknown_words_is_not_read() -> None:
    for text in (b'{"backoff":"cubic"}', b'{"jitter":"some"}', b'{"attempts":3}'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(text, type=RetryPolicy)
