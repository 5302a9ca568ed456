"""Limits by key: those that tasks declare, and those that operators set at run time."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.job import JobSpec
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.rate import pace_of
from tidewheel.sdk.desk import Desk
from tidewheel.tasks.limiting import TaskLimit


def limit_keys_of(
    limits: Sequence[TaskLimit], spec: JobSpec, args: Mapping[str, Any], schedule: str | None = None
) -> tuple[str, ...]:
    """Return the limit keys of a job, which may be one of a schedule."""
    values = {
        "kind": spec.kind,
        "queue": spec.queue,
        "tenant": spec.tenant,
        "schedule": schedule,
        "args": args,
        "label": spec.labels,
    }
    return tuple(dict.fromkeys(limit.key_of(values) for limit in limits))


class Limits:
    """What an operator may ask about limits: `app.limits.set("rate:mail.send", rate="5/s")`.

    Methods whose names begin with `a` are for async code; their twins without it are for all other code and wait.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    # One key

    def set(
        self,
        key: str,
        most: int | None = None,
        *,
        rate: str | None = None,
        burst: int | None = None,
        tenant: str | None = None,
    ) -> Limit:
        """Set how many jobs of one key run at once, start in a time, or both; it counts for more than a rule."""
        return self._desk.run(self.aset(key, most, rate=rate, burst=burst, tenant=tenant))

    async def aset(
        self,
        key: str,
        most: int | None = None,
        *,
        rate: str | None = None,
        burst: int | None = None,
        tenant: str | None = None,
    ) -> Limit:
        """Set how many jobs of one key run at once, start in a time, or both; it counts for more than a rule."""
        pace, owner = pace_of(rate, burst), tenant or self._desk.tenant
        return await self._desk.use(lambda store: store.set_limit(key, most, rate=pace, tenant=owner))

    def remove(self, key: str, *, tenant: str | None = None) -> None:
        """Remove the limit of one key; a rule for it holds again, if there is one."""
        self._desk.run(self.aremove(key, tenant=tenant))

    async def aremove(self, key: str, *, tenant: str | None = None) -> None:
        """Remove the limit of one key; a rule for it holds again, if there is one."""
        await self._desk.use(lambda store: store.remove_limit(key, tenant=tenant or self._desk.tenant))

    def list(self, *, tenant: str | None = None) -> Sequence[Limit]:
        """Return the limits that are in use, with how many run under each and how many tokens are left."""
        return self._desk.run(self.alist(tenant=tenant))

    async def alist(self, *, tenant: str | None = None) -> Sequence[Limit]:
        """Return the limits that are in use, with how many run under each and how many tokens are left."""
        return await self._desk.use(lambda store: store.limits(tenant=tenant or self._desk.tenant))

    # Rules

    def set_rule(
        self, name: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> None:
        """Set what holds for the key `name` and for every `name=value`, whatever tasks declare."""
        self._desk.run(self.aset_rule(name, most, rate=rate, burst=burst))

    async def aset_rule(
        self, name: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> None:
        """Set what holds for the key `name` and for every `name=value`, whatever tasks declare."""
        rule = LimitRule(name, most, pace_of(rate, burst))
        await self._desk.use(lambda store: store.set_rule(rule))

    def remove_rule(self, name: str) -> None:
        """Remove a rule; one that tasks declare comes back with the next worker that starts."""
        self._desk.run(self.aremove_rule(name))

    async def aremove_rule(self, name: str) -> None:
        """Remove a rule; one that tasks declare comes back with the next worker that starts."""
        await self._desk.use(lambda store: store.remove_rule(name))
        self._desk.stores.limited.clear()

    def rules(self) -> Sequence[LimitRule]:
        """Return all rules."""
        return self._desk.run(self.arules())

    async def arules(self) -> Sequence[LimitRule]:
        """Return all rules."""
        return await self._desk.use(lambda store: store.rules())

    # Caps

    def set_key_cap(self, name: str, waiting: int, *, overflow: Overflow = "reject") -> None:
        """Let at most so many jobs wait with the key `name` and with every `name=value`, whatever tasks declare.

        The name begins with `cap:`. It is a rule, and is listed and removed as one.
        """
        self._desk.run(self.aset_key_cap(name, waiting, overflow=overflow))

    async def aset_key_cap(self, name: str, waiting: int, *, overflow: Overflow = "reject") -> None:
        """Let at most so many jobs wait with the key `name` and with every `name=value`, whatever tasks declare.

        The name begins with `cap:`. It is a rule, and is listed and removed as one.
        """
        rule = LimitRule(name, waiting=waiting, overflow=overflow)
        await self._desk.use(lambda store: store.set_rule(rule))

    def set_cap(self, queue: str, most: int, *, overflow: Overflow = "reject", tenant: str | None = None) -> None:
        """Let at most so many jobs wait in a queue; one too many is rejected, or another is dropped for it."""
        self._desk.run(self.aset_cap(queue, most, overflow=overflow, tenant=tenant))

    async def aset_cap(
        self, queue: str, most: int, *, overflow: Overflow = "reject", tenant: str | None = None
    ) -> None:
        """Let at most so many jobs wait in a queue; one too many is rejected, or another is dropped for it."""
        cap = QueueCap(tenant or self._desk.tenant, queue, most, overflow)
        await self._desk.use(lambda store: store.set_cap(cap))

    def remove_cap(self, queue: str, *, tenant: str | None = None) -> None:
        """Let any number of jobs wait in a queue."""
        self._desk.run(self.aremove_cap(queue, tenant=tenant))

    async def aremove_cap(self, queue: str, *, tenant: str | None = None) -> None:
        """Let any number of jobs wait in a queue."""
        await self._desk.use(lambda store: store.remove_cap(queue, tenant=tenant or self._desk.tenant))

    def caps(self, *, tenant: str | None = None) -> Sequence[QueueCap]:
        """Return the caps of queues."""
        return self._desk.run(self.acaps(tenant=tenant))

    async def acaps(self, *, tenant: str | None = None) -> Sequence[QueueCap]:
        """Return the caps of queues."""
        return await self._desk.use(lambda store: store.caps(tenant=tenant or self._desk.tenant))
