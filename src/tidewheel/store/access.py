"""What every store promises about keys, tenants, the audit log and erasure.

The rules of `store.base` hold here, too. What changes something here is told by whom (`by`), and its entry in the audit
log is written in the same transaction: neither is there without the other. `Actor.check` is for whoever has the door; a
store only sees to it that an actor of one tenant touches nothing of another.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Protocol
from uuid import UUID

from tidewheel.errors import Invalid
from tidewheel.model.access import Actor
from tidewheel.model.api_key import ApiKey, KeySpec, Known, Proof
from tidewheel.model.audit import KEEP_AUDIT, AuditFilter, AuditPage, Change
from tidewheel.model.job import Job
from tidewheel.model.tenant import Tenant
from tidewheel.store.sharing import ShareStore

MAX_PAGE: Final = 1000


class KeyStore(Protocol):
    """For those who give out keys, and for the door."""

    async def create_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey:
        """Add a key. Raises Invalid, and Forbidden if it would be of another tenant than its maker."""
        ...

    async def create_first_key(self, spec: KeySpec, proof: Proof, *, by: Actor) -> ApiKey | None:
        """Add a key if there is none yet, not even a revoked one; else None. Of many who try at once one succeeds."""
        ...

    async def has_keys(self) -> bool:
        """Tell whether there has ever been a key."""
        ...

    async def find_key(self, prefix: str) -> Known | None:
        """Return the key with this prefix, valid or not, and the store's time; None if there is no such."""
        ...

    async def note_key_use(self, key_id: UUID) -> None:
        """Write down that a key was used, unless that was done less than a minute ago."""
        ...

    async def revoke_key(self, key_id: UUID, *, by: Actor) -> ApiKey:
        """Make a key open nothing any more, for ever; one that was revoked stays as it is. Raises NotFound."""
        ...

    async def keys(self, *, tenant: str | None = None, limit: int = 100, after: UUID | None = None) -> list[ApiKey]:
        """Return keys, newest first, beginning after the id `after`; revoked and expired ones are among them."""
        ...


class TenantStore(ShareStore, Protocol):
    """For whoever looks after tenants."""

    async def set_tenant(self, tenant: Tenant, *, by: Actor) -> Tenant:
        """Give a tenant its weight and bounds, adding it if it is new; the weight counts from the next claim on.

        Raises Invalid, and Forbidden for an actor of one tenant.
        """
        ...

    async def count_unfinished(self, tenant: str, most: int) -> int:
        """Return how many jobs of a tenant have not ended; more than `most` are not counted."""
        ...


class AuditStore(Protocol):
    """For whoever changes something, and for those who look into it later."""

    async def audit(self, changes: Sequence[Change]) -> None:
        """Write changes down, all or none, in this order. Raises Invalid for the first bad one."""
        ...

    async def audited(self, where: AuditFilter, *, limit: int = 100, after: UUID | None = None) -> AuditPage:
        """Return entries, newest first, beginning after the id `after`."""
        ...

    async def retire_audit(self, *, keep: timedelta = KEEP_AUDIT, limit: int = 10_000) -> int:
        """Remove entries that are older than `keep`, at most so many; return how many."""
        ...


class ErasureStore(Protocol):
    """For those who must be forgotten."""

    async def erase(self, job_id: UUID, *, by: Actor) -> Job:
        """Remove what a finished job was about, for good, and return what is left of it.

        Gone are its arguments, result, labels, name and description, its keys (limit, unique, idempotency), the texts
        of its errors in all attempts, its notes with the checkpoint, and its lines. What is left is that there was such
        a job: its id, kind, queue, tenant, state, times, counters, parents and the reasons of its failures in one word.
        It cannot be redriven any more. Erasing again is harmless, and removes what came late. Raises NotFound, and
        NotFinished for a job that has not ended. Large results and files are elsewhere: see `Blobs.delete_outputs`.
        """
        ...


def check_keys_page(limit: int) -> int:
    """Refuse pages that are empty or too long."""
    if not 1 <= limit <= MAX_PAGE:
        raise Invalid("limit", f"must be between 1 and {MAX_PAGE}, not {limit}")
    return limit
