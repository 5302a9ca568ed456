"""Flow control: gates and limits."""

from typing import Annotated, Any, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import NotFound
from tidewheel.model.access import Action
from tidewheel.model.checks import is_key
from tidewheel.model.gate import Gate, GateMode, GateSpec
from tidewheel.model.limit import MOST, Limit
from tidewheel.model.rate import pace_of
from tidewheel.model.version import gate_version, limit_version
from tidewheel.server.cursors import bad_cursor, seal, unseal
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Duration, Instant, Name, duration_of
from tidewheel.server.names import id_in
from tidewheel.server.preconditions import etag_of, expected_version
from tidewheel.server.recording import record
from tidewheel.server.service import Service

OK: Final = 200
CREATED: Final = 201
NO_CONTENT: Final = 204
_LIMITS: Final = "limits"


class GateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to close a gate on: all of one's own, or those of a kind, a queue, or both."""

    mode: GateMode
    """`hold` lets them wait, `drop` ends them, `slow` lets so many start in a second as `rate` says."""
    kind: Name | None = None
    queue: Name | None = None
    reason: Annotated[str, Meta(max_length=1000)] = ""
    author: Annotated[str, Meta(max_length=200)] = ""
    """For people; without it the name of the key."""
    rate: float | None = None
    """For a slow gate: how many jobs may start in a second."""
    expires_at: Instant | None = None
    """When it opens by itself; not together with `lasts`."""
    lasts: Duration | None = None
    """After how long it opens by itself."""
    stop_running: bool = False
    """Whether what runs behind it is asked to stop."""


class GateDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A closed gate."""

    id: UUID
    mode: GateMode
    kind: str | None
    queue: str | None
    tenant: str | None
    reason: str
    author: str
    created_at: Instant
    rate: float | None
    ready_at: Instant | None
    """When the next job may pass a slow gate."""
    expires_at: Instant | None
    stop_running: bool


class GateList(msgspec.Struct, frozen=True, kw_only=True):
    """The closed gates, oldest first."""

    gates: list[GateDocument]


class LimitRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many jobs with a key may run at once, or start in a time, or both."""

    most: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    rate: Annotated[str, Meta(max_length=40)] | None = None
    """Starts in a time, such as `10/s`, `100/m` or `5/h`."""
    burst: Annotated[int, Meta(ge=1, le=MOST)] | None = None
    """How many may start at once after a pause."""


class LimitDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A cap on the jobs of one key."""

    key: str
    most: int | None
    running: int
    rate: str | None
    """Starts in a time, such as `10/s`."""
    burst: int | None
    """How many may start at once after a pause."""
    tokens: int | None
    """How many may start at once by the rate now."""
    rule: str | None
    """The rule that it follows; null if it was set for itself."""
    tenant: str
    waiting: int | None = None
    """How many jobs wait for it, if that was asked for; no more than 10 000 are counted."""
    holders: list[UUID] | None = None
    """Some jobs that run under it, if that was asked for."""


class LimitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which limits to list, and how much to tell of them."""

    limit: Annotated[int, Meta(ge=1, le=1000)] | None = None
    """How many at most; without it all."""
    cursor: Annotated[str, Meta(max_length=1000)] | None = None
    """The `next_cursor` of the page before."""
    use: bool = False
    """Also who waits for each, and who holds it."""


class LimitList(msgspec.Struct, frozen=True, kw_only=True):
    """The limits, by key."""

    limits: list[LimitDocument]
    next_cursor: str | None = None
    """Leads to the next page; null at the end."""


async def close_gate(service: Service, call: Call[GateRequest, NoQuery]) -> Answer:
    """Close a gate; it takes the place of the one on just the same."""
    request = call.body
    spec = GateSpec(
        mode=request.mode,
        kind=request.kind,
        queue=request.queue,
        tenant=call.scope,
        reason=request.reason,
        author=request.author or call.actor.name,
        rate=request.rate,
        expires_at=request.expires_at,
        lasts=None if request.lasts is None else duration_of(request.lasts, "lasts"),
        stop_running=request.stop_running,
    )
    gate = await service.store.close_gate(spec)
    told: dict[str, Any] = {
        "did": "close",
        "mode": gate.mode.value,
        "kind": gate.kind,
        "queue": gate.queue,
        "rate": gate.rate,
    }
    everywhere = gate.tenant is None
    await record(service, call, Action.GATES_WRITE, gate.id, everywhere=everywhere, **told, reason=gate.reason or None)
    return _gate_answer(gate, CREATED, ("location", f"/v1/gates/{gate.id}"))


