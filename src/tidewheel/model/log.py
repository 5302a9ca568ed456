"""Lines that runs wrote."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, get_args
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import FIRST_INSTANT, LAST_INSTANT, check_instant, clean_text, is_storable, shown

LogStream = Literal["stdout", "stderr", "log", "system"]

KEEP_LOGS: Final = timedelta(days=30)
MAX_LINE: Final = 64 * 1024
MAX_LEVEL: Final = 40
_STREAMS: Final = get_args(LogStream)
_STREAM_SET: Final = frozenset(_STREAMS)
_MOST: Final = 2**63 - 1


class LogLine(msgspec.Struct, frozen=True):
    """One line. `number` rises within a run, and with job and token it tells the line from all others."""

    job_id: UUID
    token: int
    number: int
    at: datetime
    """When it was written, by the clock of the host that ran the job."""
    stream: LogStream
    level: str | None = None
    text: str = ""


def prepare_lines(lines: Sequence[LogLine]) -> Sequence[LogLine]:
    """Return lines that can be stored: texts cleaned and cut to their bounds, the rest checked."""
    if _are_fine(lines):
        return lines
    return [_check(line, f"lines[{position}]") for position, line in enumerate(lines)]


def _are_fine(lines: Sequence[LogLine]) -> bool:
    """Tell by a quick look that there is nothing to mend; most lines come from a shipper, many at the same instant."""
    at: datetime | None = None
    marks: set[tuple[str, str | None]] = set()
    for line in lines:
        if line.at is not at:
            at = line.at
            if at.tzinfo is not UTC or not FIRST_INSTANT <= at < LAST_INSTANT:
                return False
        marks.add((line.stream, line.level))
        if not (0 <= line.number <= _MOST and 0 <= line.token <= _MOST) or len(line.text) > MAX_LINE:
            return False
    return all(_is_fine_mark(*mark) for mark in marks) and is_storable("".join([line.text for line in lines]))


def _is_fine_mark(stream: str, level: str | None) -> bool:
    return stream in _STREAM_SET and (level is None or (len(level) <= MAX_LEVEL and is_storable(level)))


def _check(line: LogLine, field: str) -> LogLine:
    if line.stream not in _STREAMS:
        raise Invalid(f"{field}.stream", f"must be one of {', '.join(_STREAMS)}, not {shown(line.stream)}")
    for name, value in (("token", line.token), ("number", line.number)):
        if not 0 <= value <= _MOST:
            raise Invalid(f"{field}.{name}", f"must not be negative or beyond 63 bits, but is {value}")
    return LogLine(
        job_id=line.job_id,
        token=line.token,
        number=line.number,
        at=check_instant(f"{field}.at", line.at),
        stream=line.stream,
        level=None if line.level is None else clean_text(line.level, MAX_LEVEL),
        text=clean_text(line.text, MAX_LINE),
    )
