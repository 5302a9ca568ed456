"""A run, and what the store gets of it."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from tidewheel.logs import LogShipper, RunLog
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import Piece, lines_of
from tidewheel.testing import FakeClock

JOB: Final = UUID(int=7)
MOMENT: Final = timedelta(microseconds=17)


class Scene:
    """A run, and what the store gets of it."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.pieces: list[Piece] = []
        self.lines: list[LogLine] = []
        self.shipper = LogShipper(self._append, self.clock)

    async def _append(self, pieces: Sequence[Piece]) -> None:
        self.pieces += pieces
        self.lines += [line for p in pieces for line in lines_of(p.job_id, p.token, p.first, p.lines)]

    def run(self, *, mask: Sequence[str] = (), max_bytes: int = 1024 * 1024) -> RunLog:
        made = RunLog(JOB, 3, self.shipper, self.clock, lane=11, max_bytes=max_bytes)
        made.hide(mask)
        return made

    async def ended(self, run: RunLog) -> list[str]:
        run.end()
        assert await self.shipper.flush(JOB, run.token)
        return [line.text for line in self.lines]
