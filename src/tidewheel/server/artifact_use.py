"""Jobs and schedules that name artifacts: they must be there, and stay as long as they are wanted."""

from collections.abc import Mapping, Sequence
from typing import Any

from tidewheel.errors import Invalid
from tidewheel.server.service import Service
from tidewheel.tasks.definition import COMMAND


def artifact_in(kind: str, args: Mapping[str, Any]) -> str | None:
    """Return the digest of the artifact that arguments name, if it is one that we would know of."""
    digest = args.get("artifact") if kind == COMMAND else None
    return digest if isinstance(digest, str) else None


async def use_artifacts(service: Service, named: Sequence[tuple[str, str | None]], tenant: str) -> None:
    """Count artifacts as used, each with the field that names it. Raises Invalid for one that the tenant has not."""
    wanted = {digest for _, digest in named if digest is not None}
    unseen = sorted(digest for digest in wanted if not service.artifacts.is_fresh(tenant, digest))
    if not unseen:
        return
    found = await service.store.use_artifacts(unseen, tenant=tenant)
    for known in found:
        service.artifacts.note(tenant, known)
    for field, digest in named:
        if digest is not None and digest in unseen and digest not in found:
            raise Invalid(field, f"there is no artifact {digest[:80]!r} of yours: upload it first")
