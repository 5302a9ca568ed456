"""What every store promises about reasons.

The rules of `store.base` hold here, too.
"""

from datetime import datetime
from typing import Protocol
from uuid import UUID

import msgspec

from tidewheel.model.states import State
from tidewheel.model.why import Facts, Reason, why


class Explanation(msgspec.Struct, frozen=True):
    """All that keeps a job from running now, or that it runs or has ended."""

    as_of: datetime
    state: State
    reasons: list[Reason]
    """At least one."""


class ExplainStore(Protocol):
    """For whoever wonders why a job does not run."""

    async def explain(self, job_id: UUID, *, tenant: str | None = None) -> Facts:
        """Return what `model.why.why` needs to know of a job, as of one instant. Raises NotFound.

        It locks nothing and looks at a bounded number of rows, however many jobs there are.
        """
        ...

    async def why(self, job_id: UUID, *, tenant: str | None = None) -> Explanation:
        """Return why a job does not run. Raises NotFound."""
        ...


def explanation_of(facts: Facts) -> Explanation:
    """Return what the facts mean."""
    return Explanation(facts.now, facts.job.state, why(facts))
