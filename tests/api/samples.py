"""One good request for each endpoint, about things that are made for it in whichever tenant.

Who adds an endpoint adds its sample here: `test_everyone.py` then tries it with every role, with keys that open
nothing, and with things of another tenant.
"""

import itertools
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from tests.api.conftest import CLOCK, Api
from tests.builders import a_claim, a_job, a_worker, outcome_of
from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, make_key
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.log import LogLine
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause

ROOT: Final = Actor(role=Role.ADMIN, name="root")


@dataclass(frozen=True)
class Sample:
    """A request."""

    path: str
    """With {} in place of what names a thing."""
    thing: str = ""
    """Which thing it is about: a method of `Grounds`."""
    body: Any = None
    foreign: int = 404
    """What is answered if the thing is another tenant's."""


SAMPLES: Final = {
    "submit_job": Sample("/v1/jobs", body={"kind": "mail"}),
    "submit_batch": Sample("/v1/jobs/batch", body=[{"kind": "mail"}]),
    "list_jobs": Sample("/v1/jobs"),
    "get_job": Sample("/v1/jobs/{}", "ended"),
    "get_result": Sample("/v1/jobs/{}/result", "ended"),
    "list_attempts": Sample("/v1/jobs/{}/attempts", "ended"),
    "list_logs": Sample("/v1/jobs/{}/logs", "ended"),
    "list_parents": Sample("/v1/jobs/{}/parents", "ended"),
    "list_children": Sample("/v1/jobs/{}/children", "ended"),
    "follow_job": Sample("/v1/jobs/{}/events", "ended"),
    "cancel_job": Sample("/v1/jobs/{}/cancel", "waiting", {"reason": "because"}),
    "retry_job": Sample("/v1/jobs/{}/retry", "dead"),
    "erase_job": Sample("/v1/jobs/{}/erase", "dead"),
    "cancel_jobs": Sample("/v1/jobs/cancel", body={"where": {"kind": "none"}}),
    "retry_jobs": Sample("/v1/jobs/retry", body={"where": {"kind": "none"}}),
    "list_gates": Sample("/v1/gates"),
    "close_gate": Sample("/v1/gates", body={"mode": "hold", "kind": "none"}),
    "open_gate": Sample("/v1/gates/{}", "gate"),
    "list_limits": Sample("/v1/limits"),
    "set_limit": Sample("/v1/limits/{}", "limit", {"most": 2}, foreign=200),
    "remove_limit": Sample("/v1/limits/{}", "limit"),
    "list_queues": Sample("/v1/queues"),
    "list_workers": Sample("/v1/workers"),
    "register_worker": Sample("/v1/workers", body={"name": "hand"}),
    "get_worker": Sample("/v1/workers/{}", "hand"),
    "claim_jobs": Sample("/v1/workers/{}/claim", "hand", {"queues": ["none"]}),
    "list_runs": Sample("/v1/workers/{}/runs", "hand"),
    "beat_worker": Sample("/v1/workers/{}/heartbeat", "hand"),
    "list_stopping": Sample("/v1/workers/{}/stopping", "hand"),
    "settle_runs": Sample("/v1/workers/{}/settle", "hand", {"ends": []}),
    "note_runs": Sample("/v1/workers/{}/notes", "hand", {"notes": []}),
    "find_unfit": Sample("/v1/workers/{}/unfit", "hand", {"total": {}}),
    "deregister_worker": Sample("/v1/workers/{}/deregister", "hand"),
    "get_checkpoint": Sample("/v1/jobs/{}/checkpoint", "ended"),
    "log_runs": Sample("/v1/logs", body={"lines": []}),
    "declare_app": Sample("/v1/declarations", body={}),
    "get_me": Sample("/v1/me"),
    "follow_hints": Sample("/v1/hints?seconds=1"),
    "create_key": Sample("/v1/keys", body={"name": "grafana", "role": "viewer"}),
    "list_keys": Sample("/v1/keys"),
    "revoke_key": Sample("/v1/keys/{}", "key"),
    "list_tenants": Sample("/v1/tenants"),
    "set_tenant": Sample("/v1/tenants/{}", "tenant", {"weight": 2.0}),
    "list_audit": Sample("/v1/audit"),
    "live": Sample("/livez"),
    "ready": Sample("/readyz"),
    "openapi": Sample("/openapi.json"),
    "docs": Sample("/docs"),
}

