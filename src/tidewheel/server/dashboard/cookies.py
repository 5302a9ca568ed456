"""Cookies and forms: who a browser is, and whether a form was sent by one of our own pages."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, unquote, urlsplit

from tidewheel.model.session import LIFETIME
from tidewheel.server.problems import Refused

SESSION: Final = "tide_session"
VISIT: Final = "tide_visit"
"""Where no key is needed this random name stands in for a session, to bind forms to the browser."""
FLASH: Final = "tide_flash"
TENANT: Final = "tide_tenant"
THEME: Final = "tide_theme"
_MOST_FLASH: Final = 500
_FLASH_SECONDS: Final = 30


def read_cookies(header: str) -> Mapping[str, str]:
    """Return the cookies of a request; of twins the first counts."""
    found: dict[str, str] = {}
    for pair in header.split(";"):
        name, _, value = pair.strip().partition("=")
        found.setdefault(name, value)
    return found


class CookieMaker:
    """Makes cookies for one request: for a secure connection they are secure, too."""

    def __init__(self, *, secure: bool) -> None:
        self._end = "; HttpOnly; SameSite=Strict" + ("; Secure" if secure else "")

    def session(self, token: str) -> str:
        """Return the cookie of a session."""
        return self._make(SESSION, token, int(LIFETIME.total_seconds()))

    def visit(self) -> tuple[str, str]:
        """Return a new random name of a browser, and its cookie."""
        name = secrets.token_urlsafe(24)
        return name, self._make(VISIT, name, int(LIFETIME.total_seconds()))

    def tenant(self, name: str) -> str:
        """Return the cookie that says which tenant to look at."""
        return self._make(TENANT, quote(name, safe=""), int(LIFETIME.total_seconds()))

    def flash(self, kind: str, told: str) -> str:
        """Return the cookie with a word for the next page."""
        return self._make(FLASH, quote(f"{kind} {told[:_MOST_FLASH]}", safe=""), _FLASH_SECONDS)

    def remove(self, name: str) -> str:
        """Return the cookie that removes another."""
        return self._make(name, "", 0)

    def _make(self, name: str, value: str, seconds: int) -> str:
        return f"{name}={value}; Path=/ui; Max-Age={seconds}{self._end}"


def flash_of(cookies: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the word of the page before, and whether it is a good one."""
    kind, _, told = unquote(cookies.get(FLASH, "")).partition(" ")
    return (kind, told) if told and kind in ("good", "bad") else None


def form_token(browser: str) -> str:
    """Return what every form of a browser must carry; nobody else can know it."""
    return hmac.new(browser.encode(), b"tidewheel form", hashlib.sha256).hexdigest()


def check_form(headers: Mapping[str, str], browser: str, sent: str) -> None:
    """Refuse a form that did not come from a page of ours in the same browser. Raises Refused."""
    origin = headers.get("origin")
    if origin is not None:
        ours = urlsplit(origin).netloc == headers.get("host", "")
    else:
        ours = headers.get("sec-fetch-site") == "same-origin"
    if not ours:
        raise Refused("forbidden", "this form was sent by another web page")
    if not browser or not hmac.compare_digest(form_token(browser).encode(), sent.encode(errors="replace")):
        raise Refused("forbidden", "this form is too old: load the page again, and send it from there")
