"""The tenants of an app's store and their shares. Each call has an async form and a synchronous twin."""

from tidewheel.model.tenant import Tenant
from tidewheel.sdk.desk import Desk


class Tenants:
    """Who shares the workers, and by which weights."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def aset_weight(self, tenant: str, weight: float) -> Tenant:
        """Give a tenant a weight: one of 3 gets three times the starts of one of 1, while both have jobs due."""
        return await self._desk.use(lambda store: store.set_weight(tenant, weight))

    async def alist(self) -> list[Tenant]:
        """Return the tenants that are known, by name."""
        return await self._desk.use(lambda store: store.tenants())

    # The synchronous twins

    def set_weight(self, tenant: str, weight: float) -> Tenant:
        """Give a tenant a weight: one of 3 gets three times the starts of one of 1, while both have jobs due."""
        return self._desk.run(self.aset_weight(tenant, weight))

    def list(self) -> list[Tenant]:
        """Return the tenants that are known, by name."""
        return self._desk.run(self.alist())
