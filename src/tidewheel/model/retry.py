"""Retry: how often a failed job is tried again, and how long it waits before."""

from datetime import timedelta
from typing import Final, Literal, assert_never

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_DELAY, check_duration

MAX_ATTEMPTS: Final = 10_000
MICROSECOND: Final = timedelta(microseconds=1)

Backoff = Literal["fixed", "linear", "exponential"]
Jitter = Literal["none", "full"]


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Five tries within about four minutes, which outlasts a restart of what the job depends on.

    Jitter is on by default, because jobs that failed together would otherwise come back together.
    """

    max_attempts: int = 5
    """How often the job is tried in all; 1 means that it is never tried again."""
    backoff: Backoff = "exponential"
    """How the wait grows with each failure: not at all, by `delay`, or twofold."""
    delay: timedelta = timedelta(seconds=15)
    """The longest wait after the first failure."""
    cap: timedelta = timedelta(hours=1)
    """The longest wait after any failure."""
    jitter: Jitter = "full"
    """`full` waits a random part of the time, `none` all of it."""


def retries_left(policy: RetryPolicy, failures: int) -> bool:
    """Tell whether a job that has failed so often is tried again."""
    return failures < policy.max_attempts


def retry_delay(policy: RetryPolicy, failures: int, rand: float) -> timedelta:
    """Return how long to wait after this many failures; `rand` is in [0, 1).

    A job that is tried again without a failure of its own waits as after the first.
    """
    wait = min(_uncapped(policy, max(failures, 1)), policy.cap // MICROSECOND)
    match policy.jitter:
        case "none":
            return wait * MICROSECOND
        case "full":
            return int(rand * wait) * MICROSECOND
        case unknown:
            assert_never(unknown)


def check_retry(policy: RetryPolicy, field: str = "retry") -> RetryPolicy:
    """Refuse policies that never run a job or whose waits make no sense."""
    if not 1 <= policy.max_attempts <= MAX_ATTEMPTS:
        raise Invalid(f"{field}.max_attempts", f"must be between 1 and {MAX_ATTEMPTS}, not {policy.max_attempts}")
    check_duration(f"{field}.delay", policy.delay, timedelta(0), MAX_DELAY)
    check_duration(f"{field}.cap", policy.cap, timedelta(0), MAX_DELAY)
    if policy.cap < policy.delay:
        raise Invalid(f"{field}.cap", "must not be shorter than the delay, which is the first wait")
    return policy


def _uncapped(policy: RetryPolicy, failures: int) -> int:
    """Return microseconds: whole numbers of any size, where a timedelta or a float would overflow."""
    delay = policy.delay // MICROSECOND
    match policy.backoff:
        case "fixed":
            return delay
        case "linear":
            return delay * failures
        case "exponential":
            return delay << min(failures - 1, 64)  # beyond 2**64 microseconds every cap has long been reached
        case unknown:
            assert_never(unknown)
