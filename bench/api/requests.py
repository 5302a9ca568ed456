"""What is asked of the server: single submits, batches, and looks at jobs."""

import json
from typing import Final

from msgspec.structs import replace

from bench.api.server import figures_of, serving
from bench.api.sizes import Sizes
from bench.grounds.ground import Ground
from bench.jobs import specs
from bench.measure import Figures
from tidewheel.model.job import DEFAULT_TENANT

_SPEC: Final = specs(1)[0]
JOB: Final = {"kind": _SPEC.kind, "args": _SPEC.args, "labels": _SPEC.labels}
SUBMIT: Final = {"method": "POST", "paths": ["/v1/jobs"], "body": json.dumps(JOB), "status": 202}


async def measure_submits(ground: Ground, sizes: Sizes) -> Figures:
    """Submit one by one over many connections; what the server holds in memory afterwards is measured, too."""
    order = {**SUBMIT, "connections": sizes.connections}
    async with ground.place() as place, serving(place) as server:
        await server.load(**order, requests=max(sizes.submits // 10, 1))
        rounds = [await server.load(**order, requests=sizes.submits) for _ in range(sizes.rounds)]
        memory = server.process.memory()
    figures = figures_of("submit", rounds)
    figures["submit_alone_p99_ms"] = figures.pop("submit_p99_ms")
    return {**figures, "server_rss_mib": round(memory / 2**20, 1)}


async def measure_batches(ground: Ground, sizes: Sizes) -> Figures:
    """Submit in batches over two connections."""
    body = json.dumps([JOB] * sizes.batch)
    order = {"connections": 2, "method": "POST", "paths": ["/v1/jobs/batch"], "body": body, "status": 202}
    async with ground.place() as place, serving(place) as server:
        await server.load(**order, requests=2)
        rounds = [await server.load(**order, requests=sizes.batches) for _ in range(sizes.rounds)]
    return figures_of("batch_jobs", rounds, sizes.batch)


async def measure_gets(ground: Ground, sizes: Sizes) -> Figures:
    """Look at jobs, one by one over many connections."""
    async with ground.place() as place, serving(place) as server:
        stored = await place.store.submit([replace(spec, tenant=DEFAULT_TENANT) for spec in specs(100)])
        paths = [f"/v1/jobs/{one.job_id}" for one in stored]
        order = {"connections": sizes.connections, "method": "GET", "paths": paths, "status": 200}
        await server.load(**order, requests=max(sizes.gets // 10, 1))
        rounds = [await server.load(**order, requests=sizes.gets) for _ in range(sizes.rounds)]
    return figures_of("get", rounds)
