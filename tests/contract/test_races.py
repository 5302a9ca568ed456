"""Races: many callers at once, over several stores on one database, as often as it takes to meet each other."""

import asyncio
from collections import Counter
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.builders import HOUR, SECOND, a_claim, a_job, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import check_conserved, claim, everything, settle, start, stores_on, submit
from tidewheel.errors import LeaseLost
from tidewheel.model.job import Job, Run
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

ROUNDS = 200


async def _both(first: Coroutine[Any, Any, Any], second: Coroutine[Any, Any, Any], turn: int) -> tuple[Any, Any]:
    """Let two calls race, now with the one and now with the other ahead; errors are answers."""
    calls = [first, second][:: -1 if turn % 2 else 1]
    answers = (await asyncio.gather(*calls, return_exceptions=True))[:: -1 if turn % 2 else 1]
    return answers[0], answers[1]


async def test_two_hundred_claimers_get_each_job_once_and_none_starves(backend: Backend) -> None:
    """Who comes back with nothing while rows are free would sleep on a full queue."""
    stores = await stores_on(backend, 4)
    workers = [await stores[i % 4].register(a_worker(f"w{i}")) for i in range(200)]
    ids = [answer.job_id for answer in await stores[0].submit(some_jobs(1_000))]
    claims = [stores[i % 4].claim(a_claim(worker.id, 5)) for i, worker in enumerate(workers)]
    answers = await asyncio.gather(*claims)
    got = [run.job_id for answer in answers for run in answer.runs]
    assert len(got) == len(set(got)), "no job is claimed twice"
    assert min(len(answer.runs) for answer in answers) > 0, "there were five for each"
    rest = [run.job_id for worker in workers for run in await claim(stores[0], worker, 1_000)]
    assert sorted(got + rest) == ids


