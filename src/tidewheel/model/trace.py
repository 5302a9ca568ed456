"""Where a job was submitted from, as W3C Trace Context writes it; pure.

What is not written as it should be is ignored and not refused: a trace is an aid, and must not keep a job from running.
"""

import re
from typing import Final, NamedTuple

MAX_STATE: Final = 512
MAX_MEMBERS: Final = 32
_KNOWN_FLAGS: Final = 0x03
"""Sampled, and random trace id."""
_parent = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII).fullmatch
_member = re.compile(
    r"[a-z0-9][a-z0-9_*/-]{0,255}(@[a-z][a-z0-9_*/-]{0,13})?=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]",
    re.ASCII,
).fullmatch


class Trace(NamedTuple):
    """A place in a trace: that of a span, for spans below it."""

    traceparent: str
    tracestate: str | None = None

    @property
    def trace_id(self) -> str:
        """The id of the whole trace."""
        return self.traceparent.split("-")[1]


def trace_of(traceparent: str | None, tracestate: str | None = None) -> Trace | None:
    """Return the place that two headers stand for, in the form of version 00; None if they stand for none."""
    found = None if traceparent is None else _parent(traceparent.strip(" \t"))
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    if version == "ff" or (version == "00" and rest) or not int(trace_id, 16) or not int(span_id, 16):
        return None
    known = int(flags, 16) & _KNOWN_FLAGS
    return Trace(f"00-{trace_id}-{span_id}-{known:02x}", _state_of(tracestate))


def _state_of(text: str | None) -> str | None:
    members = [member.strip(" \t") for member in (text or "").split(",")]
    members = [member for member in members if member]
    keys = {member.partition("=")[0] for member in members}
    state = ",".join(members)
    if not members or len(state) > MAX_STATE or len(members) > MAX_MEMBERS or len(keys) < len(members):
        return None
    return state if all(_member(member) for member in members) else None
