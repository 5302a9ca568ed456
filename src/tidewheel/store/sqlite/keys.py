"""Keys: given out, recognised and revoked."""

from datetime import datetime
from uuid import UUID

import apsw

from tidewheel.errors import NotFound
from tidewheel.model.access import Actor
from tidewheel.model.api_key import USED_EVERY, ApiKey, KeySpec, Known, Proof
from tidewheel.store.access_rows import key_created, key_of, key_revoked
from tidewheel.store.sqlite.auditing import audit
from tidewheel.store.sqlite.connection import rows, value
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import DIALECT, span

_LAST = b"\xff" * 16


def create(session: Session, spec: KeySpec, proof: Proof, by: Actor) -> ApiKey:
    """See `store.access.KeyStore.create_key`."""
    now, key_id = session.now, session.make_id()
    session.run(
        "add_api_key",
        id=key_id.bytes,
        prefix=proof.prefix,
        digest=proof.digest,
        tenant=spec.tenant,
        role=spec.role.value,
        name=spec.name,
        now=now,
        by=by.name,
        expires_at=None if spec.lifetime is None else now + span(spec.lifetime),
        rate=None if spec.rate is None else float(spec.rate),
        burst=spec.burst,
    )
    audit(session, [key_created(by, spec, key_id, proof.prefix)])
    return _get(session, key_id)


def create_first(session: Session, spec: KeySpec, proof: Proof, by: Actor) -> ApiKey | None:
    """See `store.access.KeyStore.create_first_key`."""
    return None if session.value("has_api_keys") else create(session, spec, proof, by)


def has_any(connection: apsw.Connection) -> bool:
    """See `store.access.KeyStore.has_keys`."""
    return bool(value(connection, "has_api_keys", {}))


def find(connection: apsw.Connection, prefix: str, now: datetime) -> Known | None:
    """See `store.access.KeyStore.find_key`."""
    for *row, digest in rows(connection, "find_api_key", {"prefix": prefix}):
        return Known(key_of(row, DIALECT), digest, now)
    return None


def note_use(session: Session, key_id: UUID) -> None:
    """See `store.access.KeyStore.note_key_use`."""
    session.run("note_api_key_use", id=key_id.bytes, now=session.now, pause=span(USED_EVERY))


def revoke(session: Session, key_id: UUID, by: Actor) -> ApiKey:
    """See `store.access.KeyStore.revoke_key`."""
    revoked = session.rows("revoke_api_key", id=key_id.bytes, tenant=by.tenant, now=session.now)
    if revoked:
        audit(session, [key_revoked(by, key_id, *revoked[0])])
    key = _get(session, key_id)
    if by.tenant not in (None, key.tenant):
        raise NotFound("key", key_id)
    return key


def page(connection: apsw.Connection, tenant: str | None, limit: int, after: UUID | None) -> list[ApiKey]:
    """See `store.access.KeyStore.keys`."""
    values = {"tenant": tenant, "limit": limit, "after": _LAST if after is None else after.bytes}
    return [key_of(row, DIALECT) for row in rows(connection, "api_keys", values)]


def _get(session: Session, key_id: UUID) -> ApiKey:
    for row in session.rows("get_api_key", id=key_id.bytes):
        return key_of(row, DIALECT)
    raise NotFound("key", key_id)
