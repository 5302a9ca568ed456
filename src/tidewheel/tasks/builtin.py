"""The arguments of the built-in kinds: any executable, and an HTTP call."""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.dependency import find_references
from tidewheel.model.secret import REFERENCE
from tidewheel.tasks.binding import ENDLESS, without_secrets
from tidewheel.tasks.definition import COMMAND, HTTP, Isolation, Preempt

DEFAULT_ANSWER: Final = 30.0
MAX_ANSWER: Final = 24 * 3600.0
MAX_HEADERS: Final = 100
ARTIFACT: Final = "{artifact}"
"""Stands in argv for the path of the artifact."""
_ExitCode = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Status = Annotated[int, msgspec.Meta(ge=100, le=599)]
_place_of = re.compile(r"(.*?)(?: - at (?:`key` in )?`\$\.?(.*?)`)?").fullmatch
_unknown_field = re.compile(r"Object contains unknown field `(.*)`.*").fullmatch
_missing_field = re.compile(r"Object missing required field `(.*)`").fullmatch
_CHOICES: Final = {"isolation": get_args(Isolation), "preempt": get_args(Preempt)}
_STAND_INS: Final[Mapping[str, Any]] = {"argv": ["?"], "url": "http://localhost"}
"""What is checked in place of fields that must be there, and that only a run will know."""
_HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_HEADER_VALUE = re.compile(r"(?:[^\0\s](?:[^\0\r\n\v\f]*[^\0\s])?)?", re.ASCII).fullmatch
"""What can be sent: anything else would fail in each attempt."""
_CONTROL = re.compile("[\x00-\x1f\x7f]").search

CallT = TypeVar("CallT", bound=msgspec.Struct)


class CommandCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a `command` job runs, and how to read its end."""

    argv: list[str] = []
    """The program and its arguments, never a text for a shell."""
    env: dict[str, str] = {}
    stdin: str = ""
    cwd: str | None = None
    """Where it runs; its scratch directory unless said otherwise."""
    artifact: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The SHA-256 of an uploaded file, which is the program if argv is empty or names it as `{artifact}`."""
    fatal_exit_codes: tuple[_ExitCode, ...] = ()
    """Codes after which another attempt cannot help."""
    ok_exit_codes: tuple[_ExitCode, ...] = (0,)
    isolation: Isolation | None = None
    """How far it is kept apart; as its worker does with all commands unless said otherwise."""
    preempt: Preempt = "never"
    """What may happen to it when a more urgent job is due and no slot is free."""


class HttpCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What an `http` job asks for."""

    method: str = "POST"
    url: str
    headers: dict[str, str] = {}
    body: str | None = None
    body_base64: str | None = None
    """In place of `body`, for what is no text."""
    timeout: float = DEFAULT_ANSWER
    """Seconds for the whole call."""
    ok_statuses: tuple[_Status, ...] = ()
    """Statuses that are a success besides 200 to 299."""
    retry_statuses: tuple[_Status, ...] = ()
    """Statuses that are tried again besides 429 and 500 to 599, after the time that `Retry-After` says, if it does."""
    fatal_statuses: tuple[_Status, ...] = ()
    """Statuses after which the job is given up, though they would be tried again."""
    follow_redirects: bool = False


def check_call(kind: str, args: Mapping[str, Any]) -> None:
    """Refuse arguments of a built-in kind with which no worker could do anything; the field says where in them.

    What comes from secrets and from other jobs is known to the run alone, and is looked at there.
    """
    check = _CHECKS.get(kind)
    if check is None:
        return
    try:
        check({name: _to_check(name, value) for name, value in args.items() if _is_known(name, value)})
    except Invalid as error:
        raise Invalid(error.field if error.field == "args" else f"args.{error.field}", error.why) from None
    except RecursionError:
        raise Invalid("args", ENDLESS) from None


def _is_known(name: str, value: Any) -> bool:
    return name in _STAND_INS or not _comes_later(value)


def _comes_later(value: Any) -> bool:
    return (isinstance(value, Mapping) and REFERENCE in value) or bool(find_references([value]))


def _to_check(name: str, value: Any) -> Any:
    return _STAND_INS[name] if _comes_later(value) else without_secrets(value)


def read_call(kind: str, fields: Mapping[str, Any], shape: type[CallT]) -> CallT:
    """Return a call of a built-in kind from its fields, or raise Invalid with the field and the reason."""
    try:
        return msgspec.convert(fields, shape)
    except msgspec.ValidationError as error:
        raise _invalid(kind, str(error)) from None
    except UnicodeError:
        field = next(name for name, value in fields.items() if not _is_encodable(value))
        raise Invalid(field, "must not contain halves of surrogate pairs: they are no text") from None


def _is_encodable(value: Any) -> bool:
    try:
        msgspec.json.encode(value)
    except UnicodeError:
        return False
    return True


def parse_command(args: str) -> CommandCall:
    """Return the command that a job's arguments ask for, or raise Invalid with the field and the reason."""
    try:
        return check_command(msgspec.json.decode(args, type=CommandCall))
    except msgspec.ValidationError as error:
        raise _invalid(COMMAND, str(error)) from None


