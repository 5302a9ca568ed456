"""Gates, shares and herds: what one side of the house notices of what happens on the other."""

import asyncio
import heapq
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from bench.grounds.ground import Ground, Place
from bench.jobs import LaneName, fill, in_lanes, outcomes
from bench.measure import Figures, quantile, say
from tidewheel.model.gate import Gate, GateMode, GateSpec
from tidewheel.model.job import JobSpec, Run
from tidewheel.model.priority import Priority
from tidewheel.store.base import ClaimRequest

FLOOD: Final = LaneName("flood", "large")
OTHER: Final = JobSpec(kind="other", tenant="small", priority=Priority.HIGH)
"""As urgent as the most urgent of the flood: shares are within a priority."""
SLOTS: Final = 100
"""As many as a runner has by default."""
WORK: Final = (0.05, 0.15)
"""Seconds that a job of the shares takes, at least and at most: together with the slots, a thousand jobs a second."""
BETWEEN: Final = 0.01
"""Seconds between two jobs of the small tenant, which so wants a tenth of that."""
PATIENCE: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSizes:
    """Numbers of jobs and rounds."""

    name: str
    flood: int = 1_000_000
    gate_rounds: int = 10
    others: int = 300
    """Starts of another kind that are timed while a gate moves, and as many while none does."""
    share_seconds: float = 5.0
    herd: int = 100_000
    batch: int = 200
    submit_batch: int = 1_000


# A gate on a flood


async def measure_gate(ground: Ground, sizes: GateSizes) -> Figures:
    """Close and open a gate on very many jobs while those of another kind start."""
    async with ground.place() as place:
        say(f"gate: loading {sizes.flood:,} jobs")
        await place.load_due(sizes.flood, [FLOOD])
        await _starts(place, sizes.others)
        quiet = await _starts(place, sizes.others)
        closed, opened, beside = await _close_and_open(place, sizes)
    figures = {
        "gate_close_1m_s": round(statistics.median(closed), 4),
        "gate_open_1m_s": round(statistics.median(opened), 4),
        "gate_others_p99_ms": round(quantile(beside, 0.99), 3),
        "gate_others_quiet_p99_ms": round(quantile(quiet, 0.99), 3),
    }
    say(f"gate: {figures}")
    return figures


async def _close_and_open(place: Place, sizes: GateSizes) -> tuple[list[float], list[float], list[float]]:
    """Return the seconds until each closing and opening was in effect, and the starts of others meanwhile, in ms.

    The gate moves for as long as others are timed: a quantile of starts that are mostly beside nothing would tell of
    the one that was hit worst.
    """
    beside = asyncio.create_task(_starts(place, sizes.others))
    closed: list[float] = []
    opened: list[float] = []
    while len(closed) < sizes.gate_rounds or not beside.done():
        begun = time.perf_counter()
        gate = await place.store.close_gate(GateSpec(mode=GateMode.HOLD, kind=FLOOD.kind))
        if await _flood(place):
            raise RuntimeError("a closed gate let jobs through")
        closed.append(time.perf_counter() - begun)
        opened.append(await _open(place, gate))
    return closed, opened, await beside


async def _open(place: Place, gate: Gate) -> float:
    begun = time.perf_counter()
    await place.store.open_gate(gate.id)
    runs = await _flood(place)
    took = time.perf_counter() - begun
    if not runs:
        raise RuntimeError("an opened gate let nothing through")
    await place.store.settle(place.worker_id, outcomes(runs))
    return took


async def _flood(place: Place) -> list[Run]:
    request = ClaimRequest(worker_id=place.worker_id, limit=5, kinds=frozenset({FLOOD.kind}))
    return (await place.store.claim(request)).runs


async def _starts(place: Place, count: int) -> list[float]:
    """Submit and start jobs of another kind one by one; return what that took in ms."""
    request = ClaimRequest(worker_id=place.worker_id, limit=1, kinds=frozenset({OTHER.kind}))
    took: list[float] = []
    while len(took) < count:
        begun = time.perf_counter()
        await place.store.submit([OTHER])
        runs: list[Run] = []
        while not runs:
            runs = (await place.store.claim(request)).runs
        took.append(1000 * (time.perf_counter() - begun))
        await place.store.settle(place.worker_id, outcomes(runs))
    return took


# Two tenants


async def measure_share(ground: Ground, sizes: GateSizes) -> Figures:
    """Compare how long the jobs of a small tenant wait, alone and beside a large backlog of another."""
    async with ground.place() as place:
        await _delays(place, sizes.share_seconds / 4)
        alone = await _delays(place, sizes.share_seconds)
        say(f"share: loading {sizes.flood:,} jobs")
        await place.load_due(sizes.flood, [FLOOD])
        await _delays(place, sizes.share_seconds / 4)
        beside = await _delays(place, sizes.share_seconds)
    figures = {
        "tenant_delay_ratio": round(statistics.median(beside) / statistics.median(alone), 3),
        "tenant_delay_ms": [round(statistics.median(delays), 3) for delays in (alone, beside)],
        "tenant_delay_p99_ms": [round(quantile(delays, 0.99), 3) for delays in (alone, beside)],
    }
    say(f"share: {figures}")
    return figures


