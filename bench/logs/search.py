"""How soon a search answers over many lines."""

import asyncio
import random
import time
from typing import Final

from bench.grounds.ground import Ground, Place
from bench.jobs import fill
from bench.logs.lines import RARE, THINGS, VERBS, lines_of
from bench.logs.sizes import Sizes
from bench.measure import Figures, quantile, say
from tidewheel.clock import SystemClock
from tidewheel.model.log_query import LogFilter
from tidewheel.store.base import ClaimRequest

JOBS: Final = 1000
PART: Final = 100_000
LINES_A_PIECE: Final = 10


async def measure(ground: Ground, sizes: Sizes) -> Figures:
    """Store lines, let their words be indexed, and search for rare and common words, phrases, fields and levels."""
    async with ground.place() as place:
        begun = time.perf_counter()
        indexing = await _load(place, sizes.stored_lines)
        await place.tidy()
        say(f"{sizes.stored_lines:,} lines in {time.perf_counter() - begun:.0f} s, of that indexing {indexing:.0f} s")
        chance = random.Random(7)
        times: dict[str, list[float]] = {}
        for _ in range(sizes.searches):
            name, where = _search(chance, sizes.stored_lines)
            started = time.perf_counter()
            await place.store.search_logs(where, limit=50)
            times.setdefault(name, []).append(1000 * (time.perf_counter() - started))
    together = [one for some in times.values() for one in some]
    return {
        "search_p50_ms": round(quantile(together, 0.5), 1),
        "search_p99_ms": round(quantile(together, 0.99), 1),
        "search_max_ms": round(max(together), 1),
        "search_p99_ms_by": {name: round(quantile(some, 0.99), 1) for name, some in sorted(times.items())},
        "index_lines_per_s": round(sizes.stored_lines / indexing),
    }


async def _load(place: Place, count: int) -> float:
    """Store lines and index them; return how many seconds the indexing took."""
    clock = SystemClock()
    await fill(place.store, JOBS, JOBS)
    claimed = await place.store.claim(ClaimRequest(worker_id=place.worker_id, limit=JOBS))
    indexing = 0.0
    for first in range(0, count, PART):
        part = min(PART, count - first)
        jobs = [
            (run.job_id, 1 + first + turn) for turn in range(-(-part // (JOBS * LINES_A_PIECE))) for run in claimed.runs
        ]
        lines = list(lines_of(jobs[: -(-part // LINES_A_PIECE)], LINES_A_PIECE, clock.now(), first))
        for start in range(0, len(lines), 1000):
            await place.store.append_logs(lines[start : start + 1000])
        begun = time.perf_counter()
        while await place.store.index_logs():
            await asyncio.sleep(0)
        indexing += time.perf_counter() - begun
        if first % (10 * PART) == 0:
            say(f"{first + part:,} lines")
    return indexing


def _search(chance: random.Random, lines: int) -> tuple[str, LogFilter]:
    verb, thing = chance.choice(VERBS), chance.choice(THINGS)
    choices = {
        "unique": LogFilter(text=str(chance.randrange(lines))),
        "user": LogFilter(text=f"user{chance.randrange(100_000)}"),
        "rare": LogFilter(text=chance.choice(RARE)),
        "common": LogFilter(text=f"{thing} {verb}"),
        "phrase": LogFilter(text=f'"{thing} {verb}"'),
        "prefix": LogFilter(text=f"user{chance.randrange(1000)}*"),
        "field": LogFilter(text=f"user:{chance.randrange(100_000)}"),
        "apart": LogFilter(text=f"user{chance.randrange(100_000)} user{chance.randrange(100_000)}"),
        "never": LogFilter(text=f"{VERBS[0]} {VERBS[1]}"),
        "errors": LogFilter(text=thing, level="error", kind="mail.send", tenant="acme"),
        "nothing": LogFilter(text="nosuchword"),
        "all": LogFilter(),
    }
    name = chance.choice(sorted(choices))
    return name, choices[name]
