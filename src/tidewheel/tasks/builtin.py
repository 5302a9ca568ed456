"""The arguments of the built-in kinds: any executable, and an HTTP call."""

import re
from typing import Final
from urllib.parse import urlsplit

import msgspec

from tidewheel.errors import Invalid

DEFAULT_ANSWER: Final = 30.0
MAX_ANSWER: Final = 24 * 3600.0
MAX_HEADERS: Final = 100
_HEADER_NAME = re.compile("[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch


class CommandCall(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What a `command` job runs."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    stdin: str | None = None
    cwd: str | None = None
    artifact: str | None = None
    """An uploaded file that is there when the command starts."""


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
    ok_statuses: tuple[int, ...] = ()
    """Statuses that are a success besides 200 to 299."""
    fatal_statuses: tuple[int, ...] = ()
    """Statuses after which the job is given up, though they would be tried again."""
    follow_redirects: bool = False


def check_command(call: CommandCall) -> CommandCall:
    """Refuse commands that cannot be started anywhere."""
    if not call.argv or not call.argv[0]:
        raise Invalid("argv", "must name an executable")
    texts = (*call.argv, *call.env, *call.env.values(), call.cwd or "")
    if any("\0" in text for text in texts):
        raise Invalid("argv", "a command, its environment and its folder must not contain the NUL character")
    if any(not name or "=" in name for name in call.env):
        raise Invalid("env", "the name of a variable must not be empty or contain '='")
    return call


def check_http(call: HttpCall) -> HttpCall:
    """Refuse calls that cannot be made from anywhere."""
    if not call.method.isascii() or not call.method.isalpha():
        raise Invalid("method", f"must be a word such as GET or POST, not {call.method[:40]!r}")
    _check_url(call.url)
    if len(call.headers) > MAX_HEADERS:
        raise Invalid("headers", f"must be at most {MAX_HEADERS}, not {len(call.headers)}")
    for name, value in call.headers.items():
        if not _HEADER_NAME(name) or any(char in value for char in "\r\n\0"):
            raise Invalid("headers", f"{name[:40]!r} must be a plain name with a value in one line")
    if call.body is not None and call.body_base64 is not None:
        raise Invalid("body_base64", "cannot be given together with body")
    if not 0 < call.timeout <= MAX_ANSWER:
        raise Invalid("timeout", f"must be more than 0 s and at most a day, not {call.timeout:g} s")
    return call


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError as error:
        raise Invalid("url", f"is no URL: {error}") from error
    if not known:
        raise Invalid("url", f"must begin with http:// or https:// and name a host, not {url[:80]!r}")
