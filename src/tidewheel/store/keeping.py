"""What every store promises to keepers about who does what, and what there is to do.

The rules of `store.base` hold here, too.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from tidewheel.model.duty import Agenda, Duty


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
