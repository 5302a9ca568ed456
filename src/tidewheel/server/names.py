"""Ids in paths."""

import re
from typing import Any, Final
from uuid import UUID

from tidewheel.errors import NotFound
from tidewheel.server.endpoint import Call

_CANONICAL: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


def id_in(call: Call[Any, Any], what: str = "job") -> UUID:
    """Return the id in the path; there is nothing under a text that is none."""
    text = call.path["id"]
    if _CANONICAL(text) is None:
        raise NotFound(what, repr(text[:40]))
    return UUID(text)
