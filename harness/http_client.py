"""A client that goes to servers: what has no answer is asked again under the same key, of whichever server is there."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import httpx

from harness.checker.records import Cancel, Phase, Submit
from harness.client import PAUSE
from harness.journal import Journal
from harness.witness import boottime
from tidewheel.errors import Unavailable
from tidewheel.model.job import JobSpec

LATER: Final = 503
TIMEOUT: Final = 10.0


class HttpClient:
    """Submits and cancels as `harness.client.Client` does, over HTTP."""

    def __init__(self, urls: Sequence[str], journal: Journal) -> None:
        self._clients = [httpx.AsyncClient(base_url=url, timeout=TIMEOUT, verify=False) for url in urls]
        self._journal = journal
        self._turn = 0

    async def close(self) -> None:
        for client in self._clients:
            await client.aclose()

    async def submit(self, specs: Sequence[JobSpec], *, patience: float = 60.0) -> list[UUID]:
        """Submit jobs that have keys, one request each."""
        return list(await asyncio.gather(*(self._submit(spec, patience) for spec in specs)))

    async def _submit(self, spec: JobSpec, patience: float) -> UUID:
        key, until = spec.idempotency_key or "", boottime() + patience
        while True:
            self._journal.add(Submit(t=boottime(), phase="invoke", key=key))
            phase, answer = await self._ask("/v1/jobs", body_of(spec), {"idempotency-key": key})
            if answer is not None:
                job_id: str = answer["id"]
                self._journal.add(Submit(t=boottime(), phase="ok", key=key, job=job_id))
                return UUID(job_id)
            self._journal.add(Submit(t=boottime(), phase=phase, key=key))
            if boottime() > until:
                raise Unavailable(f"no server took {key} for {patience:g} s")
            await asyncio.sleep(PAUSE)

    async def cancel(self, job_id: UUID, *, patience: float = 60.0) -> None:
        """Cancel a job until that is answered."""
        until = boottime() + patience
        while True:
            self._journal.add(Cancel(t=boottime(), phase="invoke", job=str(job_id)))
            phase, job = await self._ask(f"/v1/jobs/{job_id}/cancel", {}, {})
            if job is not None:
                state = "cancelling" if job["cancelling"] else job["state"]
                told = Cancel(t=boottime(), phase="ok", job=str(job_id), state=state, token=job["token"])
                self._journal.add(told)
                return
            self._journal.add(Cancel(t=boottime(), phase=phase, job=str(job_id)))
            if boottime() > until:
                raise Unavailable(f"no server cancelled {job_id} for {patience:g} s")
            await asyncio.sleep(PAUSE)

    async def _ask(self, path: str, body: Any, headers: dict[str, str]) -> tuple[Phase, Any]:
        """Ask the next server, and return its answer; or None, and whether it certainly did nothing."""
        self._turn += 1
        client = self._clients[self._turn % len(self._clients)]
        try:
            answer = await client.post(path, json=body, headers=headers)
        except httpx.ConnectError:
            return "fail", None
        except httpx.TransportError:
            return "unknown", None
        if answer.status_code == LATER:
            return "unknown" if answer.json()["code"] == "outcome-unknown" else "fail", None
        assert answer.is_success, answer.text
        return "ok", answer.json()


def body_of(spec: JobSpec) -> dict[str, Any]:
    """Return the request for a job."""
    retry = spec.options.retry
    return {
        "kind": spec.kind,
        "args": spec.args,
        "needs": {"resources": dict(spec.needs.resources), "labels": dict(spec.needs.labels)},
        "limit_keys": list(spec.limit_keys),
        "after": [str(parent) for parent in spec.after],
        "delay": None if spec.delay is None else spec.delay.total_seconds(),
        "timeout": spec.options.timeout.total_seconds(),
        "retry": {
            "max_attempts": retry.max_attempts,
            "backoff": retry.backoff,
            "delay": retry.delay.total_seconds(),
            "cap": retry.cap.total_seconds(),
            "jitter": retry.jitter,
        },
    }
