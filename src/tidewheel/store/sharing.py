"""What every store promises about the shares of tenants.

The rules of `store.base` hold here, too.
"""

from typing import Protocol

from tidewheel.model.tenant import Tenant


class ShareStore(Protocol):
    """For operators: how much of the workers each tenant gets."""

    async def set_weight(self, tenant: str, weight: float) -> Tenant:
        """Give a tenant a weight, also before its first job; in effect at the next claim. Raises Invalid.

        Within a priority, tenants with due jobs get starts in the ratio of their weights, and what one does not use the
        others get. Who was given none has weight 1.
        """
        ...

    async def tenants(self, *, tenant: str | None = None) -> list[Tenant]:
        """Return the tenants that are known, by name; with `tenant` only that one, if it is known."""
        ...
