"""Lets jobs of a test end, as a worker would let them."""

from typing import Any

import msgspec

from tidewheel import App
from tidewheel.model.outcome import Failure, Outcome
from tidewheel.model.states import Cause
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import ClaimRequest, Store
from tidewheel.tasks.binding import result_text


async def end_all(app: App, result: Any = None, *, cause: Cause = Cause.RETURNED, queue: str = "default") -> list[str]:
    """Claim all that is due in a queue, end it, and return the kinds in the order of the claim."""

    async def end(store: Store) -> list[str]:
        worker = await store.register(WorkerSpec(name="test"))
        claimed = await store.claim(ClaimRequest(worker_id=worker.id, limit=100, queues=(queue,)))
        error = None if cause is Cause.RETURNED else Failure(reason="error", message="it broke")
        text = result_text(msgspec.to_builtins(result)) if cause is Cause.RETURNED else None
        outcomes = [Outcome(run.job_id, run.token, cause, text, error=error) for run in claimed.runs]
        await store.settle(worker.id, outcomes)
        await store.deregister(worker.id)
        return [run.kind for run in claimed.runs]

    return await app.use(end)
