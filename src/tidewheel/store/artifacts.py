"""What every store promises about artifacts.

The rules of `store.base` hold here, too. The bytes are not in the store, so adding and removing takes two steps that
others may come between. Therefore what is removed gets a *grave* first: while it is there, nobody can add an artifact
with that digest, and the bytes may be deleted; then the grave goes. Who adds one writes the bytes first, and looks
whether they are still there afterwards.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from tidewheel.model.artifact import KEEP_UNUSED, Artifact, ArtifactSpec


class ArtifactStore(Protocol):
    """For whoever uploads files that jobs need."""

    async def add_artifact(self, spec: ArtifactSpec) -> Artifact:
        """Note that a tenant has a file, and return it; one that it has already stays, and counts as used now.

        Raises Invalid, and Unavailable while the bytes of an earlier one are being deleted.
        """
        ...

    async def use_artifacts(self, digests: Sequence[str], *, tenant: str) -> set[str]:
        """Count artifacts of a tenant as used now, and return which of the digests it has."""
        ...

    async def get_artifact(self, digest: str, *, tenant: str) -> Artifact:
        """Return an artifact. Raises NotFound."""
        ...

    async def artifacts(self, *, tenant: str, limit: int = 50, after: UUID | None = None) -> list[Artifact]:
        """Return the artifacts of a tenant, newest first, beginning after the id `after`."""
        ...

    async def bury_artifacts(self, *, keep: timedelta = KEEP_UNUSED, limit: int = 100) -> list[str]:
        """Forget artifacts that were not used for so long, and return the digests whose bytes are to be deleted.

        Those that a job that waits or runs or a schedule names count as used now. The digests of earlier calls whose
        graves are still there are among the answer.
        """
        ...

    async def close_graves(self, digests: Sequence[str]) -> None:
        """Note that the bytes of artifacts are gone."""
        ...

    async def known_jobs(self, job_ids: Sequence[UUID]) -> set[UUID]:
        """Return which of these jobs there are, ended or not; what the runs of others left behind may go."""
        ...

    async def signing_key(self) -> bytes:
        """Return the secret by which all servers of this store sign what they hand out."""
        ...
