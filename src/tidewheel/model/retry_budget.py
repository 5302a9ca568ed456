"""The retry budget: what failed before takes at most a fifth of the starts of a queue while first attempts wait.

So a downstream that fails every call does not keep the jobs from running that never had their turn. Without first
attempts waiting, retries may have everything.
"""

from collections.abc import Iterable, Mapping
from typing import Final

RETRY_SHARE: Final = 0.2
"""The most that retries get of the starts of a queue."""
_EARNED: Final = RETRY_SHARE / (1 - RETRY_SHARE)
"""What each start of a first attempt earns the retries of its queue."""
_ONE: Final = 1 - 1e-9


class RetryBudget:
    """What retries may have within one plan; `credit` is carried from claim to claim, so that small claims add up."""

    def __init__(self, waiting: Iterable[tuple[str, bool, int]], credit: Mapping[str, float]) -> None:
        """Take of each lane: its queue, whether it is of retries, and how many are due."""
        waiting = list(waiting)
        queues = {queue for queue, retried, due in waiting if retried and due}
        self.credit = {queue: credit.get(queue, 0.0) for queue in queues}
        self._first = dict.fromkeys(queues, 0)
        for queue, retried, due in waiting:
            if queue in queues and not retried:
                self._first[queue] += due

    def allows(self, queue: str) -> bool:
        """Tell whether a retry of a queue may start now."""
        return self._first[queue] <= 0 or self.credit[queue] >= _ONE

    def is_free(self, queue: str) -> bool:
        """Tell whether all retries of a queue may start, for no first attempt waits."""
        return self._first[queue] <= 0

    def start(self, queue: str, *, retried: bool) -> None:
        """Note a start."""
        if queue not in self.credit:
            return
        if not retried:
            self._first[queue] -= 1
            self.credit[queue] = min(self.credit[queue] + _EARNED, 1.0)
        elif self._first[queue] > 0:
            self.credit[queue] -= 1  # the aged go without asking, and are counted all the same
        else:
            self.credit[queue] = 0.0

    def leave_out(self, queue: str, due: int) -> None:
        """Note that first attempts cannot start here, and so do not wait for this."""
        if queue in self._first:
            self._first[queue] -= due
