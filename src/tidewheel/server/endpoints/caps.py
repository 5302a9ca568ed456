"""Flow control of many jobs at once: caps on what waits in a queue, and rules for families of keys."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidewheel.model import cap as caps_model
from tidewheel.model.access import Action
from tidewheel.model.cap import Overflow, QueueCap
from tidewheel.model.limit import MOST, LimitRule, by_hand
from tidewheel.model.rate import pace_of
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.flow import NO_CONTENT
from tidewheel.server.recording import record
from tidewheel.server.service import Service

Waiting = Annotated[int, Meta(ge=1, le=caps_model.MOST)]


class CapRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs may wait in a queue."""

    most: Waiting
    overflow: Overflow = "reject"
    """What happens to one too many: it is rejected, or the first or the last in line is dropped for it."""


class CapDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A cap on what waits in a queue."""

    tenant: str
    queue: str
    most: int
    overflow: Overflow


class CapList(msgspec.Struct, frozen=True, kw_only=True):
    """The caps, by tenant and queue."""

    caps: list[CapDocument]


class RuleRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What holds for each key of a family: a limit; or, if its name begins with `cap:`, how many jobs may wait."""

    most: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    """How many may run at once."""
    rate: Annotated[str, Meta(max_length=40)] | None = None
    """Starts in a time, such as `10/s`, `100/m` or `5/h`."""
    burst: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    """How many may start at once after a pause."""
    waiting: Waiting | None = None
    """How many may wait."""
    overflow: Overflow = "reject"
    """What happens to one too many of these."""


class RuleDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the key of its name, and for every key `name=value`, each for itself and for each tenant."""

    name: str
    most: int | None
    rate: str | None
    burst: int | None
    waiting: int | None
    overflow: Overflow
    by_hand: bool
    """Whether an operator set it, which counts for more than what tasks declare."""


class RuleList(msgspec.Struct, frozen=True, kw_only=True):
    """The rules, by name."""

    rules: list[RuleDocument]


async def caps(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the caps of queues."""
    found = await service.store.caps(tenant=call.scope)
    return Answer(CapList(caps=[_cap(cap) for cap in found]))


async def set_cap(service: Service, call: Call[CapRequest, NoQuery]) -> Answer:
    """Let at most so many jobs wait in a queue."""
    cap = QueueCap(call.tenant, call.path["queue"], call.body.most, call.body.overflow)
    await service.store.set_cap(cap)
    told: dict[str, Any] = {"most": cap.most, "overflow": cap.overflow}
    await record(service, call, Action.LIMITS_WRITE, cap.queue, did="set-cap", **told)
    return Answer(_cap(cap))


async def remove_cap(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Let any number of jobs wait in a queue."""
    await service.store.remove_cap(call.path["queue"], tenant=call.tenant)
    await record(service, call, Action.LIMITS_WRITE, call.path["queue"], did="remove-cap")
    return Answer(None, NO_CONTENT)


async def rules(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the rules, which hold for all tenants."""
    del call
    return Answer(RuleList(rules=[_rule(rule) for rule in await service.store.rules()]))


async def set_rule(service: Service, call: Call[RuleRequest, NoQuery]) -> Answer:
    """Set what holds for each key of a family, whatever tasks declare."""
    request = call.body
    rate = pace_of(request.rate, request.burst)
    rule = LimitRule(call.path["name"], request.most, rate, waiting=request.waiting, overflow=request.overflow)
    await service.store.set_rule(rule)
    asked: dict[str, Any] = msgspec.structs.asdict(request)
    await record(service, call, Action.LIMITS_WRITE, rule.name, everywhere=True, did="set-rule", **asked)
    return Answer(_rule(by_hand(rule)))


async def remove_rule(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a rule; one that tasks declare comes back with the next worker that starts."""
    await service.store.remove_rule(call.path["name"])
    await record(service, call, Action.LIMITS_WRITE, call.path["name"], everywhere=True, did="remove-rule")
    return Answer(None, NO_CONTENT)


def _cap(cap: QueueCap) -> CapDocument:
    return CapDocument(tenant=cap.tenant, queue=cap.queue, most=cap.most, overflow=cap.overflow)


def _rule(rule: LimitRule) -> RuleDocument:
    return RuleDocument(
        name=rule.name,
        most=rule.most,
        rate=None if rule.rate is None else str(rule.rate),
        burst=None if rule.rate is None else rule.rate.burst,
        waiting=rule.waiting,
        overflow=rule.overflow,
        by_hand=rule.by_hand,
    )
