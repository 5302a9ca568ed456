"""Tenants: their shares and bounds."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from tidewheel.errors import Forbidden
from tidewheel.model.checks import duration_text
from tidewheel.model.tenant import LEAST_PAYLOAD, LEAST_WEIGHT, MOST_PAYLOAD, MOST_QUEUED, MOST_WEIGHT, Tenant
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.job_request import Duration, duration_of
from tidewheel.server.service import Service


class TenantRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a tenant gets; what is left out is as for a tenant that was given nothing."""

    weight: Annotated[float, Meta(ge=LEAST_WEIGHT, le=MOST_WEIGHT)] = 1.0
    """Its share of the starts while others wait, too, over the sum of the weights."""
    max_queued: Annotated[int, Meta(ge=0, le=MOST_QUEUED)] | None = None
    """How many jobs it may have that have not ended; any number if left out."""
    max_payload: Annotated[int, Meta(ge=LEAST_PAYLOAD, le=MOST_PAYLOAD)] | None = None
    """How many bytes of arguments, as JSON, each of its jobs may have."""
    keep_logs: Duration | None = None
    """How long the lines of its runs are kept; as long as everyone's if left out."""


class TenantDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Someone who has jobs, or was given something."""

    name: str
    weight: float
    max_queued: int | None
    max_payload: int | None
    keep_logs: str | None


class TenantList(msgspec.Struct, frozen=True, kw_only=True):
    """The tenants that are known, by name: from their first job on, or because they were given something."""

    tenants: list[TenantDocument]


async def find(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the tenants that exist for whoever asks: all, or their own alone."""
    found = await service.store.tenants(tenant=call.actor.tenant)
    return Answer(TenantList(tenants=[_document(tenant) for tenant in found]))


async def set_tenant(service: Service, call: Call[TenantRequest, NoQuery]) -> Answer:
    """Give a tenant its share and bounds; the store writes down who did."""
    request = call.body
    keep = None if request.keep_logs is None else duration_of(request.keep_logs, "keep_logs")
    tenant = Tenant(call.path["name"], request.weight, request.max_queued, request.max_payload, keep)
    return Answer(_document(await service.store.set_tenant(tenant, by=call.actor)))


def scope_of_all(call: Call[Any, Any], *, wanted: bool) -> str | None:
    """Return the tenant of a request, or None for all if that is wanted; Forbidden for an actor of one tenant."""
    if not wanted:
        return call.tenant
    if not call.actor.everywhere:
        raise Forbidden("all tenants", call.actor.role)
    return None


def _document(tenant: Tenant) -> TenantDocument:
    keep = None if tenant.keep_logs is None else duration_text(tenant.keep_logs)
    return TenantDocument(**(msgspec.structs.asdict(tenant) | {"keep_logs": keep}))
