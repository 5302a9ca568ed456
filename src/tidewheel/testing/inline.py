"""Runs jobs in the process of a test, with the claims, outcomes and retries of a real store."""

import os
from collections.abc import MutableMapping
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.clock import Clock
from tidewheel.errors import TideError
from tidewheel.model.dependency import fill_references, find_references
from tidewheel.model.job import Run
from tidewheel.model.outcome import MAX_RESULT_BYTES, Outcome
from tidewheel.model.secret import fill_secrets, find_secrets
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import WorkerSpec
from tidewheel.observe.tracing import trace_in
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.job import stored_result
from tidewheel.store.base import ClaimRequest, Counts, Store
from tidewheel.tasks.context import Context
from tidewheel.tasks.ending import ended_by, options_of, outcome_of
from tidewheel.tasks.signals import Fatal
from tidewheel.testing.calling import call
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
    started_at, options = clock.now(), options_of(run.options)
    context = Context(
        job_id=run.job_id,
        token=run.token,
        epoch=epoch,
        attempt=run.attempt,
        saved=checkpoints.get(run.job_id),
        reporter=Reporter(run.job_id, checkpoints),
        trace=trace_in(options),
    )
    task, caller = desk.registry.get(run.kind), desk.callers[run.kind]
    assert task is not None
    try:
        args = await _args(desk, run)
    except (Fatal, TideError) as error:
        ended = ended_by(error)
    else:
        ended = await call(task, caller, context, args, options.timeout.total_seconds())
    outcome = outcome_of(run, ended, rand=1.0, started_at=started_at)  # the longest wait: the same in every test
    return await _placed(desk, run, outcome)


async def _placed(desk: Desk, run: Run, outcome: Outcome) -> Outcome:
    """Put a result that is too large for a row where a worker would put it."""
    if outcome.result is None or len(outcome.result.encode()) <= MAX_RESULT_BYTES:
        return outcome
    location = await desk.stores.place.open_blobs().store_result(run.job_id, run.token, outcome.result)
    return msgspec.structs.replace(outcome, result=None, result_location=location)


async def _args(desk: Desk, run: Run) -> str:
    """Return the arguments of a run, with the results of its parents and secrets put in."""
    args = msgspec.json.decode(run.args)
    if names := find_secrets(args):
        args = fill_secrets(args, await Secrets(os.environ).fetch(run.tenant, names))
    elif not find_references(args):
        return run.args
    results = {parent: await _result(desk, parent) for parent in find_references(args)}
    return msgspec.json.encode(fill_references(args, results)).decode()


async def _result(desk: Desk, parent: UUID) -> Any:
    return await stored_result(desk, await desk.use(lambda store: store.get(parent)))


async def _settle(desk: Desk, worker_id: UUID, run: Run, outcome: Outcome) -> Ran:
    await desk.use(lambda store: store.settle(worker_id, [outcome]))
    info = await desk.use(lambda store: store.get(run.job_id))
    message = "" if outcome.error is None else outcome.error.message
    return Ran(run.job_id, run.kind, outcome.cause, info.state, message)
