"""Keys: give them out, list and revoke them."""

import secrets
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid, NotFound
from tidewheel.model.access import Role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, make_key
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.looking import PageQuery
from tidewheel.server.endpoints.tenants import scope_of_all
from tidewheel.server.job_request import Duration, Instant, Name, duration_of
from tidewheel.server.names import id_in
from tidewheel.server.service import Service

CREATED: Final = 201
_LAST: Final = 2**128 - 1


class KeyRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a key is to be. It is for the tenant that the request works in, unless it is for all."""

    name: Name
    """For people: who or what it is for."""
    role: Role
    all_tenants: bool = False
    """Whether it is for all tenants; only keys of all tenants make such."""
    expires_in: Duration | None = None
    """How long it is valid; for ever if left out."""
    rate: float | None = None
    """Requests a second; the server's default if left out."""
    burst: int | None = None
    """Requests at once after a pause."""


class KeyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A key without what opens doors."""

    id: UUID
    prefix: str
    """What it begins with, after `tide_`; tells keys apart."""
    name: str
    role: Role
    tenant: str | None
    """Null for all tenants."""
    created_at: Instant
    created_by: str
    expires_at: Instant | None
    last_used_at: Instant | None
    """To the minute."""
    revoked_at: Instant | None
    rate: float | None
    burst: int | None


class NewKeyDocument(KeyDocument, frozen=True, kw_only=True):
    """A key that was just made."""

    key: str
    """What to send as `Authorization: Bearer`. It is shown this once: only a digest of it is kept."""


class KeyQuery(PageQuery, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which keys to list."""

    all_tenants: bool = False
    """Those of every tenant and of all; only for keys of all tenants."""


class KeyPage(msgspec.Struct, frozen=True, kw_only=True):
    """Keys, newest first; expired and revoked ones are among them."""

    keys: list[KeyDocument]
    next_cursor: str | None


async def create(service: Service, call: Call[KeyRequest, NoQuery]) -> Answer:
    """Make a key; the store writes down who did."""
    request = call.body
    spec = KeySpec(
        name=request.name,
        role=request.role,
        tenant=scope_of_all(call, wanted=request.all_tenants),
        lifetime=None if request.expires_in is None else duration_of(request.expires_in, "expires_in"),
        rate=request.rate,
        burst=request.burst,
    )
    made = make_key(secrets.token_bytes(ENTROPY))
    try:
        key = await service.store.create_key(spec, made.proof, by=call.actor)
    except Invalid as error:
        raise Invalid("expires_in" if error.field == "lifetime" else error.field, error.why) from None
    headers = (("location", f"/v1/keys/{key.id}"), ("cache-control", "no-store"))
    return Answer(NewKeyDocument(**_fields(key), key=made.text), CREATED, headers)


async def find(service: Service, call: Call[None, KeyQuery]) -> Answer:
    """Return a page of keys."""
    query = call.query
    tenant = scope_of_all(call, wanted=query.all_tenants)
    scope = f"keys/{tenant or '*'}"
    found = await service.store.keys(tenant=tenant, limit=query.limit, after=unseal_id(scope, query.cursor))
    last = found[-1].id if len(found) == query.limit else None
    return Answer(KeyPage(keys=[KeyDocument(**_fields(key)) for key in found], next_cursor=seal_id(scope, last)))


async def get(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return a key, without what opens doors."""
    key_id = id_in(call, "key")
    tenant = scope_of_all(call, wanted=call.actor.everywhere)
    newest = await service.store.keys(tenant=tenant, limit=1, after=UUID(int=min(key_id.int + 1, _LAST)))
    if not newest or newest[0].id != key_id:
        raise NotFound("key", key_id)
    return Answer(KeyDocument(**_fields(newest[0])))


async def revoke(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Make a key open nothing any more; every server feels that within a second."""
    key = await service.store.revoke_key(id_in(call, "key"), by=call.actor)
    return Answer(KeyDocument(**_fields(key)))


def _fields(key: ApiKey) -> dict[str, Any]:
    return msgspec.structs.asdict(key)
