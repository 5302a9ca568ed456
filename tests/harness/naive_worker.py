"""A worker as one writes it in an afternoon: it takes leases and renews them, but its tasks do not end with it.

It is here to be caught. `python -m tests.harness.naive_worker <database>` runs every job as the witness's command.
"""

import asyncio
import os
import subprocess
import sys
import uuid
from datetime import timedelta

import msgspec

from harness import witness
from tidewheel.clock import SystemClock
from tidewheel.keeper import Keeper, chores_of
from tidewheel.model.job import Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.states import Cause
from tidewheel.model.worker import WorkerSpec
from tidewheel.store.base import ClaimRequest, Store
from tidewheel.wiring import open_store

SLOTS = 4


async def work(url: str) -> None:
    store = await open_store(url)
    clock = SystemClock()
    me = (await store.register(WorkerSpec(name="naive", ttl=timedelta(seconds=2)))).id
    running: set[asyncio.Task[None]] = set()
    async with asyncio.TaskGroup() as group:
        group.create_task(Keeper(store, chores_of(store, clock), clock, uuid.uuid4()).run())
        group.create_task(_beat(store, me))
        while True:
            if len(running) < SLOTS:
                claimed = await store.claim(ClaimRequest(worker_id=me, limit=SLOTS - len(running)))
                for run in claimed.runs:
                    task = group.create_task(_run(store, me, run))
                    running.add(task)
                    task.add_done_callback(running.discard)
            await asyncio.sleep(0.05)  # noqa: TID251 - naive


async def _beat(store: Store, me: uuid.UUID) -> None:
    while True:
        await store.beat([me])
        await asyncio.sleep(0.4)  # noqa: TID251 - naive


async def _run(store: Store, me: uuid.UUID, run: Run) -> None:
    args = msgspec.json.decode(run.args)
    words = args.get("argv") or [sys.executable, witness.__file__, args["folder"], str(args.get("seconds", 0))]
    names = {witness.JOB_VARIABLE: str(run.job_id), witness.TOKEN_VARIABLE: f"{store.epoch}:{run.token}"}
    code = await asyncio.to_thread(subprocess.call, words, env=os.environ | names, stdout=subprocess.DEVNULL)
    cause = Cause.RETURNED if code == 0 else Cause.CRASHED
    await store.settle(me, [Outcome(run.job_id, run.token, cause, result=str(run.token) if code == 0 else None)])


if __name__ == "__main__":
    asyncio.run(work(sys.argv[1]))
