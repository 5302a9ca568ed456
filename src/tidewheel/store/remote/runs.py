"""Workers and their runs over HTTP: the worker protocol."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from tidewheel.errors import LeaseLost, NotFound
from tidewheel.model.job import Claimed, Run
from tidewheel.model.log import LogLine, prepare_lines
from tidewheel.model.log_piece import Piece, lines_of
from tidewheel.model.note import RunNote, prepare_notes
from tidewheel.model.outcome import Outcome, Verdict
from tidewheel.model.priority import parse_priority
from tidewheel.model.resources import Needs, Resources
from tidewheel.model.worker import Beat, Reaped, Worker, WorkerSpec, check_worker
from tidewheel.model.worker_protocol import (
    MOST_RUNS,
    CheckpointDocument,
    ClaimAnswer,
    EndsAnswer,
    GivenBack,
    Heartbeat,
    LinesAnswer,
    NotesAnswer,
    RunDocument,
    RunList,
    StopList,
    UnfitAnswer,
)
from tidewheel.store.base import ClaimRequest
from tidewheel.store.remote.documents import WorkerDocument, WorkerList
from tidewheel.store.remote.requests import claim_body, end_body
from tidewheel.store.remote.transport import Transport, gather, tenant_header


class Runs:
    """See `store.base.RunStore`, `store.base.WorkerStore`, `store.telling.NoteStore` and `store.telling.LogStore`."""

    _transport: Transport

    async def register(self, spec: WorkerSpec) -> Worker:
        check_worker(spec)
        body = {
            "name": spec.name,
            "queues": spec.queues,
            "kinds": spec.kinds,
            "offer": spec.offer,
            "ttl": spec.ttl.total_seconds(),
            "tenant": spec.tenant,
        }
        found = await self._transport.post("/v1/workers", body, WorkerDocument, safe=False)
        return found.record()

    async def beat(self, worker_ids: Sequence[UUID], *, clock: datetime | None = None) -> list[Beat]:
        beats = await gather(*(self._beat(worker_id, clock) for worker_id in dict.fromkeys(worker_ids)))
        return [beat for beat in beats if beat is not None]

    async def _beat(self, worker_id: UUID, clock: datetime | None) -> Beat | None:
        body = None if clock is None else {"clock": clock}
        try:
            told = await self._transport.post(_path(worker_id, "heartbeat"), body, Heartbeat, safe=True)
        except (LeaseLost, NotFound):
            return None
        return Beat(worker_id, told.beat, told.lease_until, tuple((run.job_id, run.token) for run in told.stop))

    async def stopping(self, worker_ids: Sequence[UUID]) -> list[tuple[UUID, UUID, int]]:
        found = await gather(*(self._stopping(worker_id) for worker_id in dict.fromkeys(worker_ids)))
        return sorted((run for runs in found for run in runs), key=lambda run: run[1])

    async def _stopping(self, worker_id: UUID) -> list[tuple[UUID, UUID, int]]:
        try:
            told = await self._transport.get(_path(worker_id, "stopping"), StopList)
        except NotFound:
            return []
        return [(worker_id, run.job_id, run.token) for run in told.stop]

    async def deregister(self, worker_id: UUID) -> Reaped:
        try:
            told = await self._transport.post(_path(worker_id, "deregister"), None, GivenBack, safe=True)
        except NotFound:
            return Reaped()
        return Reaped(requeued=told.requeued, cancelled=told.cancelled)

    async def worker(self, worker_id: UUID) -> Worker:
        return (await self._transport.get(f"/v1/workers/{worker_id}", WorkerDocument)).record()

    async def workers(self, *, alive: bool | None = None) -> list[Worker]:
        query = {"alive": None if alive is None else str(alive).lower()}
        return [worker.record() for worker in (await self._transport.get("/v1/workers", WorkerList, query)).workers]

    async def claim(self, request: ClaimRequest) -> Claimed:
        body = claim_body(request, MOST_RUNS)
        try:
            told = await self._transport.post(_path(request.worker_id, "claim"), body, ClaimAnswer, safe=False)
        except NotFound:
            raise LeaseLost(request.worker_id) from None
        return Claimed([_run(run) for run in told.runs], told.next_due, told.now)

    async def settle(self, worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        verdicts: list[Verdict] = []
        for first in range(0, len(outcomes), MOST_RUNS):
            ends = [end_body(outcome) for outcome in outcomes[first : first + MOST_RUNS]]
            try:
                told = await self._transport.post(_path(worker_id, "settle"), {"ends": ends}, EndsAnswer, safe=True)
            except NotFound:
                verdicts += [Verdict.STALE] * len(ends)
            else:
                verdicts += [end.verdict for end in told.ends]
        return verdicts

    async def oldest_unfit(self, request: ClaimRequest, total: Resources) -> tuple[Needs, timedelta] | None:
        body = {**claim_body(request, MOST_RUNS), "limit": 1, "total": total}
        told = await self._transport.post(_path(request.worker_id, "unfit"), body, UnfitAnswer, safe=True)
        return None if told.needs is None else (told.needs, timedelta(seconds=told.waited))

    async def owned(self, worker_id: UUID) -> list[Run]:
        try:
            return [_run(run) for run in (await self._transport.get(_path(worker_id, "runs"), RunList)).runs]
        except NotFound:
            return []

    async def note(self, worker_id: UUID, notes: Sequence[RunNote]) -> None:
        told = [_note(note) for note in prepare_notes(notes)]
        try:
            for first in range(0, len(told), MOST_RUNS):
                body = {"notes": told[first : first + MOST_RUNS]}
                await self._transport.post(_path(worker_id, "notes"), body, NotesAnswer, safe=True)
        except NotFound:
            return

    async def checkpoint_of(self, job_id: UUID) -> str | None:
        path = f"/v1/jobs/{job_id}/checkpoint"
        try:
            found = await self._transport.get(path, CheckpointDocument, headers=tenant_header(None))
        except NotFound:
            return None
        return _text(found.checkpoint)

    async def append_logs(self, lines: Sequence[LogLine]) -> None:
        clean = prepare_lines(lines)
        for first in range(0, len(clean), MOST_RUNS):
            body = {"lines": clean[first : first + MOST_RUNS]}
            await self._transport.post("/v1/logs", body, LinesAnswer, safe=True)

    async def append_pieces(self, pieces: Sequence[Piece]) -> None:
        await self.append_logs([line for p in pieces for line in lines_of(p.job_id, p.token, p.first, p.lines)])


def _path(worker_id: UUID, what: str) -> str:
    return f"/v1/workers/{worker_id}/{what}"


def _run(told: RunDocument) -> Run:
    return Run(
        job_id=told.job_id,
        token=told.token,
        lane=told.lane,
        kind=told.kind,
        queue=told.queue,
        tenant=told.tenant,
        priority=parse_priority(told.priority),
        args=bytes(told.args).decode(),
        labels=_text(told.labels),
        options=_text(told.options),
        run_at=told.run_at,
        due_at=told.due_at,
        start_by=told.start_by,
        claimed_at=told.claimed_at,
        failures=told.failures,
        losses=told.losses,
        cancelling=told.cancelling,
        needs=told.needs,
        limit_keys=tuple(told.limit_keys),
    )


def _text(raw: msgspec.Raw) -> str | None:
    text = bytes(raw).decode()
    return None if text == "null" else text


def _note(note: RunNote) -> dict[str, object]:
    told = msgspec.structs.asdict(note)
    told["checkpoint_text"] = told.pop("checkpoint")
    return told
