"""A request to the dashboard, as the application read it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl

from tidewheel.server.dashboard.cookies import SESSION, VISIT, read_cookies
from tidewheel.server.problems import Refused

MOST_FIELDS: Final = 1_000
FORM: Final = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    method: str
    path: str
    raw_query: str
    headers: Mapping[str, str]
    address: str
    secure: bool
    id: str
    body: bytes

    @property
    def url(self) -> str:
        """Return path and query."""
        return f"{self.path}?{self.raw_query}" if self.raw_query else self.path

    @cached_property
    def cookies(self) -> Mapping[str, str]:
        """What the browser keeps for us."""
        return read_cookies(self.headers.get("cookie", ""))

    @property
    def browser(self) -> str:
        """What forms of this browser are bound to; empty if it is new here."""
        return self.cookies.get(SESSION) or self.cookies.get(VISIT) or ""

    def query(self) -> dict[str, str]:
        """Return what stands in the query; of twins the last counts."""
        try:
            return {name: value for name, value in parse_qsl(self.raw_query, max_num_fields=MOST_FIELDS) if value}
        except ValueError:
            raise Refused("bad-parameter", "the query is too long") from None

    def form(self) -> dict[str, tuple[str, ...]]:
        """Return the fields of the form that was sent."""
        if self.headers.get("content-type", "").partition(";")[0].strip().lower() != FORM:
            raise Refused("unsupported-media-type", "must be a form")
        try:
            pairs = parse_qsl(
                self.body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_FIELDS
            )
        except ValueError:
            raise Refused("malformed", "this form cannot be read") from None
        found: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            found[name] = (*found.get(name, ()), value)
        return found


def request_of(scope: Mapping[str, Any], headers: Mapping[str, str], body: bytes) -> Request:
    """Return the request of an ASGI scope."""
    return Request(
        method=scope["method"],
        path=scope["path"],
        raw_query=scope["query_string"].decode("latin-1"),
        headers=headers,
        address=(scope.get("client") or ("",))[0],
        secure=scope.get("scheme") == "https",
        id=secrets.token_hex(12),
        body=body,
    )
