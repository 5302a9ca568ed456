"""Limits and dependencies: what a limit on every job costs a drain, and how fast families fan out and in."""

import time
from collections.abc import Sequence
from typing import Final, Protocol
from uuid import UUID

import msgspec

from bench.grounds.ground import Ground, Place
from bench.jobs import fill, outcomes, specs
from bench.kernel.work import drain
from bench.measure import Drained, Figures, compare, say, side_by_side
from tidewheel.model.job import JobSpec
from tidewheel.store.base import ClaimRequest


class Sizes(Protocol):
    """How much is measured."""

    @property
    def batch(self) -> int: ...
    @property
    def submit_batch(self) -> int: ...
    @property
    def round_jobs(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def fan_out(self) -> int: ...
    @property
    def fan_in(self) -> int: ...
    @property
    def fan_in_single(self) -> int: ...


KEY: Final = "everything"
TENANT: Final = "acme"


def limited(count: int, first: int = 0) -> list[JobSpec]:
    """Return the usual jobs, all under one limit key."""
    return [msgspec.structs.replace(spec, limit_keys=(KEY,)) for spec in specs(count, first)]


async def measure_limit(ground: Ground, sizes: Sizes) -> Figures:
    """Compare a drain whose jobs all count under one limit, which is never full, with one without."""
    async with ground.place() as place:
        await place.store.set_limit(KEY, 10 * sizes.batch, tenant=TENANT)

        async def with_limit() -> Drained:
            await fill(place.store, sizes.round_jobs, sizes.submit_batch, limited)
            return await drain(place, sizes.round_jobs, sizes.batch)

        async def without() -> Drained:
            await fill(place.store, sizes.round_jobs, sizes.submit_batch)
            return await drain(place, sizes.round_jobs, sizes.batch)

        await with_limit()
        await without()
        a, b = await side_by_side(sizes.rounds, with_limit, without, "drain limited/free")
    return compare("limit_ratio", a, b)


async def measure_full_limit(ground: Ground, sizes: Sizes) -> Figures:
    """Compare a drain under a limit that is always full, with most jobs waiting, with one without a limit."""
    async with ground.place() as place:
        await place.store.set_limit(KEY, sizes.batch, tenant=TENANT)

        async def with_limit() -> Drained:
            await fill(place.store, sizes.round_jobs, sizes.submit_batch, limited)
            return await drain(place, sizes.round_jobs, 2 * sizes.batch)

        async def without() -> Drained:
            await fill(place.store, sizes.round_jobs, sizes.submit_batch)
            return await drain(place, sizes.round_jobs, sizes.batch)

        await with_limit()
        await without()
        a, b = await side_by_side(sizes.rounds, with_limit, without, "drain full limit/free")
    return compare("full_limit_ratio", a, b)


async def measure_fan(ground: Ground, sizes: Sizes) -> Figures:
    """Let one job release many, and one job wait for many; each at half of the size, too, to see the growth."""
    async with ground.place() as place:
        out = [await _fan_out(place, count, sizes) for count in (sizes.fan_out // 2, sizes.fan_out)]
        into = [await _fan_in(place, count, sizes) for count in (sizes.fan_in // 2, sizes.fan_in)]
        alone = await _singly(place, sizes.fan_in_single)
        single = await _singly(place, sizes.fan_in_single, with_child=True)
    return {
        "fanout_per_s": round(sizes.fan_out / out[1]),
        "fanout_growth": round(out[1] / out[0] / 2, 2),
        "fanin_per_s": round(sizes.fan_in / into[1]),
        "fanin_growth": round(into[1] / into[0] / 2, 2),
        "single_ms": round(1e3 * alone / sizes.fan_in_single, 3),
        "fanin_single_ms": round(1e3 * single / sizes.fan_in_single, 3),
    }


async def _fan_out(place: Place, count: int, sizes: Sizes) -> float:
    """Return the seconds from the submit of the children to the moment when all of them are queued."""
    (parent,) = await place.store.submit([JobSpec(kind="parent")])
    begun = time.perf_counter()
    children = [JobSpec(kind="child", after=(parent.job_id,), queue="children")] * count
    for first in range(0, count, sizes.submit_batch):
        await place.store.submit(children[first : first + sizes.submit_batch])
    await _finish(place, 1, 1)
    while await place.store.unblock():
        pass
    took = time.perf_counter() - begun
    say(f"fan-out of {count}: {took:.2f} s")
    await _finish(place, count, sizes.batch, "children")
    return took


async def _fan_in(place: Place, count: int, sizes: Sizes) -> float:
    """Return the seconds from the submit of the child to its start, with all parents run in between."""
    parents = await _parents(place, count, sizes.submit_batch)
    begun = time.perf_counter()
    await place.store.submit([JobSpec(kind="child", after=tuple(parents), queue="children")])
    await _finish(place, count, sizes.batch)
    await _finish(place, 1, 1, "children")
    took = time.perf_counter() - begun
    say(f"fan-in of {count}: {took:.2f} s")
    return took


async def _singly(place: Place, count: int, *, with_child: bool = False) -> float:
    """Return the seconds that it takes to run jobs one at a time, which may be the parents of one job."""
    parents = await _parents(place, count, count)
    if with_child:
        await place.store.submit([JobSpec(kind="child", after=tuple(parents), queue="children")])
    begun = time.perf_counter()
    await _finish(place, count, 1)
    took = time.perf_counter() - begun
    if with_child:
        await _finish(place, 1, 1, "children")
    return took


async def _parents(place: Place, count: int, batch: int) -> Sequence[UUID]:
    found: list[UUID] = []
    while len(found) < count:
        answers = await place.store.submit([JobSpec(kind="parent")] * min(batch, count - len(found)))
        found += [answer.job_id for answer in answers]
    return found


async def _finish(place: Place, count: int, batch: int, queue: str = "default") -> None:
    request = ClaimRequest(worker_id=place.worker_id, limit=batch, queues=(queue,))
    done = empty = 0
    while done < count:
        runs = (await place.store.claim(request)).runs
        await place.store.settle(place.worker_id, outcomes(runs))
        done += len(runs)
        empty = 0 if runs else empty + 1
        if empty > 1000:
            raise RuntimeError(f"only {done} of {count} jobs could be claimed")
