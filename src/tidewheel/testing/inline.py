"""Runs jobs in the process of a test, with the claims, outcomes and retries of a real store."""

import inspect
import os
from collections.abc import MutableMapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.model.dependency import fill_references, find_references
from tidewheel.model.job import Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.secret import fill_secrets, find_secrets
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import WorkerSpec
from tidewheel.observe.tracing import trace_in
from tidewheel.sdk.desk import Desk
from tidewheel.store.base import ClaimRequest, Counts, Store
from tidewheel.tasks.context import Context
from tidewheel.tasks.ending import ended_by, options_of, outcome_of
from tidewheel.worker.secrets import Secrets

TTL: Final = timedelta(hours=1)


class Ran(msgspec.Struct, frozen=True):
    """What became of one run."""

    job_id: UUID
    kind: str
    cause: Cause
    state: State
    """The state of the job afterwards."""
    error: str = ""


class Reporter:
    """Keeps what a task says."""

    def __init__(self, job_id: UUID, checkpoints: MutableMapping[Any, str]) -> None:
        self._job_id = job_id
        self._checkpoints = checkpoints

    def log(self, level: str, text: str) -> None: ...

    def progress(self, fraction: float, message: str) -> None: ...

    def checkpoint(self, data: str) -> None:
        """Keep it for the next attempt."""
        self._checkpoints[self._job_id] = data


async def run_due(desk: Desk, checkpoints: MutableMapping[Any, str], clock: Clock, most: int) -> list[Ran]:
    """Run jobs one after the other until none is due."""
    worker = await desk.use(lambda store: store.register(WorkerSpec(name="test", ttl=TTL)))
    epoch = await desk.use(_epoch)
    ran: list[Ran] = []
    try:
        while (run := await _next(desk, worker.id)) is not None:
            if len(ran) >= most:
                raise AssertionError(f"{most} jobs were run and more are due: does {run.kind} enqueue itself?")
            outcome = await _run(desk, run, epoch, checkpoints, clock)
            ran.append(await _settle(desk, worker.id, run, outcome))
    finally:
        await desk.use(lambda store: store.deregister(worker.id))
    return ran


async def _epoch(store: Store) -> int:
    return store.epoch


async def _next(desk: Desk, worker_id: UUID) -> Run | None:
    async def claim(store: Store) -> list[Run]:
        await store.take_census()
        request = ClaimRequest(
            worker_id=worker_id,
            limit=1,
            queues=_queues(await store.counts()),
            kinds=frozenset(task.kind for task in desk.registry),
        )
        return (await store.claim(request)).runs if request.queues and request.kinds else []

    runs = await desk.use(claim)
    return runs[0] if runs else None


def _queues(counts: Counts) -> tuple[str, ...]:
    return tuple(sorted({row.queue for row in counts.rows if row.state not in FINAL}))


async def _run(desk: Desk, run: Run, epoch: int, checkpoints: MutableMapping[Any, str], clock: Clock) -> Outcome:
    started_at = clock.now()
    context = Context(
        job_id=run.job_id,
        token=run.token,
        epoch=epoch,
        attempt=run.attempt,
        saved=checkpoints.get(run.job_id),
        reporter=Reporter(run.job_id, checkpoints),
        trace=trace_in(options_of(run.options)),
    )
    try:
        caller = desk.callers[run.kind]
        answer = caller.call(context, await _args(desk, run))
        result = caller.result_text(await answer if inspect.isawaitable(answer) else answer)
    except Exception as error:  # noqa: BLE001 - whatever a task raises is its outcome
        return outcome_of(run, ended_by(error), rand=1.0)  # the longest wait: the same in every test
    return Outcome(run.job_id, run.token, Cause.RETURNED, result=result, started_at=started_at)


async def _args(desk: Desk, run: Run) -> str:
    """Return the arguments of a run, with the results of its parents and secrets put in."""
    args = msgspec.json.decode(run.args)
    if names := find_secrets(args):
        args = fill_secrets(args, await Secrets(os.environ).fetch(run.tenant, names))
    elif not find_references(args):
        return run.args
    parents = find_references(args)

    async def results(store: Store) -> dict[UUID, Any]:
        return {parent: (await store.get(parent)).result for parent in parents}

    return msgspec.json.encode(fill_references(args, await desk.use(results))).decode()


async def _settle(desk: Desk, worker_id: UUID, run: Run, outcome: Outcome) -> Ran:
    await desk.use(lambda store: store.settle(worker_id, [outcome]))
    info = await desk.use(lambda store: store.get(run.job_id))
    message = "" if outcome.error is None else outcome.error.message
    return Ran(run.job_id, run.kind, outcome.cause, info.state, message)
