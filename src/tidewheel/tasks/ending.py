"""How a run of a task ends, and what that means for its job: success, another attempt, or the end; pure."""

import enum
import traceback
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_delay, clean_text
from tidewheel.model.job import Options, Run
from tidewheel.model.outcome import MAX_MESSAGE, NO_DELAY, Failure, Outcome, Usage, end_of, shortened
from tidewheel.model.retry import RetryPolicy, retries_left, retry_delay
from tidewheel.model.states import Cause
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.signals import Fatal, Retry

NOT_MEASURED: Final = Usage()
KNOWN_ELSEWHERE: Final = timedelta(seconds=30)
"""After how long a job may be taken again whose task turned out to be unknown: by then others may have it."""
TOO_LONG: Final = "ran longer than its timeout"


class End(enum.StrEnum):
    """How a run ended, seen from outside."""

    RETURNED = "returned"
    RETRY = "retry"
    """It asked for another attempt."""
    FATAL = "fatal"
    """It said, or it is plain, that another attempt cannot help."""
    ERROR = "error"
    """An exception, or a non-zero exit."""
    SIGNAL = "signal"
    """A signal that was not ours ended it."""
    OOM = "oom"
    TIMEOUT = "timeout"
    STOPPED = "stopped"
    """It was asked to stop, by a cancellation or a drain."""
    UNKNOWN = "unknown"
    """It did not even begin: the code of this worker has no such task any more."""


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """The end of an execution."""

    end: End
    result: str | None = None
    """JSON text, of any length."""
    message: str = ""
    detail: str | None = None
    """For example a traceback, or the exit code in words."""
    exit_code: int | None = None
    after: timedelta | None = None
    """The wait that a RETRY asked for."""
    usage: Usage = NOT_MEASURED
    files: Mapping[str, Path] = {}
    """Output files by name, to be stored before `Execution.close`."""


_PACKAGE: Final = Path(__file__).parents[1]
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
    if ended.end is End.UNKNOWN:
        return given_back(run, KNOWN_ELSEWHERE)
    if ended.end is End.RETURNED:
        return Outcome(run.job_id, run.token, Cause.RETURNED, ended.result, started_at=started_at, usage=_usage(ended))
    cause, delay = _next(run, ended, options_of(run.options).retry, rand)
    error = None if cause is Cause.STOPPED else _failure(ended)
    return Outcome(run.job_id, run.token, cause, error=error, delay=delay, started_at=started_at, usage=_usage(ended))


def _next(run: Run, ended: Ended, policy: RetryPolicy, rand: float) -> tuple[Cause, timedelta]:
    if ended.end is End.STOPPED:
        return Cause.STOPPED, timedelta(0)
    if ended.end is End.FATAL:
        return Cause.GAVE_UP, timedelta(0)
    if ended.end in _ABNORMAL:
        again = retries_left(policy, run.attempt)
        return (Cause.CRASHED, retry_delay(policy, run.losses + 1, rand)) if again else (Cause.GAVE_UP, timedelta(0))
    failures = run.failures + 1
    if not retries_left(policy, failures):
        return Cause.GAVE_UP, timedelta(0)
    return Cause.FAILED, retry_delay(policy, failures, rand) if ended.after is None else ended.after


def _usage(ended: Ended) -> Usage | None:
    return None if ended.usage is NOT_MEASURED else ended.usage


def _failure(ended: Ended) -> Failure:
    failure = Failure(reason=_REASONS[ended.end], message=ended.message, detail=ended.detail, exit_code=ended.exit_code)
    return shortened(failure)


def given_back(run: Run, after: timedelta = NO_DELAY) -> Outcome:
    """Return what to report of a run that is to run elsewhere, or later."""
    return Outcome(run.job_id, run.token, Cause.RELEASED, delay=after)


def refused(run: Run, now: float, *, known: bool) -> Outcome | None:
    """Return the end of a run that must not start any more; `now` is the store's time, in seconds since the epoch."""
    if run.cancelling:
        return Outcome(run.job_id, run.token, Cause.STOPPED)
    if run.start_by is not None and run.start_by.timestamp() < now:
        return Outcome(run.job_id, run.token, Cause.EXPIRED)
    if not known:
        return given_back(run, KNOWN_ELSEWHERE)
    return None


# What a task raised


def ended_by(error: BaseException) -> Ended:
    """Return the end that an exception of a task stands for: its own wish first, else an error."""
    match error:
        case Retry():
            return _asked_for_retry(error)
        case Fatal():
            return Ended(end=End.FATAL, message=_words_of(error), detail=_story_of(error.__cause__))
        case MemoryError():
            return Ended(end=End.OOM, message="it ran out of memory")
        case _:
            name, words = type(error).__name__, _words_of(error)
            message = clean_text(f"{name}: {words}" if words else name, MAX_MESSAGE)
            return Ended(end=End.ERROR, message=message, detail=_story_of(error))


def _asked_for_retry(error: Retry) -> Ended:
    try:
        after = None if error.after is None else check_delay("after", parse_duration(error.after, "after"))
    except Invalid as wrong:
        return Ended(end=End.FATAL, message=f"Retry was raised with a wrong wait: {wrong}")
    return Ended(end=End.RETRY, message=_words_of(error), detail=_story_of(error.__cause__), after=after)


def _words_of(error: BaseException) -> str:
    try:
        return clean_text(str(error), MAX_MESSAGE)
    except BaseException:  # noqa: BLE001 - the text of an error is user code, too, and may even call sys.exit
        return "(its text cannot be shown)"


def _story_of(error: BaseException | None) -> str | None:
    """Return the traceback, from the task's own code on."""
    if error is None:
        return None
    frames = error.__traceback__
    while frames is not None and frames.tb_next is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except BaseException:  # noqa: BLE001 - as above
        text = "".join(traceback.format_tb(frames))
    return end_of(clean_text(text, len(text)))


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(_PACKAGE)
