"""Builds keys, tenants and audit entries from rows; both stores select the same columns in the same order."""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from tidewheel.errors import Forbidden
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.api_key import ApiKey, KeySpec
from tidewheel.model.audit import AuditEntry, Change, change_by
from tidewheel.model.checks import duration_text
from tidewheel.model.tenant import Tenant
from tidewheel.store.records import Dialect

SCAN: Final = 20_000
"""How many entries of the audit log one page looks at before it is given up as short."""

_json: Final = msgspec.json.Decoder().decode


def key_of(row: Any, dialect: Dialect) -> ApiKey:
    """Build a key from its columns, without the digest."""
    number, prefix, name, role, tenant, created_at, created_by, *times, rate, burst = row
    expires_at, last_used_at, revoked_at = (_maybe(dialect.instant, time) for time in times)
    return ApiKey(
        id=dialect.uuid(number),
        prefix=prefix,
        name=name,
        role=Role(role),
        tenant=tenant,
        created_at=dialect.instant(created_at),
        created_by=created_by,
        expires_at=expires_at,
        last_used_at=last_used_at,
        revoked_at=revoked_at,
        rate=rate,
        burst=burst,
    )


def entry_of(row: Any, dialect: Dialect) -> AuditEntry:
    """Build an entry of the audit log."""
    number, at, actor, role, key_id, tenant, action, subject, detail = row
    return AuditEntry(
        id=dialect.uuid(number),
        at=dialect.instant(at),
        actor=actor,
        role=role,
        key_id=_maybe(dialect.uuid, key_id),
        tenant=tenant,
        action=action,
        subject=subject,
        detail=_maybe(_json, detail),
    )


# What is written down


def key_created(by: Actor, spec: KeySpec, key_id: object, prefix: str) -> Change:
    """Tell that a key was made; what opens doors is not among it."""
    told = {"prefix": prefix, "name": spec.name, "role": spec.role.value}
    lifetime = None if spec.lifetime is None else spec.lifetime.total_seconds()
    rates = {"rate": spec.rate, "burst": spec.burst, "lifetime_seconds": lifetime}
    return change_by(by, Action.KEYS_WRITE, key_id, tenant=spec.tenant, did="create", **told, **rates)


def key_revoked(by: Actor, key_id: object, prefix: str, tenant: str | None) -> Change:
    """Tell that a key was revoked."""
    return change_by(by, Action.KEYS_WRITE, key_id, tenant=tenant, did="revoke", prefix=prefix)


def tenant_set(by: Actor, tenant: Tenant) -> Change:
    """Tell that a tenant got its weight and bounds."""
    told = {"weight": tenant.weight, "max_queued": tenant.max_queued, "max_payload": tenant.max_payload}
    keep = None if tenant.keep_logs is None else duration_text(tenant.keep_logs)
    return change_by(by, Action.TENANTS_WRITE, tenant.name, tenant=tenant.name, **told, keep_logs=keep)


def job_erased(by: Actor, job_id: object, tenant: str) -> Change:
    """Tell that a job was erased, and nothing of what it was about."""
    return change_by(by, Action.JOBS_ERASE, job_id, tenant=tenant)


def refuse_other_tenants(by: Actor) -> None:
    """Raise Forbidden for an actor of one tenant: this is about all of them."""
    if by.tenant is not None:
        raise Forbidden("what concerns all tenants", by.role)


def _maybe(convert: Callable[[Any], Any], value: Any) -> Any:
    return None if value is None else convert(value)
