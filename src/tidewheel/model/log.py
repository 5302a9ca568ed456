"""Lines of output and log, as they are stored and searched."""

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

LogStream = Literal["stdout", "stderr", "log", "system"]


class LogLine(msgspec.Struct, frozen=True):
    """One line that a run wrote, or that was written about it."""

    job_id: UUID
    token: int
    number: int
    """Rises within a run."""
    at: datetime
    stream: LogStream
    level: str | None
    text: str
