"""Problem documents of a server become the errors that a store raises."""

from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

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


class Flaw(msgspec.Struct, frozen=True):
    """One thing that is wrong, and where."""

    detail: str
    pointer: str | None = None
    parameter: str | None = None
    header: str | None = None


class Problem(msgspec.Struct, frozen=True):
    """What a server says when something went wrong (RFC 9457)."""

    code: str
    detail: str = ""
    errors: tuple[Flaw, ...] = ()
    about: Mapping[str, Any] = {}


_decode: Final = msgspec.json.Decoder(Problem).decode
_MALFORMED: Final = (
    "invalid",
    "malformed",
    "bad-parameter",
    "bad-header",
    "bad-cursor",
    "too-large",
    "unsupported-media-type",
)

_BY_CODE: Final[Mapping[str, Callable[[Problem], TideError]]] = {
    "not-found": lambda told: NotFound(told.about.get("what", "such thing"), told.about.get("key", "")),
    "key-reused": lambda told: KeyReused(told.about.get("key", "")),
    "already-active": lambda told: AlreadyActive(_id(told, "job_id"), told.about.get("key", "")),
    "queue-full": lambda told: QueueFull(
        told.detail, int(told.about.get("most", 0)), queue=told.about.get("queue"), key=told.about.get("key")
    ),
    "id-taken": lambda told: IdTaken(_id(told, "job_id")),
    "name-taken": lambda told: NameTaken(told.about.get("name", "")),
    "precondition-failed": lambda told: StaleVersion(
        told.about.get("name", ""), int(told.about.get("given", 0)), int(told.about.get("current", 0))
    ),
    "not-finished": lambda told: NotFinished(_id(told, "job_id"), told.about.get("state", "")),
    "lease-lost": lambda told: LeaseLost(_id(told, "worker_id")),
    "gone": lambda told: NotFound("result any more:", told.detail),
    "unauthorized": lambda _: Unauthenticated(),
    "forbidden": lambda told: Forbidden(told.about.get("action", told.detail), told.about.get("role", "?")),
    "outcome-unknown": lambda told: OutcomeUnknown(told.detail),
    "store-full": lambda told: StoreFull(told.detail),
}


def error_of(status: int, content: bytes, retry_after: int = 1) -> TideError:
    """Return the error that an answer stands for."""
    try:
        told = _decode(content)
    except msgspec.MsgspecError:
        return Unavailable(f"the server answered with {status}, and not as a Tidewheel server does")
    if told.code in _BY_CODE:
        return _BY_CODE[told.code](told)
    if told.code == "too-many":
        return TooMany(told.about.get("what", "requests"), retry_after)
    if told.code in _MALFORMED:
        return _invalid(told)
    return Conflict(told.detail) if status == 409 else Unavailable(told.detail)  # noqa: PLR2004 - a status


def _id(told: Problem, name: str) -> object:
    try:
        return UUID(told.about[name])
    except (KeyError, ValueError):
        return "?"


def _invalid(told: Problem) -> Invalid:
    flaw = told.errors[0] if told.errors else Flaw(told.detail)
    place = flaw.parameter or flaw.header or (flaw.pointer or "").strip("/").replace("/", ".")
    return Invalid(told.about.get("field", place or "request"), flaw.detail)
