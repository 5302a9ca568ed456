"""The calls of the client that are about flow control: gates, limits, rules and caps."""

from datetime import datetime
from uuid import UUID

from tidewheel.client.options import Duration
from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.gate import Gate, GateMode
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.store.remote.documents import CapList, GateList, LimitDocument, LimitList, RuleDocument, RuleList
from tidewheel.store.remote.flow import path_of
from tidewheel.store.remote.transport import Transport, read


class FlowCalls:
    """A part of `AsyncClient`."""

    _transport: Transport

    async def gates(self) -> list[Gate]:
        """Return the closed gates."""
        return (await self._transport.get("/v1/gates", GateList)).gates

    async def close_gate(
        self,
        mode: GateMode | str,
        *,
        kind: str | None = None,
        queue: str | None = None,
        reason: str = "",
        rate: float | None = None,
        expires_at: datetime | None = None,
        lasts: Duration | None = None,
        stop_running: bool = False,
    ) -> Gate:
        """Close a gate on jobs of a kind, a queue, both, or all of one's own: `hold`, `drop` or `slow`."""
        asked = {"kind": kind, "queue": queue, "rate": rate, "expires_at": expires_at, "lasts": lasts}
        body = {name: value for name, value in asked.items() if value is not None}
        body |= {"mode": mode, "reason": reason, "stop_running": stop_running}
        return await self._transport.post("/v1/gates", body, Gate, safe=True)

    async def open_gate(self, gate_id: UUID) -> None:
        """Open a gate again. Raises NotFound."""
        await self._transport.write("DELETE", f"/v1/gates/{gate_id}", safe=False)

    async def limits(self) -> list[Limit]:
        """Return the limits with how many run under each."""
        return [limit.record() for limit in (await self._transport.get("/v1/limits", LimitList)).limits]

    async def set_limit(
        self, key: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> Limit:
        """Let at most so many jobs with a key run at once, or start in a time (`10/s`), or both."""
        body = {"most": most, "rate": rate, "burst": burst}
        content = await self._transport.write("PUT", path_of("limits", key), body, safe=True)
        return read(content, LimitDocument).record()

    async def remove_limit(self, key: str) -> None:
        """Remove a limit. Raises NotFound."""
        await self._transport.write("DELETE", path_of("limits", key), safe=False)

    async def rules(self) -> list[LimitRule]:
        """Return the rules, which hold for families of keys."""
        return [rule.record() for rule in (await self._transport.get("/v1/rules", RuleList)).rules]

    async def set_rule(
        self, name: str, most: int | None = None, *, rate: str | None = None, burst: int | None = None
    ) -> LimitRule:
        """Set what holds for the key `name` and for every `name=value`; for keys of all tenants."""
        return await self._put_rule(name, {"most": most, "rate": rate, "burst": burst})

    async def set_key_cap(self, name: str, waiting: int, *, overflow: Overflow = "reject") -> LimitRule:
        """Let at most so many jobs wait with the key `name` and with every `name=value`; it begins with `cap:`."""
        return await self._put_rule(name, {"waiting": waiting, "overflow": overflow})

    async def remove_rule(self, name: str) -> None:
        """Remove a rule. Raises NotFound."""
        await self._transport.write("DELETE", path_of("rules", name), safe=False)

    async def caps(self) -> list[QueueCap]:
        """Return the caps of queues."""
        return (await self._transport.get("/v1/caps", CapList)).caps

    async def set_cap(self, queue: str, most: int, *, overflow: Overflow = "reject") -> QueueCap:
        """Let at most so many jobs wait in a queue; one too many is rejected, or another is dropped for it."""
        body = {"most": most, "overflow": overflow}
        return read(await self._transport.write("PUT", path_of("caps", queue), body, safe=True), QueueCap)

    async def remove_cap(self, queue: str) -> None:
        """Let any number of jobs wait in a queue. Raises NotFound."""
        await self._transport.write("DELETE", path_of("caps", queue), safe=False)

    async def _put_rule(self, name: str, body: dict[str, object]) -> LimitRule:
        return read(await self._transport.write("PUT", path_of("rules", name), body, safe=True), RuleDocument).record()
