"""What every part does with a place: fill it by the library, and drain it by the library."""

from collections.abc import Sequence

from bench.grounds.ground import Place
from bench.jobs import ONE_LANE, LaneName, fill, in_lanes, outcomes
from bench.kernel.sizes import Sizes
from bench.measure import Drained, Stopwatch
from tidewheel.model.outcome import Verdict
from tidewheel.store.base import ClaimRequest

PATIENCE = 2_000
"""Empty claims in a row after which jobs count as lost."""


async def drain(place: Place, count: int, batch: int) -> Drained:
    """Claim and complete jobs until so many are done."""
    request = ClaimRequest(worker_id=place.worker_id, limit=batch)
    watch, done, empty = Stopwatch(place.server_cpu), 0, 0
    while done < count:
        claimed = await place.store.claim(request)
        watch.claimed()
        empty = 0 if claimed.runs else empty + 1
        if empty > PATIENCE:
            raise RuntimeError(f"only {done} of {count} jobs were claimed")
        verdicts = await place.store.settle(place.worker_id, outcomes(claimed.runs))
        if any(verdict is not Verdict.ACCEPTED for verdict in verdicts):
            raise RuntimeError(f"outcomes were not accepted: {set(verdicts)}")
        watch.settled()
        done += len(claimed.runs)
    return watch.stop(done)


async def fill_and_drain(place: Place, sizes: Sizes, lanes: Sequence[LaneName] = ONE_LANE) -> Drained:
    """One round: jobs of the usual number are submitted, then drained; only the drain counts."""
    await fill(place.store, sizes.round_jobs, sizes.submit_batch, in_lanes(lanes))
    return await drain(place, sizes.round_jobs, sizes.batch)


async def warm_up(place: Place, sizes: Sizes, lanes: Sequence[LaneName] = ONE_LANE) -> None:
    """Let caches, plans and lanes come into being before the first round."""
    count = max(sizes.batch, sizes.round_jobs // 10, len(lanes))
    await fill(place.store, count, sizes.submit_batch, in_lanes(lanes))
    await drain(place, count, sizes.batch)
