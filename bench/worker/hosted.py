"""Hosted: how many plain functions and how many executables a worker runs in a second."""

from bench.grounds.ground import Ground
from bench.measure import Figures, say
from bench.worker.gated import drain_by_worker
from bench.worker.loads import COMMANDS, PROCESS, Load
from bench.worker.process import Shape
from bench.worker.sizes import Sizes

SLOTS = 4


async def measure_processes(ground: Ground, sizes: Sizes) -> Figures:
    return {"process_per_s": await _rate(ground, sizes, PROCESS, sizes.process_jobs)}


async def measure_commands(ground: Ground, sizes: Sizes) -> Figures:
    return {"command_per_s": await _rate(ground, sizes, COMMANDS, sizes.command_jobs)}


async def _rate(ground: Ground, sizes: Sizes, load: Load, jobs: int) -> float:
    async with ground.place() as place:
        drained = await drain_by_worker(place, Shape(slots=SLOTS), load, jobs=jobs, batch=sizes.submit_batch)
    say(f"{drained.rate:,.0f} jobs/s of {load.lane.kind} with {SLOTS} slots")
    return round(drained.rate, 1)