async def open_gate(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Open a gate again."""
    gate_id = id_in(call, "gate")
    own = [gate for gate in await service.store.gates() if gate.id == gate_id and _is_own(gate, call)]
    if not own:
        raise NotFound("gate", gate_id)
    version = expected_version(call.headers, str(gate_id), gate_version(own[0]), "gate")
    await service.store.open_gate(gate_id, version=version)
    await record(service, call, Action.GATES_WRITE, gate_id, everywhere=own[0].tenant is None, did="open")
    return Answer(None, NO_CONTENT)


async def gates(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the gates that jobs of one's own may be behind."""
    return Answer(GateList(gates=[_gate(gate) for gate in await _gates_seen(service, call)]))


async def gate(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return one of these."""
    gate_id = id_in(call, "gate")
    for found in await _gates_seen(service, call):
        if found.id == gate_id:
            return _gate_answer(found)
    raise NotFound("gate", gate_id)


async def _gates_seen(service: Service, call: Call[None, NoQuery]) -> list[Gate]:
    found = await service.store.gates()
    return [gate for gate in found if call.scope is None or gate.tenant in (None, call.scope)]


async def set_limit(service: Service, call: Call[LimitRequest, NoQuery]) -> Answer:
    """Set how many jobs with a key may run at once, or start in a time, or both."""
    request = call.body
    rate = pace_of(request.rate, request.burst)
    version = await _version_meant(service, call)
    limit = await service.store.set_limit(
        call.path["key"], request.most, rate=rate, tenant=call.tenant, version=version
    )
    told: dict[str, Any] = {"most": request.most, "rate": request.rate, "burst": request.burst}
    await record(service, call, Action.LIMITS_WRITE, limit.key, did="set", **told)
    return _limit_answer(limit)


async def remove_limit(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Remove a limit; who waits for it is released."""
    version = await _version_meant(service, call)
    await service.store.remove_limit(call.path["key"], tenant=call.tenant, version=version)
    await record(service, call, Action.LIMITS_WRITE, call.path["key"], did="remove")
    return Answer(None, NO_CONTENT)


async def limits(service: Service, call: Call[None, LimitQuery]) -> Answer:
    """Return the limits with how many run under each."""
    query = call.query
    after = None if query.cursor is None else _place_in(query.cursor)
    found = await service.store.limits(tenant=call.scope, limit=query.limit, after=after)
    documents = [_limit(limit) for limit in found]
    if query.use:
        uses = await service.store.limit_uses([(limit.tenant, limit.key) for limit in found])
        documents = [
            msgspec.structs.replace(document, waiting=use.waiting, holders=use.holders)
            for document, use in zip(documents, uses, strict=True)
        ]
    more = None if len(found) != query.limit else seal(_LIMITS, msgspec.json.encode((found[-1].tenant, found[-1].key)))
    return Answer(LimitList(limits=documents, next_cursor=more))


def _place_in(cursor: str) -> tuple[str, str]:
    try:
        tenant, key = msgspec.json.decode(unseal(_LIMITS, cursor), type=tuple[str, str])
    except (msgspec.MsgspecError, UnicodeError):
        raise bad_cursor() from None
    if not (is_key(tenant) and is_key(key)):
        raise bad_cursor()
    return tenant, key


async def limit(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the limit of a key."""
    return _limit_answer(await service.store.limit(call.path["key"], tenant=call.tenant))


async def _version_meant(service: Service, call: Call[Any, NoQuery]) -> int | None:
    """Return the version of a limit that a change is meant for; only who says that pays for a look."""
    if "if-match" not in call.headers:
        return None
    key = call.path["key"]
    try:
        current = limit_version(await service.store.limit(key, tenant=call.tenant))
    except NotFound:
        current = 0
    return expected_version(call.headers, key, current, "limit")


def _gate_answer(gate: Gate, status: int = OK, *headers: tuple[str, str]) -> Answer:
    return Answer(_gate(gate), status, (etag_of(gate_version(gate)), *headers))


def _limit_answer(limit: Limit) -> Answer:
    return Answer(_limit(limit), OK, (etag_of(limit_version(limit)),))


def _is_own(gate: Gate, call: Call[Any, Any]) -> bool:
    return call.scope is None or gate.tenant == call.tenant or (gate.tenant is None and call.actor.everywhere)


def _gate(gate: Gate) -> GateDocument:
    return GateDocument(
        id=gate.id,
        mode=gate.mode,
        kind=gate.kind,
        queue=gate.queue,
        tenant=gate.tenant,
        reason=gate.reason,
        author=gate.author,
        created_at=gate.created_at,
        rate=gate.rate,
        ready_at=gate.ready_at,
        expires_at=gate.expires_at,
        stop_running=gate.stop_running,
    )


def _limit(limit: Limit) -> LimitDocument:
    return LimitDocument(
        key=limit.key,
        most=limit.most,
        running=limit.running,
        rate=None if limit.rate is None else str(limit.rate),
        burst=None if limit.rate is None else limit.rate.burst,
        tokens=limit.tokens,
        rule=limit.rule,
        tenant=limit.tenant,
    )
