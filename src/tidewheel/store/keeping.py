"""What every store promises to keepers: who does what, what there is to do, and the upkeep of jobs.

The rules of `store.base` hold here, too.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from tidewheel.model.duty import Agenda, Duty
from tidewheel.model.log import KEEP_LOGS
from tidewheel.model.retention import NO_KINDS, Keep, KindKeep


class DutyStore(Protocol):
    """For keepers: duties that the nodes share."""

    async def share_duties(self, node: UUID, names: Sequence[str], ttl: timedelta) -> list[Duty] | None:
        """Say that a node is there for as long as `ttl` and ready for these duties; return those that are its now.

        A duty has one holder, for as long as that is there: who has died or fallen silent loses all duties with its
        lease. Who asks gives up what is due to others, and gets what is due to it and free; what is due to whom tells
        `model.duty.share`. A duty that passes from one to another is with nobody in between until the other asks.

        None if there are `MOST_NODES` others already: it is not among them then, and may ask again later.
        """
        ...

    async def leave_duties(self, node: UUID) -> None:
        """Give up all duties of a node, which is there no more."""
        ...

    async def agenda(self) -> Agenda:
        """Tell by one cheap look what there is to do."""
        ...


class UpkeepStore(Protocol):
    """For the keeper: chores that keep the promises. Each does a bounded piece and says how much there was."""

    async def expire(self, *, limit: int = 1000) -> int:
        """End waiting jobs whose `start_by` has passed as `expired`; return how many."""
        ...

    async def expire_old(self, max_age: timedelta, *, limit: int = 1000) -> int:
        """End waiting jobs as `expired` that have waited for longer since they were last due; return how many.

        That is since their `run_at`, whether they are queued, blocked, limited or behind a gate. Each call looks at the
        next ones that are old enough, and after the last begins again with the first. Raises Invalid.
        """
        ...

    async def drop_gated(self, *, limit: int = 1000) -> int:
        """End waiting jobs behind `drop` gates as `dropped`; return how many."""
        ...

    async def unblock(self, *, limit: int = 1000) -> int:
        """Tell more children of ended jobs that had too many to tell at once; return how many were told."""
        ...

    async def recheck_blocked(self, *, limit: int = 1000) -> int:
        """Look whether a blocked job was forgotten by the end of a parent, and mend that; return how many were.

        Each call looks at the next ones, and after the last begins again with the first.
        """
        ...

    async def take_census(self) -> None:
        """Count the active jobs for `counts`."""
        ...

    async def retire(
        self, keep: Keep, *, kinds: KindKeep = NO_KINDS, logs: timedelta = KEEP_LOGS, limit: int = 10_000
    ) -> int:
        """Remove finished jobs, attempts, idempotency keys and ended workers that are older than `keep` says.

        `kinds` has what goes for some kinds instead. Lines of runs are kept for `logs`, notes of runs for a day after
        their job has ended and they were written.
        States not named are kept. PostgreSQL removes whole days (UTC), once all of the day is old enough. Returns how
        many jobs (SQLite) or day partitions (PostgreSQL) went. Raises Invalid for ages below zero.
        """
        ...

    async def begin_epoch(self) -> int:
        """Begin a new epoch and return it, as whoever has put back a backup must: tokens may be given out again.

        Stores that are open keep the epoch that they were opened in.
        """
        ...

    async def prepare_days(self, *, ahead: int = 7) -> int:
        """Create the day partitions of the coming days where the store has such; return how many were made."""
        ...
