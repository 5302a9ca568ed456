"""Gates, limits and what apps declare, over HTTP."""

from collections.abc import Sequence
from urllib.parse import quote
from uuid import UUID

import msgspec

from tidewheel.model.gate import Gate, GateSpec, check_gate
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.rate import Pace
from tidewheel.model.schedule import Declared, ScheduleSpec
from tidewheel.model.worker_protocol import DeclarationAnswer
from tidewheel.store.remote.documents import GateList, LimitDocument, LimitList
from tidewheel.store.remote.requests import gate_body
from tidewheel.store.remote.transport import Transport, read, tenant_header


class Flow:
    """See `store.gating.GateStore` and `store.limiting.LimitStore`."""

    _transport: Transport

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        return await self._transport.post(
            "/v1/gates", gate_body(spec), Gate, safe=True, headers=tenant_header(spec.tenant)
        )

    async def open_gate(self, gate_id: UUID) -> None:
        await self._transport.write("DELETE", f"/v1/gates/{gate_id}", safe=False, headers=tenant_header(None))

    async def gates(self) -> list[Gate]:
        return (await self._transport.get("/v1/gates", GateList, headers=tenant_header(None))).gates

    async def declare_rules(self, rules: Sequence[LimitRule]) -> int:
        if not rules:
            return 0
        body = {"rules": rules}
        return (await self._transport.post("/v1/declarations", body, DeclarationAnswer, safe=True)).rules_changed

    async def declare_schedules(self, app: str, specs: Sequence[ScheduleSpec]) -> Declared:
        body = {"app": app, "schedules": [msgspec.json.encode(spec).decode() for spec in specs]}
        return (await self._transport.post("/v1/declarations", body, DeclarationAnswer, safe=True)).schedules

    async def set_limit(
        self, key: str, most: int | None = None, *, rate: Pace | None = None, tenant: str = "default"
    ) -> Limit:
        body = {
            "most": most,
            "rate": None if rate is None else str(rate),
            "burst": None if rate is None else rate.burst,
        }
        path = f"/v1/limits/{quote(key, safe='')}"
        found = read(
            await self._transport.write("PUT", path, body, safe=True, headers=tenant_header(tenant)), LimitDocument
        )
        return found.record()

    async def remove_limit(self, key: str, *, tenant: str = "default") -> None:
        path = f"/v1/limits/{quote(key, safe='')}"
        await self._transport.write("DELETE", path, safe=False, headers=tenant_header(tenant))

    async def limits(self, *, tenant: str | None = None) -> list[Limit]:
        found = await self._transport.get("/v1/limits", LimitList, headers=tenant_header(tenant))
        return [limit.record() for limit in found.limits]
