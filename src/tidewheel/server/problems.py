"""All that can go wrong with a request, as problem documents (RFC 9457) with codes that stay the same."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

import msgspec

from tidewheel.errors import (
    AlreadyActive,
    Conflict,
    Forbidden,
    IdTaken,
    Invalid,
    KeyReused,
    LeaseLost,
    NameTaken,
    NotFinished,
    NotFound,
    OutcomeUnknown,
    QueueFull,
    StaleVersion,
    StoreFull,
    TideError,
    TooMany,
    Unauthenticated,
    Unavailable,
)

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = 1
"""Seconds after which to try again what was refused for now."""


class Kind(NamedTuple):
    """What a code means."""

    status: int
    title: str
    advice: str


CODES: Final[Mapping[str, Kind]] = MappingProxyType(
    {
        "malformed": Kind(400, "The body cannot be read", "Send one JSON value in UTF-8 without twin keys."),
        "bad-parameter": Kind(400, "A query parameter is wrong", "`errors` names it."),
        "bad-header": Kind(400, "A header is wrong", "`errors` names it."),
        "bad-cursor": Kind(400, "The cursor belongs to another list", "Begin again without a cursor."),
        "unauthorized": Kind(401, "Who are you?", "Send `Authorization: Bearer <key>`."),
        "forbidden": Kind(403, "Not allowed", "Ask for a key with another role, or of another tenant."),
        "not-found": Kind(404, "No such thing", "It was never there, was removed, or is not yours."),
        "method-not-allowed": Kind(405, "No such method here", "`Allow` lists those that are."),
        "too-slow": Kind(408, "The body did not come in time", "Send the request again."),
        "conflict": Kind(409, "Does not fit the present state", "Look at the job again."),
        "already-active": Kind(409, "A job with this unique key is active", "Wait for it, or use `unique: keep`."),
        "queue-full": Kind(409, "The queue has no room", "Wait until its jobs have run, or raise its cap."),
        "id-taken": Kind(409, "There is a job with this id", "Let the server choose the id."),
        "name-taken": Kind(409, "There is a schedule of that name", "Choose another name, or change that one."),
        "not-finished": Kind(409, "The job has not ended", "Ask again later, or with `Prefer: wait=10`."),
        "no-result": Kind(409, "The job ended without a result", "Its `error` says why."),
        "lease-lost": Kind(409, "The worker holds no lease any more", "End its runs, and register anew."),
        "gone": Kind(410, "The result was removed", "It was kept as long as was configured."),
        "precondition-failed": Kind(412, "It was changed meanwhile", "Read it again; `ETag` names its version."),
        "too-large": Kind(413, "The body is too large", "Send less, or several requests."),
        "unsupported-media-type": Kind(415, "Not the right content type", "The docs of the endpoint name it."),
        "invalid": Kind(422, "A value is wrong", "`errors` points to each one."),
        "wrong-content": Kind(422, "Not what was said", "Compare the SHA-256 and the size of what you send."),
        "key-reused": Kind(422, "The idempotency key belongs to another request", "Use a new key."),
        "precondition-required": Kind(428, "Which version?", "Send the ETag of what you saw as `If-Match`."),
        "too-many": Kind(429, "Too often, or too much", "Try again after `Retry-After` seconds."),
        "internal": Kind(500, "An error of this server", "Tell its operator the `request_id`."),
        "unavailable": Kind(503, "Not now", "Try again after `Retry-After` seconds."),
        "outcome-unknown": Kind(503, "It may or may not have happened", "Send it again with its Idempotency-Key."),
        "overloaded": Kind(503, "Too much at once", "Try again after `Retry-After` seconds."),
        "store-full": Kind(503, "The store has no room left", "Tell its operator."),
    }
)

Code = Literal[
    "malformed",
    "bad-parameter",
    "bad-header",
    "bad-cursor",
    "unauthorized",
    "forbidden",
    "not-found",
    "method-not-allowed",
    "too-slow",
    "conflict",
    "already-active",
    "queue-full",
    "id-taken",
    "name-taken",
    "not-finished",
    "no-result",
    "lease-lost",
    "gone",
    "precondition-failed",
    "too-large",
    "unsupported-media-type",
    "invalid",
    "wrong-content",
    "key-reused",
    "precondition-required",
    "too-many",
    "internal",
    "unavailable",
    "outcome-unknown",
    "overloaded",
    "store-full",
]


class Flaw(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong, and where."""

    detail: str
    pointer: str | None = None
    """Into the body, as a JSON Pointer."""
    parameter: str | None = None
    """The name of a query parameter."""
    header: str | None = None


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What went wrong (RFC 9457)."""

    type: str
    """Where the code is explained."""
    title: str
    status: int
    detail: str
    instance: str
    """The path that was asked for."""
    code: str
    """What programs look at; it stays the same, whatever the words."""
    request_id: str
    errors: tuple[Flaw, ...] = ()
    about: Mapping[str, str | int] = {}
    """What it is about, by name: a job, a key, a queue."""


_NOTHING: Final[Mapping[str, str | int]] = MappingProxyType({})


class Refused(TideError):
    """A request that is answered with a problem, before anything was done."""

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        flaws: Sequence[Flaw] = (),
        headers: Sequence[tuple[str, str]] = (),
        about: Mapping[str, str | int] = _NOTHING,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.flaws = tuple(flaws)
        self.headers = tuple(headers)
        self.about = about


_BY_ERROR: Final[tuple[tuple[type[TideError], Code], ...]] = (
    (NotFound, "not-found"),
    (KeyReused, "key-reused"),
    (AlreadyActive, "already-active"),
    (QueueFull, "queue-full"),
    (IdTaken, "id-taken"),
    (NameTaken, "name-taken"),
    (StaleVersion, "precondition-failed"),
    (NotFinished, "not-finished"),
    (Conflict, "conflict"),
    (LeaseLost, "lease-lost"),
    (OutcomeUnknown, "outcome-unknown"),
    (StoreFull, "store-full"),
    (Unavailable, "unavailable"),
    (Unauthenticated, "unauthorized"),
    (Forbidden, "forbidden"),
    (TooMany, "too-many"),
)


def refusal_of(error: TideError) -> Refused | None:
    """Return how an error is told to a client; None for one that is not theirs to hear."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Invalid):
        flaws = [Flaw(detail=error.why, pointer=pointer_of(error.field))]
        return Refused("invalid", str(error), flaws=flaws, about={"field": error.field})
    code = next((code for kind, code in _BY_ERROR if isinstance(error, kind)), None)
    if code is None:
        return None
    # What a store says about its own troubles names hosts and files, which are nobody's business here.
    detail = CODES[code].advice if isinstance(error, Unavailable) else str(error)
    return Refused(code, detail, headers=_advice_of(error, code), about=_about(error))


