"""What can go wrong with a request over HTTP, by codes that stay the same: for servers, and for those who ask them."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NamedTuple

from tidewheel.errors import (
    AlreadyActive,
    Conflict,
    Forbidden,
    IdTaken,
    KeyReused,
    LeaseLost,
    NameTaken,
    NotFinished,
    NotFound,
    OutcomeUnknown,
    QueueFull,
    SecretsLocked,
    StaleVersion,
    StoreFull,
    TideError,
    TooMany,
    Unauthenticated,
    Unavailable,
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
    "secrets-locked",
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


class Kind(NamedTuple):
    """What a code means."""

    status: int
    title: str
    advice: str


CODES: Final[Mapping[Code, Kind]] = MappingProxyType(
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
        "secrets-locked": Kind(
            409, "No key opens the stored secrets", "Let the server have the key they are sealed by."
        ),
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

CODE_OF: Final[tuple[tuple[type[TideError], Code], ...]] = (
    (NotFound, "not-found"),
    (KeyReused, "key-reused"),
    (AlreadyActive, "already-active"),
    (QueueFull, "queue-full"),
    (IdTaken, "id-taken"),
    (NameTaken, "name-taken"),
    (StaleVersion, "precondition-failed"),
    (NotFinished, "not-finished"),
    (SecretsLocked, "secrets-locked"),
    (Conflict, "conflict"),
    (LeaseLost, "lease-lost"),
    (OutcomeUnknown, "outcome-unknown"),
    (StoreFull, "store-full"),
    (Unavailable, "unavailable"),
    (Unauthenticated, "unauthorized"),
    (Forbidden, "forbidden"),
    (TooMany, "too-many"),
)
"""How errors are told, the narrower ones first."""
