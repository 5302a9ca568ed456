"""What every store promises about dead letters.

The rules of `store.base` hold here, too.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final, Protocol
from uuid import UUID

from tidewheel.model.dead_letter import DeadFilter, DeadGroup, Redriven
from tidewheel.model.job import Job
from tidewheel.store.pages import Page

ALL_DEAD: Final = DeadFilter()
AT_ONCE: Final = timedelta(0)


class DeadLetterStore(Protocol):
    """For whoever looks after jobs that died. A filter, rate or limit that makes no sense raises Invalid."""

    async def dead_groups(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50) -> list[DeadGroup]:
        """Return the groups of dead letters by tenant, kind and fingerprint, the largest first."""
        ...

    async def dead_letters(self, where: DeadFilter = ALL_DEAD, *, limit: int = 50, after: UUID | None = None) -> Page:
        """Return dead letters, newest id first, beginning after the id `after`."""
        ...

    async def count_dead(self, where: DeadFilter = ALL_DEAD) -> int:
        """Count dead letters: what a redrive would send round."""
        ...

    async def redrive_dead(
        self,
        where: DeadFilter,
        *,
        rate: float | None = None,
        start: timedelta = AT_ONCE,
        limit: int = 1000,
        after: UUID | None = None,
    ) -> Redriven:
        """Send up to `limit` dead letters round again, oldest id first, beginning after the id `after`.

        As `redrive` does, but the first becomes due after `start` and the others `rate` a second after it. Two who ask
        for the same at once send each job round once. Those that cannot go (see `redrive`) are passed over. To do the
        whole, ask again from `next` until that is None; who was interrupted may begin anew, for what went is no longer
        there.
        """
        ...

    async def redrive_edited(self, job_id: UUID, args: Mapping[str, Any], *, tenant: str | None = None) -> Job:
        """Send one dead letter round again with other arguments, which are checked as at a submit.

        Raises NotFound, Invalid, or Conflict if it is not dead (any more) or its unique key is taken.
        """
        ...
