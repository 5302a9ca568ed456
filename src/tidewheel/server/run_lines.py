"""What is kept of the lines that workers send: clean ones, and of each run no more than a bound.

A worker of ours does the same before it sends anything, and keeps less; this is for those in other languages.
"""

from collections import OrderedDict
from collections.abc import Sequence
from datetime import datetime
from typing import Final
from uuid import UUID

from msgspec.structs import replace

from tidewheel.logs.quota import LAST_BYTES, LAST_LINES, MAX_LINES, Quota, kept_of
from tidewheel.model.harmless_text import clean, clean_lines
from tidewheel.model.log import LogLine
from tidewheel.model.worker_protocol import Line

AGAIN: Final = 4
"""How many times as much is kept as a worker of ours keeps, for what is sent again is counted again."""
MOST_REMEMBERED: Final = 10_000


class RunLines:
    """Counts what came of each run, in the memory of one process; of too many the one heard of longest ago goes."""

    def __init__(self) -> None:
        self._quotas: OrderedDict[tuple[UUID, int], Quota] = OrderedDict()

    def fit(self, lines: Sequence[LogLine]) -> list[LogLine]:
        """Return the lines that are kept; in place of the first of a run that is not stands a line that says so."""
        kept = []
        for line in lines:
            quota = self._quota(line.job_id, line.token)
            if quota.full:
                continue
            fits = quota.fit([line.text])
            kept.append(line if fits else replace(line, stream="system", level=None, text=quota.mark))
        return kept

    def _quota(self, job_id: UUID, token: int) -> Quota:
        quota = self._quotas.get((job_id, token))
        if quota is None:
            kept = kept_of(token) + 2 * LAST_BYTES  # its end, each line of which counts for more than its text
            quota = self._quotas[job_id, token] = Quota(AGAIN * kept, AGAIN * (MAX_LINES + LAST_LINES))
            if len(self._quotas) > MOST_REMEMBERED:
                self._quotas.popitem(last=False)
        self._quotas.move_to_end((job_id, token))
        return quota


def line_of(line: Line, now: datetime) -> LogLine:
    """Return a line as the store keeps it: without orders for terminals, and what cannot be seen spelt out."""
    level = None if line.level is None else clean(line.level)
    return LogLine(line.job_id, line.token, line.number, line.at or now, line.stream, level, clean_lines(line.text))
