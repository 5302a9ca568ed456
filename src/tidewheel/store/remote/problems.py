"""Problem documents of a server become the errors that a store raises."""

import inspect
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Conflict, Invalid, NotFound, TideError, TooMany, Unavailable
from tidewheel.model.problem import CODE_OF


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

_BY_CODE: Final[Mapping[str, type[TideError]]] = {code: kind for kind, code in CODE_OF}


def error_of(status: int, content: bytes, retry_after: int = 1) -> TideError:
    """Return the error that an answer stands for."""
    try:
        told = _decode(content)
    except msgspec.MsgspecError:
        return Unavailable(f"the server answered with {status}, and not as a Tidewheel server does")
    if told.code in _MALFORMED:
        return _invalid(told)
    if told.code == "gone":
        return NotFound("result any more:", told.detail)
    if told.code == "too-many":
        return TooMany(told.about.get("what", "requests"), retry_after)
    kind = _BY_CODE.get(told.code)
    if kind is None:
        return Conflict(told.detail) if status == 409 else Unavailable(told.detail)  # noqa: PLR2004 - a status
    return _rebuilt(kind, told)


def _rebuilt(kind: type[TideError], told: Problem) -> TideError:
    """Return an error as the server raised it: with its words, and with what it was about."""
    error = kind.__new__(kind)
    TideError.__init__(error, told.detail)
    for name, value in (dict.fromkeys(_attributes(kind)) | dict(told.about)).items():
        setattr(error, name, _value(name, value))
    return error


def _attributes(kind: type[TideError]) -> list[str]:
    """Return what errors of a kind are about, whether a server tells it or not."""
    _, *given = inspect.signature(kind.__init__).parameters.values()
    return [each.name for each in given if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]


def _value(name: str, value: Any) -> Any:
    try:
        return UUID(value) if name.endswith("_id") else value
    except (TypeError, ValueError, AttributeError):
        return value


def _invalid(told: Problem) -> Invalid:
    flaw = told.errors[0] if told.errors else Flaw(told.detail)
    place = flaw.parameter or flaw.header or (flaw.pointer or "").strip("/").replace("/", ".")
    return Invalid(told.about.get("field", place or "request"), flaw.detail)
