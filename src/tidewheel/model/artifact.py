"""Artifacts: files that tasks need, named by their content. What is kept here is who has which; the bytes are blobs."""

import re
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name, check_text

KEEP_UNUSED: Final = timedelta(days=30)
"""How long an artifact is kept that no job that waits or runs and no schedule names."""
MAX_ARTIFACT: Final = 1024**3
"""How many bytes an artifact may have."""
MAX_ARTIFACT_NAME: Final = 200
_is_digest = re.compile("[0-9a-f]{64}").fullmatch


class ArtifactSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A file that a tenant has uploaded."""

    tenant: str
    digest: str
    """The SHA-256 of its content, in 64 lower-case hexadecimal digits."""
    size: int
    name: str = ""
    """For people."""
    created_by: str = ""


class Artifact(ArtifactSpec, frozen=True, kw_only=True):
    """The same as it is stored."""

    id: UUID
    created_at: datetime
    used_at: datetime
    """When it was last uploaded or named by a job."""


def check_artifact(spec: ArtifactSpec) -> ArtifactSpec:
    """Refuse what cannot be stored."""
    check_name("tenant", spec.tenant)
    if not _is_digest(spec.digest):
        raise Invalid("digest", "must be a SHA-256 in 64 lower-case hexadecimal digits")
    if not 0 <= spec.size <= MAX_ARTIFACT:
        raise Invalid("size", f"must be between 0 and {MAX_ARTIFACT} bytes, not {spec.size}")
    check_text("name", spec.name, MAX_ARTIFACT_NAME)
    return spec
