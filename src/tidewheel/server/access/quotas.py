"""How much a tenant may bring: the number of its jobs that have not ended, and the size of each."""

from collections.abc import Sequence
from typing import Final

from tidewheel.clock import Clock
from tidewheel.errors import Invalid, TooMany
from tidewheel.model.tenant import Tenant
from tidewheel.store.access import TenantStore

LOOK_EVERY: Final = 1.0
"""Seconds between two looks at the settings of a tenant, and between two counts of its jobs."""
MOST_REMEMBERED: Final = 10_000


class _Account:
    """What is known of one tenant, and how much came since."""

    def __init__(self, tenant: Tenant, unfinished: int, looked_at: float) -> None:
        self.tenant = tenant
        self.unfinished = unfinished
        self.looked_at = looked_at


def _too_many(most: int | None) -> TooMany:
    return TooMany(f"jobs: this tenant may have {most} that have not ended", retry_after=1)


class Quotas:
    """Asks the store once a second, and adds what was let in by this process since.

    So the bound is soft by what other processes let in within a second, and by what is on its way. Jobs that come by
    other ways, such as the SDK on the database itself, are counted and not held back.
    """

    def __init__(self, store: TenantStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._accounts: dict[str, _Account] = {}

    async def check(self, tenant: str, sizes: Sequence[int]) -> None:
        """Let a batch of jobs in, given the bytes of their arguments, or refuse all of it.

        Raises Invalid for one that is too large (`specs[3].args`), and TooMany if there are too many.
        """
        account = await self._account(tenant)
        largest, most = account.tenant.max_payload, account.tenant.max_queued
        for position, size in enumerate(sizes):
            if largest is not None and size > largest:
                field = "args" if len(sizes) == 1 else f"specs[{position}].args"
                raise Invalid(field, f"must have at most {largest} bytes as JSON in this tenant, not {size}")
        if most is not None and account.unfinished + len(sizes) > most:
            raise _too_many(most)
        account.unfinished += len(sizes)

    async def take_up_to(self, tenant: str, jobs: int) -> int:
        """Let in as many jobs as there is room for, up to so many, and return how many. Raises TooMany for none."""
        account = await self._account(tenant)
        most = account.tenant.max_queued
        taken = jobs if most is None else max(0, min(jobs, most - account.unfinished))
        if taken == 0 < jobs:
            raise _too_many(most)
        account.unfinished += taken
        return taken

    def give_back(self, tenant: str, jobs: int) -> None:
        """Return what was let in and then not stored."""
        if account := self._accounts.get(tenant):
            account.unfinished = max(0, account.unfinished - jobs)

    async def _account(self, name: str) -> _Account:
        now = self._clock.monotonic()
        account = self._accounts.get(name)
        if account is not None and now - account.looked_at < LOOK_EVERY:
            return account
        tenant = next(iter(await self._store.tenants(tenant=name)), Tenant(name=name))
        bound = tenant.max_queued
        unfinished = 0 if bound is None else await self._store.count_unfinished(name, bound + 1)
        account = self._accounts.get(name)
        if account is not None and account.looked_at >= now:  # someone else was faster
            return account
        if len(self._accounts) >= MOST_REMEMBERED:
            self._accounts.clear()
        self._accounts[name] = account = _Account(tenant, unfinished, now)
        return account
