"""What an ended run means for its job: success, another attempt, or the end; pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final

import msgspec

from tidewheel.model.job import Options, Run
from tidewheel.model.outcome import Failure, Outcome
from tidewheel.model.retry import RetryPolicy, retries_left, retry_delay
from tidewheel.model.states import Cause
from tidewheel.worker.execution import End, Ended

MAX_MESSAGE: Final = 2_000
MAX_DETAIL: Final = 16_000

_ABNORMAL: Final = (End.SIGNAL, End.OOM)
_REASONS: Final[Mapping[End, str]] = {
    End.RETRY: "retry",
    End.FATAL: "fatal",
    End.ERROR: "error",
    End.SIGNAL: "signal",
    End.OOM: "oom",
    End.TIMEOUT: "timeout",
    End.STOPPED: "cancelled",
}
_decode = msgspec.json.Decoder(Options).decode


@lru_cache(maxsize=1024)
def options_of(text: str | None) -> Options:
    """Return the options of a run; few differ, so they are read once."""
    return Options() if text is None else _decode(text)


def outcome_of(run: Run, ended: Ended, rand: float, started_at: datetime | None = None) -> Outcome:
    """Return what to report of a run; `rand` in [0, 1) spreads the retries."""
    if ended.end is End.RETURNED:
        return Outcome(run.job_id, run.token, Cause.RETURNED, ended.result, started_at=started_at, usage=ended.usage)
    cause, delay = _next(run, ended, options_of(run.options).retry, rand)
    error = None if cause is Cause.STOPPED else _failure(ended)
    return Outcome(
        run.job_id, run.token, cause, error=error, delay=delay, started_at=started_at, usage=ended.usage
    )


def _next(run: Run, ended: Ended, policy: RetryPolicy, rand: float) -> tuple[Cause, timedelta]:
    if ended.end is End.STOPPED:
        return Cause.STOPPED, timedelta(0)
    if ended.end is End.FATAL:
        return Cause.GAVE_UP, timedelta(0)
    if ended.end in _ABNORMAL:
        return Cause.CRASHED, retry_delay(policy, run.losses + 1, rand)
    failures = run.failures + 1
    if not retries_left(policy, failures):
        return Cause.GAVE_UP, timedelta(0)
    return Cause.FAILED, retry_delay(policy, failures, rand) if ended.after is None else ended.after


def _failure(ended: Ended) -> Failure:
    message = ended.message[:MAX_MESSAGE]
    return Failure(reason=_REASONS[ended.end], message=message, detail=_cut(ended), exit_code=ended.exit_code)


def _cut(ended: Ended) -> str | None:
    """Keep the end of a long detail: the last lines of a traceback tell most."""
    if ended.detail is None or len(ended.detail) <= MAX_DETAIL:
        return ended.detail
    return f"[… {len(ended.detail) - MAX_DETAIL} characters left out …]\n{ended.detail[-MAX_DETAIL:]}"