class _Standing(msgspec.Struct, frozen=True):
    preempt: Preempt = "never"


def preempt_in(args: str) -> Preempt:
    """Return what a command's arguments let happen to it; nothing if they cannot be read, for it will not run."""
    if '"preempt"' not in args:
        return "never"
    try:
        return msgspec.json.decode(args, type=_Standing).preempt
    except msgspec.MsgspecError:
        return "never"


def check_command(call: CommandCall) -> CommandCall:
    """Refuse commands that cannot be started anywhere."""
    if not call.argv and call.artifact is None:
        raise Invalid("argv", "must name a program")
    if call.argv and not call.argv[0]:
        raise Invalid("argv", "must begin with the name of a program, not with nothing")
    if ARTIFACT in call.argv and call.artifact is None:
        raise Invalid("argv", f"names {ARTIFACT}, and there is no artifact")
    _refuse_nul("argv", call.argv)
    _refuse_nul("cwd", [call.cwd or ""])
    _refuse_nul("env", [*call.env, *call.env.values()])
    if bad := [name for name in call.env if not name or "=" in name]:
        raise Invalid("env", f"{bad[0]!r} cannot be the name of a variable")
    return call


def _refuse_nul(field: str, texts: list[str]) -> None:
    if any("\0" in text for text in texts):
        raise Invalid(field, "must not contain the NUL character")


def _invalid(kind: str, message: str) -> Invalid:
    if found := _unknown_field(message):
        return Invalid(found[1], _why_unknown(kind, found[1]))
    if found := _missing_field(message):
        return Invalid(found[1], "is missing")
    found = _place_of(message)
    assert found is not None
    field = found[2] or "args"
    return Invalid(field, f"must be one of {', '.join(_CHOICES[field])}" if field in _CHOICES else found[1])


def _why_unknown(kind: str, field: str) -> str:
    if kind == COMMAND:
        return "is no field of a command"
    if field in _CHOICES:
        return "is for commands: an HTTP call is made by the worker itself, and has no process of its own"
    return "is no field of an HTTP call"


def check_http(call: HttpCall) -> HttpCall:
    """Refuse calls that cannot be made from anywhere."""
    if not call.method.isascii() or not call.method.isalpha():
        raise Invalid("method", f"must be a word such as GET or POST, not {call.method[:40]!r}")
    _check_url(call.url)
    if len(call.headers) > MAX_HEADERS:
        raise Invalid("headers", f"must be at most {MAX_HEADERS}, not {len(call.headers)}")
    for name, value in call.headers.items():
        if not _HEADER_NAME(name) or not value.isascii() or not _HEADER_VALUE(value):
            why = f"{name[:40]!a} must be a plain name with a value in one line of ASCII, without blanks at its ends"
            raise Invalid("headers", why)
    _refuse_two_meanings(call)
    if call.body is not None and call.body_base64 is not None:
        raise Invalid("body_base64", "cannot be given together with body")
    if not 0 < call.timeout <= MAX_ANSWER:
        raise Invalid("timeout", f"must be more than 0 s and at most a day, not {call.timeout:g} s")
    return call


def _refuse_two_meanings(call: HttpCall) -> None:
    meaning: dict[int, str] = {}
    for name in ("ok_statuses", "retry_statuses", "fatal_statuses"):
        for status in getattr(call, name):
            if meaning.setdefault(status, name) != name:
                raise Invalid(name, f"has {status}, which is also one of {meaning[status]}")


def _check_url(url: str) -> None:
    if found := _CONTROL(url):
        raise Invalid("url", f"must not contain the control character U+{ord(found[0]):04X}")
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise Invalid("url", f"is no URL: {error}") from error
    if not known:
        raise Invalid("url", f"must begin with http:// or https:// and name a host, not {url[:80]!r}")


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any]], object]]] = {
    COMMAND: lambda fields: check_command(read_call(COMMAND, fields, CommandCall)),
    HTTP: lambda fields: check_http(read_call(HTTP, fields, HttpCall)),
}
