"""How a run ended, as its worker reports it and as the store answers."""

import enum
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_JSON_DEPTH, MAX_NAME, check_json_text, clean_text
from tidewheel.model.states import Cause, State, end_of_run, move

NO_DELAY = timedelta(0)
MAX_LOSSES = 3
"""Abnormal ends (crashed or lost) after which a job is quarantined instead of tried again."""


MAX_RESULT_BYTES: Final = 64 * 1024
"""How large a result may be that is stored with its job; larger ones belong elsewhere, with a `result_location`."""
MAX_LARGE_RESULT: Final = 64 * 1024 * 1024
"""How large a result may be at all, as JSON."""

MAX_MESSAGE: Final = 2_000
MAX_DETAIL: Final = 16 * 1024
"""Characters of what a run says of its failure."""

LOCATION_SCHEME: Final = "blob:"


class Failure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a run failed, in words."""

    reason: str
    """A stable word: `error`, `timeout`, `oom`, `signal`, `lost`, `quarantined`, `unstorable`, `cancelled`, …"""
    message: str = ""
    detail: str | None = None
    """For example a traceback."""
    exit_code: int | None = None
    """Of a command."""


def shortened(failure: Failure) -> Failure:
    """Return a failure within its bounds."""
    detail = None if failure.detail is None else end_of(failure.detail)
    reason, message = failure.reason[:MAX_NAME], failure.message[:MAX_MESSAGE]
    return Failure(reason=reason, message=message, detail=detail, exit_code=failure.exit_code)


def end_of(detail: str) -> str:
    """Return the end of a long detail: the last lines of a traceback tell most."""
    return detail if len(detail) <= MAX_DETAIL else "…" + detail[1 - MAX_DETAIL :]


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run used, and behind which layers it ran."""

    cpu_seconds: float = 0.0
    peak_rss_bytes: int = 0
    isolation: tuple[str, ...] = ()


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """The end of one run. Cause is one that leaves `running`, as a worker may report it."""

    job_id: UUID
    token: int
    cause: Cause
    result: str | None = None
    """JSON text, at most `MAX_RESULT_BYTES` long and 64 levels deep."""
    result_location: str | None = None
    """Where a result is kept that is too large for a row: `own_location` of this run, or None."""
    error: Failure | None = None
    delay: timedelta = NO_DELAY
    """How long to wait before the next try, if there is one."""
    started_at: datetime | None = None
    """When the body began; None stands for the time of the claim."""
    usage: Usage | None = None


REPORTABLE = frozenset(
    {
        Cause.RETURNED,
        Cause.FAILED,
        Cause.GAVE_UP,
        Cause.SNOOZED,
        Cause.RELEASED,
        Cause.CRASHED,
        Cause.STOPPED,
        Cause.EXPIRED,
    }
)
"""What a worker may say of a run; the other causes are for the store to find."""


class Verdict(enum.StrEnum):
    """What became of a reported outcome."""

    ACCEPTED = "accepted"
    REPEATED = "repeated"
    """The same outcome of the same run had been stored before: a lost reply, nothing was written again."""
    STALE = "stale"
    """The run is no longer this worker's; nothing was written."""
    UNSTORABLE = "unstorable"
    """The outcome could not be stored; the job is dead with that reason."""


_PLAIN = MAX_RESULT_BYTES // 4
"""No character takes more than four bytes."""
_decode = msgspec.json.Decoder().decode
_huge = re.compile(r"[0-9]{19}").search
GIVEN_BACK = frozenset(cause for cause in REPORTABLE if move(State.RUNNING, cause) is State.QUEUED)
"""What a worker may say of a run after which its job waits again, if it was not asked to stop."""
LOSSES = (Cause.CRASHED, Cause.LOST)
"""Abnormal ends, which count apart from failures."""
RETRIED = (Cause.FAILED, Cause.CRASHED)
"""Ends after which a job counts as a retry; one whose worker died does not, for that is not its doing."""
ATTEMPTS = (Cause.FAILED, *LOSSES)
"""Ends that leave an attempt behind when the job goes on."""


class LossRule(NamedTuple):
    """Whether abnormal ends count, and how many make a quarantine."""

    most: int = MAX_LOSSES
    counted: bool = True


