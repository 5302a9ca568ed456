"""Changing only what one has seen: entity tags and `If-Match` (RFC 9110)."""

import re
from collections.abc import Mapping
from typing import Final

from tidewheel.errors import StaleVersion
from tidewheel.server.problems import Flaw, Refused

_TAGS: Final = re.compile(r'(?:\s*(?:W/)?"[\x21\x23-\x7e]*"\s*,)*\s*(?:W/)?"[\x21\x23-\x7e]*"\s*').fullmatch
_STRONG: Final = re.compile(r'(W/)?"([\x21\x23-\x7e]*)"').findall


def etag_of(version: int) -> tuple[str, str]:
    """Return the header that names a version."""
    return "etag", f'"{version}"'


def expected_version(headers: Mapping[str, str], name: str, current: int, what: str = "schedule") -> int | None:
    """Return the version that a change is meant for, None if there is no `If-Match`.

    `*` stands for the current one, which is 0 if there is none. Raises Refused for what is no tag, and StaleVersion if
    no tag is that of `current`.
    """
    sent = headers.get("if-match")
    if sent is None:
        return None
    if sent.strip() == "*" and current:
        return current
    if sent.strip() != "*" and (len(sent) > _MOST or _TAGS(sent) is None):
        why = 'must be * or an entity tag such as "3"'
        raise Refused("bad-header", f"If-Match: {why}", flaws=[Flaw(detail=why, header="If-Match")])
    strong = [tag for weak, tag in _STRONG(sent) if not weak]
    if current and str(current) in strong:
        return current
    given = next((int(tag) for tag in strong if tag.isascii() and tag.isdecimal()), 0)
    raise StaleVersion(name, given, current, what)


def required_version(headers: Mapping[str, str], name: str, current: int) -> int:
    """Return the version that a change is meant for; raises Refused if that is not said."""
    expected = expected_version(headers, name, current)
    if expected is None:
        why = f'send the ETag of what you have seen; the current one is "{current}", and * stands for any'
        raise Refused("precondition-required", why, headers=[etag_of(current)])
    return expected


_MOST: Final = 1000
