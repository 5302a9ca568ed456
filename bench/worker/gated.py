"""A drain by a real worker: the jobs wait behind a gate until the worker is ready, and the database says how long."""

from datetime import UTC, datetime

from bench.grounds.ground import Place
from bench.jobs import fill
from bench.measure import Drained
from bench.worker.loads import Load
from bench.worker.process import Shape, emptied, running
from tidewheel.model.gate import GateMode, GateSpec


async def drain_by_worker(place: Place, shape: Shape, load: Load, *, jobs: int, batch: int) -> Drained:
    """Let a fresh worker do so many jobs of a load; the wall time is from the first start to the last end."""
    since = datetime.now(UTC)
    kind, tenant = load.lane
    gate = await place.store.close_gate(GateSpec(mode=GateMode.HOLD, kind=kind, tenant=tenant))
    await fill(place.store, jobs, batch, load.make)
    async with running(place, shape, [load]) as worker:
        cpu, server_cpu = worker.cpu(), place.server_cpu()
        await place.store.open_gate(gate.id)
        await emptied(place, worker, tenant)
        cpu, server_cpu = worker.cpu() - cpu, place.server_cpu() - server_cpu
    done = await place.span(load.lane, since)
    if done.jobs != jobs:
        raise RuntimeError(f"{done.jobs} of {jobs} jobs succeeded")
    return Drained(jobs=jobs, wall=done.seconds, cpu=cpu, server_cpu=server_cpu)