NOT_AUDITED: Final[frozenset[str]] = frozenset(
    {
        "register_worker",
        "claim_jobs",
        "beat_worker",
        "settle_runs",
        "note_runs",
        "find_unfit",
        "deregister_worker",
        "log_runs",
        "declare_app",
    }
)
"""Endpoints that change something and write nothing down."""


@dataclass
class Grounds:
    """Makes things of tenants. Whatever words they hold have the mark of their tenant in them."""

    api: Api
    _numbers: Iterator[int] = field(default_factory=itertools.count)
    _ended: dict[str, UUID] = field(default_factory=dict)

    async def key_of(self, role: Role, tenant: str | None, **fields: Any) -> tuple[str, ApiKey]:
        """Return the text of a new key, and what everyone may see of it."""
        made = make_key(secrets.token_bytes(ENTROPY))
        spec = KeySpec(name=f"{mark_of(tenant or 'all')} {role}", role=role, tenant=tenant, **fields)
        return made.text, await self.api.store.create_key(spec, made.proof, by=ROOT)

    async def waiting(self, tenant: str) -> UUID:
        """A job that waits."""
        mark = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = a_job(mark, queue=mark, args={"to": mark}, labels={"l": mark}, tenant=tenant, unique_key=mark)
        [submitted] = await self.api.store.submit([spec])
        return submitted.job_id

    async def dead(self, tenant: str) -> UUID:
        """A job that failed for good, with some words."""
        return await self._run(tenant, Cause.GAVE_UP, error=Failure(reason="error", message=mark_of(tenant)))

    async def ended(self, tenant: str) -> UUID:
        """A job that succeeded; always the same."""
        if tenant not in self._ended:
            self._ended[tenant] = await self._run(tenant, Cause.RETURNED, result=f'"{mark_of(tenant)}"')
        return self._ended[tenant]

    async def hand(self, tenant: str) -> UUID:
        """A worker of the tenant."""
        return (await self.api.store.register(a_worker(mark_of(tenant), tenant=tenant))).id

    async def gate(self, tenant: str) -> UUID:
        """A gate that holds nothing."""
        mark = f"{mark_of(tenant)}-{next(self._numbers)}"
        spec = GateSpec(mode=GateMode.HOLD, kind=mark, tenant=tenant, reason=mark)
        return (await self.api.store.close_gate(spec)).id

    async def limit(self, tenant: str) -> str:
        """The key of a limit."""
        key = f"{mark_of(tenant)}-{next(self._numbers)}"
        await self.api.store.set_limit(key, 1, tenant=tenant)
        return key

    async def key(self, tenant: str) -> UUID:
        """A key."""
        return (await self.key_of(Role.VIEWER, tenant))[1].id

    async def tenant(self, tenant: str) -> str:
        """The tenant itself."""
        return tenant

    async def fill(self, tenant: str) -> None:
        """Make one of each."""
        for thing in dict.fromkeys(sample.thing for sample in SAMPLES.values() if sample.thing):
            await getattr(self, thing)(tenant)

    async def path_of(self, sample: Sample, tenant: str) -> str:
        """Return the path of a sample, about a thing of a tenant."""
        return sample.path.format(await getattr(self, sample.thing)(tenant)) if sample.thing else sample.path

    async def _run(self, tenant: str, cause: Cause, **fields: Any) -> UUID:
        job_id = await self.waiting(tenant)
        queue = (await self.api.store.get(job_id)).queue
        worker = await self.api.store.register(a_worker(queues=(queue,)))
        [run] = (await self.api.store.claim(a_claim(worker.id, 1, queues=(queue,)))).runs
        line = LogLine(job_id, run.token, 0, CLOCK.now(), "stdout", None, mark_of(tenant))
        await self.api.store.append_logs([line])
        await self.api.store.settle(worker.id, [outcome_of(run, cause, **fields)])
        await self.api.store.deregister(worker.id)
        return job_id


def mark_of(tenant: str) -> str:
    """Return the word that all data of a tenant hold."""
    return f"word-of-{tenant}"
