"""Builds artifacts from rows; both stores select the same columns in the same order."""

from typing import Any

from tidewheel.errors import Unavailable
from tidewheel.model.artifact import Artifact
from tidewheel.store.records import Dialect


def artifact_of(row: Any, dialect: Dialect) -> Artifact:
    """Build an artifact from its columns."""
    number, tenant, digest, size, name, created_by, created_at, used_at = row
    return Artifact(
        id=dialect.uuid(number),
        tenant=tenant,
        digest=digest,
        size=size,
        name=name,
        created_by=created_by,
        created_at=dialect.instant(created_at),
        used_at=dialect.instant(used_at),
    )


def being_deleted(digest: str) -> Unavailable:
    """Return why an artifact cannot be added just now."""
    return Unavailable(f"an earlier artifact {digest} is just being deleted: upload it again in a moment")