async def test_few_jobs_and_many_claimers_leave_nothing_behind(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    workers = [await stores[i % 4].register(a_worker(f"w{i}")) for i in range(40)]
    for _ in range(10):
        ids = [answer.job_id for answer in await stores[0].submit(some_jobs(10))]
        claims = [stores[i % 4].claim(a_claim(worker.id, 1)) for i, worker in enumerate(workers)]
        answers = await asyncio.gather(*claims)
        got = [run.job_id for answer in answers for run in answer.runs]
        assert sorted(got) == ids


async def test_claimers_of_many_lanes_share_the_work(backend: Backend) -> None:
    stores = await stores_on(backend, 3)
    workers = [await stores[i % 3].register(a_worker(f"w{i}")) for i in range(30)]
    specs = [a_job(f"k{i % 5}", tenant=f"t{i % 4}", priority=i % 3) for i in range(600)]
    ids = [answer.job_id for answer in await stores[0].submit(specs)]

    async def work(store: Store, worker: Worker) -> list[UUID]:
        done = []
        while runs := await claim(store, worker, 7):
            verdicts = await store.settle(worker.id, [outcome_of(run) for run in runs])
            assert set(verdicts) == {Verdict.ACCEPTED}
            done += [run.job_id for run in runs]
        return done

    results = await asyncio.gather(*(work(stores[i % 3], worker) for i, worker in enumerate(workers)))
    assert sorted(job_id for done in results for job_id in done) == sorted(ids)
    assert {job.state for job in await everything(stores[0])} == {State.SUCCEEDED}


async def test_a_claim_in_flight_while_its_worker_is_reaped_strands_nothing(backend: Backend) -> None:
    """Either it ends before and its runs are taken back, or it finds its worker dead."""
    reaper, busy = await stores_on(backend, 2)
    won = Counter[str]()
    ids: list[UUID] = []
    for turn in range(100):
        worker = await busy.register(a_worker(ttl=2 * SECOND))
        ids += [answer.job_id for answer in await busy.submit(some_jobs(3))]

        async def expire_and_reap(doomed: Worker = worker, start: int = turn * turn // 10) -> Any:
            for _ in range(start):  # a head start for the claim, ever longer, so that they meet at every step of it
                await asyncio.sleep(0)  # noqa: TID251  # a turn of the loop, and no time
            await backend.clock.advance(2 * SECOND)
            return await reaper.reap(doomed.id, doomed.beat, count=False)

        claimed, reaped = await _both(busy.claim(a_claim(worker.id, 3)), expire_and_reap(), turn)
        assert reaped is not None
        if isinstance(claimed, BaseException):
            assert isinstance(claimed, LeaseLost)
            won["reaper"] += 1
        else:
            assert reaped.requeued == len(claimed.runs)
            won["claimer"] += 1
        assert await reaper.owned(worker.id) == []
    assert await everything(reaper, JobFilter(states=frozenset({State.RUNNING}))) == []
    await check_conserved(reaper, ids)
    assert won.keys() == {"reaper", "claimer"}, "or they never met"


async def test_claims_in_flight_while_many_workers_are_reaped_strand_nothing(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    ids = [answer.job_id for answer in await stores[0].submit(some_jobs(200))]
    for _ in range(10):
        workers = [await stores[i % 4].register(a_worker(ttl=2 * SECOND)) for i in range(20)]
        await backend.clock.advance(2 * SECOND - timedelta(milliseconds=1))

        async def doom(doomed: list[Worker] = workers) -> None:
            await backend.clock.advance(timedelta(milliseconds=1))
            reaps = [stores[i % 4].reap(worker.id, worker.beat, count=False) for i, worker in enumerate(doomed)]
            assert None not in await asyncio.gather(*reaps)

        claims = [stores[(i + 1) % 4].claim(a_claim(worker.id, 3)) for i, worker in enumerate(workers)]
        answers = await asyncio.gather(*claims, doom(), *_again(stores, workers), return_exceptions=True)
        assert all(isinstance(answer, LeaseLost) for answer in answers if isinstance(answer, BaseException))
        assert await everything(stores[0], JobFilter(states=frozenset({State.RUNNING}))) == []
    await check_conserved(stores[0], ids)


def _again(stores: list[Store], workers: list[Worker]) -> list[Coroutine[Any, Any, Any]]:
    return [stores[i % 4].claim(a_claim(worker.id, 3)) for i, worker in enumerate(workers)]


async def test_a_claim_that_is_stopped_in_the_middle_while_its_worker_is_reaped_strands_nothing(
    backend: Backend,
) -> None:
    """The claim has seen its worker alive; the reaper must wait for it, and then see what it took."""
    busy, reaper = await stores_on(backend, 2)
    worker = await busy.register(a_worker(ttl=2 * SECOND))
    await busy.submit(some_jobs(3))
    held = await backend.hold_claims()
    if held is None:
        pytest.skip("here a claim cannot be stopped in the middle")
    claiming = asyncio.create_task(busy.claim(a_claim(worker.id, 3)))
    await held.waited_for(1)
    await backend.clock.advance(2 * SECOND)
    reaping = asyncio.create_task(reaper.reap(worker.id, worker.beat))
    await held.waited_for(2, unless=reaping)
    await held.release()
    reaped, claimed = await reaping, await claiming
    assert reaped is not None
    assert reaped.requeued == len(claimed.runs) == 3
    assert await reaper.owned(worker.id) == []


async def test_rows_that_somebody_holds_are_passed_over_and_not_forgotten(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """A session that was left open must not stop the others; and the marks must not move past what it holds."""
    ids = [answer.job_id for answer in await store.submit(some_jobs(10))]
    held = await backend.hold_jobs(ids[:3])
    if held is None:
        pytest.skip("here nobody can hold single rows")
    await backend.clock.advance(10 * SECOND)
    for _ in range(3):
        async with asyncio.timeout(20):
            runs = await claim(store, worker, 10)
        await store.settle(worker.id, [outcome_of(run) for run in runs])
        ids += [answer.job_id for answer in await store.submit(some_jobs(3))]
        await backend.clock.advance(5 * SECOND)
    await held.release()
    left = [run.job_id for run in await claim(store, worker, 10)]
    assert sorted(left) == sorted([*ids[:3], *ids[-3:]])


async def test_nobody_gets_a_job_before_its_time_however_many_claim(backend: Backend) -> None:
    """What a claim meant to take is gone, and behind it in the same lane lie the jobs of tomorrow."""
    stores = await stores_on(backend, 4)
    workers = [await stores[i % 4].register(a_worker(f"w{i}")) for i in range(20)]
    await stores[0].submit(some_jobs(200, delay=HOUR))
    for _ in range(10):
        due = [answer.job_id for answer in await stores[0].submit(some_jobs(20))]
        claims = [stores[i % 4].claim(a_claim(worker.id, 10)) for i, worker in enumerate(workers)]
        got = [run.job_id for answer in await asyncio.gather(*claims) for run in answer.runs]
        assert sorted(got) == due


async def test_two_reapers_take_a_worker_back_once(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    ids: list[UUID] = []
    for turn in range(50):
        worker = await first.register(a_worker(ttl=2 * SECOND))
        ids.append((await start(first, worker)).job_id)
        await backend.clock.advance(2 * SECOND)
        answers = await _both(
            first.reap(worker.id, worker.beat, max_losses=1), second.reap(worker.id, worker.beat, max_losses=1), turn
        )
        assert sum(answer is not None for answer in answers) == 1
        assert (await first.get(ids[-1])).losses == 1
    await check_conserved(first, ids)


async def test_a_beat_racing_its_reaper_has_one_winner(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    for turn in range(50):
        worker = await first.register(a_worker(ttl=2 * SECOND))
        await backend.clock.advance(2 * SECOND)
        beats, reaped = await _both(first.beat([worker.id]), second.reap(worker.id, worker.beat), turn)
        assert (beats == []) == (reaped is not None)


async def test_a_completion_racing_the_reaper_has_one_winner(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    for turn in range(ROUNDS // 2):
        worker = await first.register(a_worker(ttl=2 * SECOND))
        run = await start(first, worker)
        await backend.clock.advance(2 * SECOND)
        verdict, reaped = await _both(settle(first, worker, run), second.reap(worker.id, worker.beat), turn)
        job = await first.get(run.job_id)
        if verdict is Verdict.ACCEPTED:
            assert (job.state, reaped.requeued) == (State.SUCCEEDED, 0)
        else:
            assert (verdict, job.state, reaped.requeued) == (Verdict.STALE, State.QUEUED, 1)
            await first.cancel(run.job_id)


async def test_cancel_racing_claim_has_one_winner(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    ids, won = [], Counter[State]()
    for turn in range(ROUNDS):
        ids.append(job_id := await submit(first))
        cancelled, claimed = await _both(second.cancel(job_id), first.claim(a_claim(worker.id, 1)), turn)
        assert isinstance(cancelled, Job)
        won[cancelled.state] += 1
        if cancelled.state is State.CANCELLED:
            assert claimed.runs == [], "what is reported as cancelled never starts"
        else:
            assert (cancelled.state, cancelled.cancelling) == (State.RUNNING, True)
            (run,) = claimed.runs
            assert await settle(first, worker, run, Cause.STOPPED) is Verdict.ACCEPTED
        assert (await first.get(job_id)).state is State.CANCELLED
    await check_conserved(first, ids)


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.FAILED, Cause.GAVE_UP, Cause.RELEASED])
async def test_cancel_racing_an_end_has_one_winner(backend: Backend, cause: Cause) -> None:
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    ids = []
    for turn in range(ROUNDS):
        run = await start(first, worker)
        ids.append(run.job_id)
        cancelled, verdict = await _both(second.cancel(run.job_id), settle(first, worker, run, cause), turn)
        assert verdict is Verdict.ACCEPTED
        job = await first.get(run.job_id)
        _check_cancel_against_end(cancelled, job, cause)
    await check_conserved(first, ids)
    assert await first.owned(worker.id) == []


def _check_cancel_against_end(cancelled: Job, job: Job, cause: Cause) -> None:
    """What the two callers were told must fit what is stored."""
    if cancelled.cancelling:
        assert job.state is (State.SUCCEEDED if cause is Cause.RETURNED else State.CANCELLED)
        return
    ended_first = {Cause.RETURNED: State.SUCCEEDED, Cause.GAVE_UP: State.DEAD}
    assert job.state is cancelled.state is ended_first.get(cause, State.CANCELLED)
    assert job.failures == (cause in (Cause.FAILED, Cause.GAVE_UP))


async def test_cancel_racing_a_retry_that_is_claimed_again(backend: Backend) -> None:
    """Once the answer says cancelled, no later claim may get the job."""
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        run = await start(first, worker)

        async def retry(failed: Run = run) -> list[Run]:
            await settle(first, worker, failed, Cause.FAILED)
            return await claim(first, worker, 1)

        cancelled, again = await _both(second.cancel(run.job_id), retry(), turn)
        for next_run in again:
            assert cancelled.cancelling
            await settle(first, worker, next_run, Cause.FAILED)
        assert (await first.get(run.job_id)).state is State.CANCELLED
        assert await claim(first, worker) == []


async def test_one_outcome_said_by_two_processes_is_stored_once(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        run = await start(first, worker)
        cause = (Cause.RETURNED, Cause.GAVE_UP)[turn % 2]
        verdicts = await _both(settle(first, worker, run, cause), settle(second, worker, run, cause), turn)
        assert sorted(verdicts) == [Verdict.ACCEPTED, Verdict.REPEATED]
        assert len(await first.attempts(run.job_id)) == 1


async def test_a_limit_holds_however_many_claim_at_once(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    workers = [await stores[i % 4].register(a_worker(f"w{i}")) for i in range(20)]
    await stores[0].set_limit("l", 5)
    await stores[0].set_limit("m", 3)
    specs = [a_job(limit_keys=(("l",), ("l", "m"), ("m",))[i % 3]) for i in range(60)]
    ids = [answer.job_id for answer in await stores[0].submit(specs)]
    done: set[UUID] = set()
    for _ in range(100):
        claims = [stores[i % 4].claim(a_claim(worker.id, 3)) for i, worker in enumerate(workers)]
        answers = await asyncio.gather(*claims)
        assert all(limit.running <= (limit.most or 0) for limit in await stores[0].limits())
        settles = [
            stores[i % 4].settle(worker.id, [outcome_of(run) for run in answer.runs])
            for i, (worker, answer) in enumerate(zip(workers, answers, strict=True))
        ]
        assert {verdict for verdicts in await asyncio.gather(*settles) for verdict in verdicts} <= {Verdict.ACCEPTED}
        done |= {run.job_id for answer in answers for run in answer.runs}
        if len(done) == len(ids):
            break
    assert done == set(ids)
    assert [limit.running for limit in await stores[0].limits()] == [0, 0]


async def test_the_last_end_racing_a_claim_leaves_nobody_waiting(backend: Backend) -> None:
    """A claim that finds no room while the room is just being given back must not leave a waiter that nobody wakes."""
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    await first.set_limit("l", 1)
    for turn in range(ROUNDS // 2):
        run = await start(first, worker, limit_keys=("l",))
        waiting = await submit(first, limit_keys=("l",))
        _, claimed = await _both(settle(first, worker, run), second.claim(a_claim(worker.id, 1)), turn)
        runs = claimed.runs or await claim(first, worker, 1)
        assert [found.job_id for found in runs] == [waiting]
        assert await settle(first, worker, runs[0]) is Verdict.ACCEPTED


async def test_a_redrive_in_parallel_happens_once(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    job_id = await submit(stores[0])
    for _ in range(20):
        await stores[0].cancel(job_id)
        answers = await asyncio.gather(*(store.redrive([job_id]) for store in stores))
        assert sorted(answers, key=len) == [[], [], [], [job_id]]
    await check_conserved(stores[0], [job_id])


async def test_expiry_racing_a_claim_has_one_winner(backend: Backend) -> None:
    first, second = await stores_on(backend, 2)
    worker = await first.register(a_worker(ttl=HOUR))
    for turn in range(ROUNDS // 2):
        job_id = await submit(first, start_by=backend.clock.now() + SECOND)
        await backend.clock.advance(2 * SECOND)
        expired, claimed = await _both(second.expire(), first.claim(a_claim(worker.id, 1)), turn)
        assert expired + len(claimed.runs) == 1
        if claimed.runs:
            assert await settle(first, worker, claimed.runs[0]) is Verdict.ACCEPTED
        assert (await first.get(job_id)).state is (State.SUCCEEDED if claimed.runs else State.EXPIRED)
        await first.beat([worker.id])
