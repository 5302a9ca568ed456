"""All that can go wrong with a request, as problem documents (RFC 9457) with codes that stay the same."""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from tidewheel.errors import Invalid, StaleVersion, TideError, TooMany, Unauthenticated, Unavailable
from tidewheel.model.problem import CODE_OF, CODES, Code

MEDIA_TYPE: Final = "application/problem+json"
RETRY_AFTER: Final = 1
"""Seconds after which to try again what was refused for now."""


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
    about: Mapping[str, str | int | None] = {}
    """What it is about, by name: a job, a key, a queue."""


About = Mapping[str, str | int | None]
_NOTHING: Final[About] = MappingProxyType({})


class Refused(TideError):
    """A request that is answered with a problem, before anything was done."""

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        flaws: Sequence[Flaw] = (),
        headers: Sequence[tuple[str, str]] = (),
        about: About = _NOTHING,
    ) -> None:
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.flaws = tuple(flaws)
        self.headers = tuple(headers)
        self.about = about


def refusal_of(error: TideError) -> Refused | None:
    """Return how an error is told to a client; None for one that is not theirs to hear."""
    if isinstance(error, Refused):
        return error
    if isinstance(error, Invalid):
        flaws = [Flaw(detail=error.why, pointer=pointer_of(error.field))]
        return Refused("invalid", str(error), flaws=flaws, about={"field": error.field})
    code = next((code for kind, code in CODE_OF if isinstance(error, kind)), None)
    if code is None:
        return None
    # What a store says about its own troubles names hosts and files, which are nobody's business here.
    detail = CODES[code].advice if isinstance(error, Unavailable) else str(error)
    return Refused(code, detail, headers=_advice_of(error, code), about=_about(error))


def _about(error: TideError) -> About:
    """Return what an error says it is about."""
    return {
        name: value if value is None or isinstance(value, int) else str(value) for name, value in vars(error).items()
    }


def _advice_of(error: TideError, code: Code) -> list[tuple[str, str]]:
    """Return the headers that tell a client what to do next."""
    if isinstance(error, Unauthenticated):
        return [("www-authenticate", 'Bearer realm="tidewheel"')]
    if isinstance(error, StaleVersion) and error.current:
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
