"""What operators ask of the store: gates, limits, shares of tenants, numbers over time, and why a job does not run."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar
from uuid import UUID

import apsw

from tidewheel.clock import Clock
from tidewheel.model.checks import check_name
from tidewheel.model.gate import Gate, GateSpec, check_gate
from tidewheel.model.limit import Limit, LimitUse, check_limit
from tidewheel.model.rate import Pace
from tidewheel.model.states import State
from tidewheel.model.statistics import StatFilter, StatPoint, check_stat_filter
from tidewheel.model.tenant import Tenant, check_weight
from tidewheel.model.why import Facts
from tidewheel.store.explaining import Explanation, explanation_of
from tidewheel.store.sqlite import explaining, gating, limiting, sharing, statistics
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import micros

T = TypeVar("T")


class Operating:
    """A part of the store; see `store.gating`, `.limiting`, `.sharing`, `.counting` and `.explaining`."""

    _clock: Clock

    def _write(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        raise NotImplementedError

    async def _read(self, look: Callable[[apsw.Connection], T]) -> T:
        raise NotImplementedError

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        return await self._write(lambda session: gating.close_gate(session, spec))

    async def open_gate(self, gate_id: UUID, *, version: int | None = None) -> None:
        await self._write(lambda session: gating.open_gate(session, gate_id, version))

    async def gates(self) -> list[Gate]:
        return await self._read(gating.gates)

    async def tend_gates(self) -> int:
        return await self._write(gating.tend_gates)

    async def set_limit(
        self,
        key: str,
        most: int | None = None,
        *,
        rate: Pace | None = None,
        tenant: str = "default",
        version: int | None = None,
    ) -> Limit:
        check_limit(key, most, rate)
        asked = Limit(check_name("tenant", tenant), key, most, rate=rate)
        return await self._write(lambda session: limiting.change_limit(session, asked, version))

    async def remove_limit(self, key: str, *, tenant: str = "default", version: int | None = None) -> None:
        await self._write(lambda session: limiting.remove_limit(session, key, tenant, version))

    async def limit(self, key: str, *, tenant: str = "default") -> Limit:
        now = micros(self._clock.now())
        return await self._read(lambda connection: limiting.limit(connection, key, tenant, now))

    async def limits(
        self, *, tenant: str | None = None, limit: int | None = None, after: tuple[str, str] | None = None
    ) -> list[Limit]:
        page, now = (limit, after), micros(self._clock.now())
        return await self._read(lambda connection: limiting.limits(connection, tenant, page, now))

    async def limit_uses(self, keys: Sequence[tuple[str, str]]) -> list[LimitUse]:
        return await self._read(lambda connection: limiting.uses(connection, keys))

    async def set_weight(self, tenant: str, weight: float) -> Tenant:
        given = Tenant(check_name("tenant", tenant), check_weight(weight))
        return await self._write(lambda session: sharing.set_weight(session, given))

    async def tenants(self, *, tenant: str | None = None) -> list[Tenant]:
        return await self._read(lambda connection: sharing.tenants(connection, tenant))

    async def statistics(self, where: StatFilter) -> list[StatPoint]:
        checked = check_stat_filter(where)
        now = self._clock.now()
        return await self._read(lambda connection: statistics.statistics(connection, checked, now))

    async def finished(self) -> dict[tuple[str, State], int]:
        return await self._read(statistics.finished)

    async def missed(self) -> int:
        return await self._read(statistics.missed)

    async def fold_statistics(self, *, limit: int = 1000) -> int:
        return await self._write(lambda session: statistics.fold(session, limit))

    async def explain(self, job_id: UUID, *, tenant: str | None = None) -> Facts:
        now = micros(self._clock.now())
        return await self._read(lambda connection: explaining.explain(connection, job_id, tenant, now))

    async def why(self, job_id: UUID, *, tenant: str | None = None) -> Explanation:
        return explanation_of(await self.explain(job_id, tenant=tenant))
