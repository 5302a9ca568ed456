"""What every store promises about reasons.

The rules of `store.base` hold here, too.
"""

from typing import Protocol
from uuid import UUID

from tidewheel.model.why import Facts


class ExplainStore(Protocol):
    """For whoever wonders why a job does not run."""

    async def explain(self, job_id: UUID, *, tenant: str | None = None) -> Facts:
        """Return what `model.why.why` needs to know of a job, as of one instant. Raises NotFound.

        It locks nothing and looks at a bounded number of rows, however many jobs there are.
        """
        ...