def _about(error: TideError) -> dict[str, str | int]:
    """Return what an error says it is about."""
    told = {name: value for name, value in vars(error).items() if value is not None}
    return {name: value if isinstance(value, int) else str(value) for name, value in told.items()}


def _advice_of(error: TideError, code: Code) -> list[tuple[str, str]]:
    """Return the headers that tell a client what to do next."""
    if isinstance(error, Unauthenticated):
        return [("www-authenticate", 'Bearer realm="tidewheel"')]
    if isinstance(error, StaleVersion):
        return [("etag", f'"{error.current}"')]
    if isinstance(error, TooMany):
        return [("retry-after", str(error.retry_after))]
    return [("retry-after", str(RETRY_AFTER))] if CODES[code].status == 503 else []  # noqa: PLR2004 - a status


def problem_of(refused: Refused, path: str, request_id: str) -> Problem:
    """Return the document of a refusal."""
    kind = CODES[refused.code]
    return Problem(
        type=f"/docs#{refused.code}",
        title=kind.title,
        status=kind.status,
        detail=refused.detail,
        instance=path,
        code=refused.code,
        request_id=request_id,
        errors=refused.flaws,
        about=dict(refused.about),
    )


_STEP: Final = re.compile(r"[^.\[\]]+")


def pointer_of(field: str) -> str:
    """Return the JSON Pointer of a field such as `specs[3].retry.delay`; the specs are the body itself."""
    steps = _STEP.findall(field)
    if steps[:1] == ["specs"]:
        steps = steps[1:]
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps if step != "...")