async def _delays(place: Place, seconds: float) -> list[float]:
    """Let a worker with some slots serve all, and return how long the jobs of the small tenant waited, in ms."""
    submitting = asyncio.create_task(_submit_steadily(place, seconds))
    worker = _Slots(place)
    while not submitting.done():
        await worker.turn()
    await submitting
    while worker.waiting(await submitting):
        await worker.turn()
    await worker.end()
    return [worker.delays[number] for number in range(await submitting)]


async def _submit_steadily(place: Place, seconds: float) -> int:
    begun, number = time.perf_counter(), 0
    while time.perf_counter() < begun + seconds:
        spec = msgspec.structs.replace(OTHER, args={"number": number, "at": time.perf_counter()})
        await place.store.submit([spec])
        number += 1
        await asyncio.sleep(max(0.0, begun + number * BETWEEN - time.perf_counter()))
    return number


class _Slots:
    """A worker whose jobs take their time."""

    def __init__(self, place: Place) -> None:
        self.delays: dict[int, float] = {}
        self._place = place
        self._running: list[tuple[float, int, Run]] = []
        self._settling: asyncio.Task[int] | None = None
        self._random = random.Random(7)  # the same work in each run
        self._count = 0
        self._begun = time.perf_counter()

    def waiting(self, submitted: int) -> bool:
        if time.perf_counter() - self._begun > PATIENCE:
            raise RuntimeError(f"{submitted - len(self.delays)} of {submitted} jobs were not started")
        return len(self.delays) < submitted

    async def turn(self) -> None:
        """End what has taken its time, start what there is room for, and sleep if there was nothing to start."""
        now = time.perf_counter()
        if self._settling is None or self._settling.done():  # beside the claims, as in a worker
            self._settling = asyncio.create_task(self._settle(now))
        free = SLOTS - sum(end > now for end, _, _ in self._running)
        if not free or not await self._claim(free):
            await asyncio.sleep(0.001)

    async def end(self) -> None:
        if self._settling is not None:
            await self._settling
        await self._settle(float("inf"))

    async def _settle(self, now: float) -> int:
        ended = []
        while self._running and self._running[0][0] <= now:
            ended.append(heapq.heappop(self._running)[2])
        await self._place.store.settle(self._place.worker_id, outcomes(ended))
        return len(ended)

    async def _claim(self, free: int) -> int:
        request = ClaimRequest(worker_id=self._place.worker_id, limit=free)
        runs = (await self._place.store.claim(request)).runs
        now = time.perf_counter()
        for run in runs:
            self._count += 1
            heapq.heappush(self._running, (now + self._random.uniform(*WORK), self._count, run))
            if run.kind == OTHER.kind:
                args = msgspec.json.decode(run.args)
                self.delays[args["number"]] = 1000 * (now - args["at"])
        return len(runs)


# A herd


async def measure_herd(ground: Ground, sizes: GateSizes) -> Figures:
    """Let very many jobs become due within one second, and drain them; how late do they start?"""
    async with ground.place() as place:
        await fill(place.store, sizes.batch, sizes.submit_batch, in_lanes([FLOOD]))
        await _drain(place, sizes.batch, sizes.batch)
        first = datetime.now(UTC) + timedelta(seconds=2 + sizes.herd / 5_000)

        def due(count: int, begin: int) -> list[JobSpec]:
            return [
                JobSpec(
                    kind="herd",
                    tenant="large",
                    priority=Priority.MEDIUM,
                    args={"number": number},
                    run_at=first + timedelta(seconds=number / sizes.herd),
                )
                for number in range(begin, begin + count)
            ]

        await fill(place.store, sizes.herd, sizes.submit_batch, due)
        wait = (first - datetime.now(UTC)).total_seconds()
        if wait < 0:
            raise RuntimeError(f"the herd was due {-wait:.1f} s before all of it was there")
        await asyncio.sleep(wait)
        late = await _drain(place, sizes.herd, sizes.batch)
    figures = {
        "herd_start_p50_s": round(quantile(late, 0.5), 6),
        "herd_start_p99_s": round(quantile(late, 0.99), 6),
        "herd_per_s": round(sizes.herd / (max(late) + 1)),
    }
    say(f"herd: {figures}")
    return figures


async def _drain(place: Place, count: int, batch: int) -> Sequence[float]:
    """Claim and complete so many jobs by two loops, and return by how many seconds each started late."""
    late: list[float] = []
    request = ClaimRequest(worker_id=place.worker_id, limit=batch)
    begun = time.perf_counter()

    async def loop() -> None:
        while len(late) < count:
            if time.perf_counter() - begun > PATIENCE + count / 1_000:
                raise RuntimeError(f"only {len(late)} of {count} jobs were claimed")
            claimed = await place.store.claim(request)
            late.extend((run.claimed_at - run.run_at).total_seconds() for run in claimed.runs)
            if claimed.runs:
                await place.store.settle(place.worker_id, outcomes(claimed.runs))
            elif claimed.next_due is not None and claimed.now is not None:
                await asyncio.sleep(max(0.0, (claimed.next_due - claimed.now).total_seconds()))

    await asyncio.gather(loop(), loop())
    return late
