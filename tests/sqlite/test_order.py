"""With many lanes a claim looks at few of them; the order must be the same as if it had looked at all."""

import random
from collections import defaultdict
from datetime import timedelta
from itertools import pairwise

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_job, a_worker
from tidewheel.model.priority import Priority
from tidewheel.store.sqlite import SqliteStore
from tidewheel.testing import FakeClock


@pytest.mark.parametrize("tenants", [1, 7])
@pytest.mark.parametrize("limit", [1, 9, 40])
async def test_fifo_holds_over_the_many_lanes_of_a_tenant(
    store: SqliteStore, clock: FakeClock, tenants: int, limit: int
) -> None:
    chance = random.Random(tenants * 100 + limit)
    for _ in range(6):
        await store.submit(
            [
                a_job(f"k{chance.choice([0, chance.randrange(60)])}", tenant=f"t{chance.randrange(tenants)}",
                      delay=timedelta(milliseconds=chance.randrange(5_000)), priority=chance.choice(list(Priority)))
                for _ in range(100)
            ]
        )  # fmt: skip
        await clock.advance(SECOND)
    await clock.advance(10 * SECOND)
    worker = await store.register(a_worker(ttl=HOUR))
    seen = defaultdict(list)
    total = 0
    while runs := (await store.claim(a_claim(worker.id, limit))).runs:
        assert len(runs) == min(limit, 600 - total)
        total += len(runs)
        for run in runs:
            seen[run.tenant, run.priority].append((run.run_at, run.job_id))
        assert all(a.priority <= b.priority for a, b in pairwise(runs))
    assert total == 600
    for runs_of_group in seen.values():
        assert runs_of_group == sorted(runs_of_group)


async def test_a_busy_tenant_among_many_lanes_leaves_nobody_out(store: SqliteStore) -> None:
    """One tenant has far more lanes than a claim looks at, and the others have little."""
    specs = [a_job(f"k{n}", tenant="many") for n in range(200)] + [
        a_job(f"k{n % 3}", tenant=f"few{n % 5}") for n in range(10)
    ]
    await store.submit(specs)
    worker = await store.register(a_worker(ttl=HOUR))
    first = (await store.claim(a_claim(worker.id, 20))).runs
    assert sum(run.tenant != "many" for run in first) == 10
    total = len(first)
    while runs := (await store.claim(a_claim(worker.id, 20))).runs:
        total += len(runs)
    assert total == len(specs)
