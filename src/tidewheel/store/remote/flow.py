"""Gates, limits, caps and what apps declare, over HTTP."""

from collections.abc import Sequence
from urllib.parse import quote
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.cap import QueueCap, check_cap
from tidewheel.model.gate import Gate, GateSpec, check_gate
from tidewheel.model.limit import Limit, LimitRule, LimitUse, check_limit, check_rule
from tidewheel.model.rate import Pace
from tidewheel.model.schedule import Declared, ScheduleSpec
from tidewheel.model.worker_protocol import DeclarationAnswer
from tidewheel.store.remote.documents import CapList, GateList, LimitDocument, LimitList, RuleList
from tidewheel.store.remote.requests import cap_body, gate_body, limit_body, rule_body
from tidewheel.store.remote.transport import Transport, read, tenant_header


class Flow:
    """See `store.gating.GateStore`, `store.limiting.LimitStore` and `store.capping.CapStore`."""

    _transport: Transport

    async def close_gate(self, spec: GateSpec) -> Gate:
        check_gate(spec)
        return await self._transport.post(
            "/v1/gates", gate_body(spec), Gate, safe=True, headers=tenant_header(spec.tenant)
        )

    async def open_gate(self, gate_id: UUID, *, version: int | None = None) -> None:
        headers = tenant_header(None) | _if_match(version)
        await self._transport.write("DELETE", f"/v1/gates/{gate_id}", safe=False, headers=headers)

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
        self,
        key: str,
        most: int | None = None,
        *,
        rate: Pace | None = None,
        tenant: str = "default",
        version: int | None = None,
    ) -> Limit:
        check_limit(key, most, rate)
        path, body = path_of("limits", key), limit_body(most, rate)
        headers = tenant_header(tenant) | _if_match(version)
        # What was done and not answered has another version by then: a repeat would be told that it is too late.
        content = await self._transport.write("PUT", path, body, safe=version is None, headers=headers)
        return read(content, LimitDocument).record()

    async def remove_limit(self, key: str, *, tenant: str = "default", version: int | None = None) -> None:
        headers = tenant_header(tenant) | _if_match(version)
        await self._transport.write("DELETE", path_of("limits", key), safe=False, headers=headers)

    async def limit(self, key: str, *, tenant: str = "default") -> Limit:
        headers = tenant_header(tenant)
        return (await self._transport.get(path_of("limits", key), LimitDocument, headers=headers)).record()

    async def limits(
        self, *, tenant: str | None = None, limit: int | None = None, after: tuple[str, str] | None = None
    ) -> list[Limit]:
        found = await self._transport.get("/v1/limits", LimitList, headers=tenant_header(tenant))
        places = [(one.tenant, one.key) for one in found.limits]
        first = places.index(after) + 1 if after in places else 0
        return [one.record() for one in found.limits[first:][:limit]]

    async def limit_uses(self, keys: Sequence[tuple[str, str]]) -> list[LimitUse]:
        found = await self._transport.get("/v1/limits", LimitList, {"use": "true"}, headers=tenant_header(None))
        uses = {(one.tenant, one.key): one.use() for one in found.limits}
        return [uses.get(key) or LimitUse(*key, 0, []) for key in keys]

    async def set_rule(self, rule: LimitRule) -> None:
        check_rule(rule)
        await self._transport.write("PUT", path_of("rules", rule.name), rule_body(rule), safe=True)

    async def remove_rule(self, name: str) -> None:
        await self._transport.write("DELETE", path_of("rules", name), safe=False)

    async def rules(self) -> list[LimitRule]:
        return [rule.record() for rule in (await self._transport.get("/v1/rules", RuleList)).rules]

    async def set_cap(self, cap: QueueCap) -> None:
        check_cap(cap)
        path, headers = path_of("caps", cap.queue), tenant_header(cap.tenant)
        await self._transport.write("PUT", path, cap_body(cap), safe=True, headers=headers)

    async def remove_cap(self, queue: str, *, tenant: str = "default") -> None:
        await self._transport.write("DELETE", path_of("caps", queue), safe=False, headers=tenant_header(tenant))

    async def caps(self, *, tenant: str | None = None) -> list[QueueCap]:
        return (await self._transport.get("/v1/caps", CapList, headers=tenant_header(tenant))).caps


def _if_match(version: int | None) -> dict[str, str]:
    return {} if version is None else {"if-match": f'"{version}"'}


def path_of(what: str, name: str) -> str:
    """Return the path of something that has a name."""
    try:
        return f"/v1/{what}/{quote(name, safe='')}"
    except UnicodeError:
        raise Invalid("name", "must not contain half of a surrogate pair") from None
