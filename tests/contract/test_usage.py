"""What runs used is kept with their ends, and shown with attempts and finished jobs."""

import math

import pytest

from tests.builders import NOT_RETURNED, outcome_of, some_jobs
from tests.contract.steps import claim, settle, start
from tidewheel.model.outcome import ATTEMPTS, Usage, Verdict
from tidewheel.model.states import FINAL, Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

USED = Usage(cpu_seconds=1.5, peak_rss_bytes=2**40, isolation=("process", "landlock"))


@pytest.mark.parametrize("cause", [Cause.RETURNED, *NOT_RETURNED])
async def test_usage_is_shown_with_the_end_of_a_run(store: Store, worker: Worker, cause: Cause) -> None:
    run = await start(store, worker)

    assert await settle(store, worker, run, cause, usage=USED) is Verdict.ACCEPTED

    job, attempts = await store.get(run.job_id), await store.attempts(run.job_id)
    assert job.usage == (USED if job.state in FINAL else None)
    assert [attempt.usage for attempt in attempts] == [USED] * (job.state in FINAL or cause in ATTEMPTS)


async def test_usage_stands_beside_outcomes_without_it(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(4))
    runs = await claim(store, worker)
    usages = [None, USED, None, Usage()]
    outcomes = [outcome_of(run, usage=usage) for run, usage in zip(runs, usages, strict=True)]

    assert set(await store.settle(worker.id, outcomes)) == {Verdict.ACCEPTED}

    assert [(await store.get(run.job_id)).usage for run in runs] == usages


async def test_the_usage_of_the_last_attempt_survives_a_redrive(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP, usage=USED)
    await store.redrive([run.job_id])

    assert [attempt.usage for attempt in await store.attempts(run.job_id)] == [USED]
    assert (await store.get(run.job_id)).usage is None


@pytest.mark.parametrize(
    ("odd", "shown"),
    [
        (Usage(cpu_seconds=math.nan, peak_rss_bytes=1), Usage(peak_rss_bytes=1)),
        (Usage(cpu_seconds=math.inf), Usage()),
        (Usage(isolation=("a\0b", "\ud800")), Usage(isolation=("a\ufffdb", "\ufffd"))),
    ],
    ids=["NaN", "infinity", "text"],
)
async def test_odd_figures_spoil_no_outcome(store: Store, worker: Worker, odd: Usage, shown: Usage) -> None:
    run = await start(store, worker)

    assert await settle(store, worker, run, usage=odd) is Verdict.ACCEPTED

    assert (await store.get(run.job_id)).usage == shown
