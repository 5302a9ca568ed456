"""The arguments of the built-in kinds: any executable, and an HTTP call."""

import re
from typing import Annotated, Final
from urllib.parse import urlsplit

import msgspec

from tidewheel.errors import Invalid

DEFAULT_ANSWER: Final = 30.0
MAX_ANSWER: Final = 24 * 3600.0
MAX_HEADERS: Final = 100
ARTIFACT: Final = "{artifact}"
"""Stands in argv for the path of the artifact."""
_ExitCode = Annotated[int, msgspec.Meta(ge=0, le=255)]
_Status = Annotated[int, msgspec.Meta(ge=100, le=599)]
_place_of = re.compile(r"(.*?)(?: - at `\$\.?(.*?)`)?").fullmatch
_unknown_field = re.compile(r"Object contains unknown field `(.*)`.*").fullmatch
_HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_HEADER_VALUE = re.compile(r"(?:[^\0\s](?:[^\0\r\n\v\f]*[^\0\s])?)?", re.ASCII).fullmatch
"""What can be sent: anything else would fail in each attempt."""
_CONTROL = re.compile("[\x00-\x1f\x7f]").search


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


def parse_command(args: str) -> CommandCall:
    """Return the command that a job's arguments ask for, or raise Invalid with the field and the reason."""
    try:
        return check_command(msgspec.json.decode(args, type=CommandCall))
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None


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


def _invalid(message: str) -> Invalid:
    if found := _unknown_field(message):
        return Invalid(found[1], "is no field of a command")
    found = _place_of(message)
    assert found is not None
    return Invalid(found[2] or "args", found[1])


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
