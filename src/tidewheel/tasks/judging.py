"""What becomes of a run whose task raised: the task's own wish first, then the retry policy."""

import traceback
from datetime import timedelta
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.model.job import Options, Run
from tidewheel.model.outcome import NO_DELAY, Failure, Outcome
from tidewheel.model.retry import RetryPolicy, retries_left, retry_delay
from tidewheel.model.states import Cause
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.signals import Fatal, Retry

MAX_MESSAGE: Final = 2_000
MAX_DETAIL: Final = 32_000

_DEFAULTS: Final = Options()
_options: Final = msgspec.json.Decoder(Options).decode


def options_of(run: Run) -> Options:
    """Return the options that a job was submitted with."""
    return _DEFAULTS if run.options is None else _options(run.options)


def after_error(run: Run, policy: RetryPolicy, error: BaseException, rand: float) -> Outcome:
    """Return how a run ended that raised; `rand` in [0, 1) spreads the waits of jobs that failed together."""
    if isinstance(error, Fatal):
        return Outcome(run.job_id, run.token, Cause.GAVE_UP, error=_failure("fatal", error))
    failure = _failure("retry" if isinstance(error, Retry) else "error", error)
    failures = run.failures + 1
    if not retries_left(policy, failures):
        return Outcome(run.job_id, run.token, Cause.GAVE_UP, error=failure)
    wait = _asked_for(error)
    delay = retry_delay(policy, failures, rand) if wait is None else wait
    return Outcome(run.job_id, run.token, Cause.FAILED, error=failure, delay=delay)


def _asked_for(error: BaseException) -> timedelta | None:
    if not isinstance(error, Retry) or error.after is None:
        return None
    try:
        return max(parse_duration(error.after, "after"), NO_DELAY)
    except Invalid:
        return None  # a wish that cannot be read shall not turn a retry into something else


def _failure(reason: str, error: BaseException) -> Failure:
    own = isinstance(error, Fatal | Retry)
    message = str(error) if own else "".join(traceback.format_exception_only(error)).strip()
    detail = None if own and error.__cause__ is None else "".join(traceback.format_exception(error))
    return Failure(
        reason=reason,
        message=clean_text(message, MAX_MESSAGE),
        detail=None if detail is None else clean_text(detail, MAX_DETAIL),
    )
