"""Claim: how long one claim takes while a million jobs are due."""

import time

from bench.grounds.ground import Ground, Place
from bench.jobs import many_lanes, outcomes
from bench.kernel.sizes import Sizes
from bench.measure import Figures, quantile, say
from tidewheel.store.base import ClaimRequest

KINDS, TENANTS = 2, 4


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    async with ground.place() as place:
        say(f"claim: loading {sizes.due_jobs:,} due jobs")
        await place.load_due(sizes.due_jobs, many_lanes(KINDS, TENANTS))
        took = await _claims(place, sizes)
    figures = {
        "claim_p50_ms": round(quantile(took, 0.5), 3),
        "claim_p99_ms": round(quantile(took, 0.99), 3),
        "claim_max_ms": round(max(took), 3),
    }
    say(f"claim: {figures}")
    return figures


async def _claims(place: Place, sizes: Sizes) -> list[float]:
    """Return the milliseconds of each claim; what was claimed is completed in between, off the clock."""
    request = ClaimRequest(worker_id=place.worker_id, limit=sizes.claim_batch)
    took = []
    for _ in range(sizes.claims):
        begun = time.perf_counter()
        claimed = await place.store.claim(request)
        took.append(1000 * (time.perf_counter() - begun))
        if len(claimed.runs) != sizes.claim_batch:
            raise RuntimeError(f"a claim got {len(claimed.runs)} of {sizes.claim_batch} jobs")
        await place.store.settle(place.worker_id, outcomes(claimed.runs))
    return took