def judge(cause: Cause, *, cancelling: bool, losses: int, rule: LossRule, held: bool = False) -> Cause:
    """Return the cause that counts for a run that ended: its own, the stop it was asked for, or a quarantine.

    `held` is a run that was asked to stop by a gate that holds: whatever it ends with but a result, it is given back.
    """
    if held and cause is not Cause.RETURNED:
        return Cause.RELEASED
    cause = end_of_run(cause, cancelling=cancelling)
    if cause in LOSSES and rule.counted and losses + 1 >= rule.most:
        return Cause.QUARANTINED
    return cause


def error_of(cause: Cause, reported: Failure | None, cancel_reason: str | None) -> Failure | None:
    """Return the error that a finished job shows."""
    if cause is Cause.QUARANTINED:
        last = f": {reported.reason} {reported.message}".rstrip() if reported else ""
        return Failure(reason="quarantined", message=f"ended abnormally too often{last}")
    if cause is Cause.STOPPED and reported is None:
        return Failure(reason="cancelled", message=cancel_reason or "")
    return reported


def _is_plain(text: str) -> bool:
    """Tell at little cost that a JSON text is sound: short, flat, no escapes, no huge numbers, as most results are."""
    if len(text) > _PLAIN or "\\u" in text or _huge(text):
        return False
    if len(text) > MAX_JSON_DEPTH and text.count("[") + text.count("{") > MAX_JSON_DEPTH:
        return False
    try:
        _decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return False
    return True


def result_key(job_id: UUID, token: int) -> str:
    """Return the key under which the blobs keep a run's result."""
    return f"outputs/{job_id}/{token}/result.json"


def own_location(job_id: UUID, token: int) -> str:
    """Return the one location at which a run's result may be: nobody is led to what is another's."""
    return f"{LOCATION_SCHEME}{result_key(job_id, token)}"


def flaw_of(outcome: Outcome) -> str | None:
    """Return why an outcome cannot be stored such that every reader can read it; None if it can."""
    try:
        if outcome.result is not None and not _is_plain(outcome.result):
            check_json_text("result", outcome.result, MAX_RESULT_BYTES)
        if outcome.result_location is not None:
            _check_own(outcome, outcome.result_location)
        if (error := outcome.error) is not None:
            _check_storable("error.reason", error.reason)
            _check_storable("error.message", error.message)
            _check_storable("error.detail", error.detail or "")
    except Invalid as flaw:
        return str(flaw)
    return None


def _check_own(outcome: Outcome, location: str) -> None:
    if location != own_location(outcome.job_id, outcome.token):
        raise Invalid("result_location", "is not where the result of this run is kept")


def _check_storable(field: str, text: str) -> None:
    if clean_text(text, len(text)) != text:
        raise Invalid(field, "must not contain NUL or half of a surrogate pair")


def flaws_of(outcomes: Sequence[Outcome]) -> dict[int, str]:
    """Return the flaws of those outcomes that have one, by their position."""
    return {index: why for index, outcome in enumerate(outcomes) if (why := flaw_of(outcome))}


def unstorable(why: str) -> Failure:
    """Return the error of a job whose outcome has a flaw or was refused by the database."""
    return Failure(reason="unstorable", message=f"the outcome could not be stored: {clean_text(why, 500)}")


def recognise(reported: Cause, found: str | None) -> Verdict:
    """Judge an outcome whose run is no longer this worker's, by whether it was this very outcome that ended the run.

    `found` is the cause that ended the run in history or in an attempt, "queued" if the job is back in the queue with
    no attempt on record, or None if nothing is known of the run.
    """
    if found == Cause.UNSTORABLE:
        return Verdict.UNSTORABLE
    repeated = {reported.value}
    if reported is not Cause.RETURNED:
        repeated.add(Cause.STOPPED)
    if reported is Cause.CRASHED:
        repeated.add(Cause.QUARANTINED)
    if reported in (Cause.SNOOZED, Cause.RELEASED, Cause.STOPPED):
        repeated.add("queued")
    return Verdict.REPEATED if found in repeated else Verdict.STALE
