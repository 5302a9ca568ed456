"""Notes of runs: progress, messages, checkpoints and pauses, from the run that has the job and from no other."""

import asyncio
import math
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.builders import DAY, HOUR, SECOND, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, settle, start, submit
from tidewheel.errors import Invalid
from tidewheel.model.job import Job, Run
from tidewheel.model.note import MAX_CHECKPOINT, MAX_MESSAGE, RunNote
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store


def a_note(run: Run, **fields: Any) -> RunNote:
    return RunNote(job_id=run.job_id, token=run.token, **fields)


async def note(store: Store, worker: Worker, run: Run, **fields: Any) -> None:
    await store.note(worker.id, [a_note(run, **fields)])


def told(job: Job) -> tuple[float | None, str, bool]:
    return job.progress, job.progress_message, job.paused


NOTHING = (None, "", False)


async def test_progress_is_shown_while_the_run_goes_on_and_after_it(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    assert told(await store.get(run.job_id)) == NOTHING

    await note(store, worker, run, progress=0.25, message="a quarter")
    assert told(await store.get(run.job_id)) == (0.25, "a quarter", False)
    await note(store, worker, run, progress=1)
    await settle(store, worker, run)

    assert told(await store.get(run.job_id)) == (1.0, "", False)


async def test_what_a_note_leaves_out_stays(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await note(store, worker, run, progress=0.5, message="half", checkpoint='{"at":1}', paused=True)
    assert told(await store.get(run.job_id)) == (0.5, "half", True)

    await note(store, worker, run)
    assert told(await store.get(run.job_id)) == (0.5, "half", True)
    await note(store, worker, run, paused=False)
    assert told(await store.get(run.job_id)) == (0.5, "half", False)
    await note(store, worker, run, checkpoint='{"at":2}')
    assert told(await store.get(run.job_id)) == (0.5, "half", False)
    assert await store.checkpoint_of(run.job_id) == '{"at":2}'
    await note(store, worker, run, message="still half")
    assert told(await store.get(run.job_id)) == (0.5, "still half", False)


async def test_a_batch_has_notes_of_many_runs_and_several_of_one(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(50))
    runs = await claim(store, worker, 50)
    notes = [a_note(run, progress=0.1, message="first", checkpoint="1") for run in reversed(runs)]
    notes += [a_note(run, progress=0.2, message="then") for run in runs]
    notes += [a_note(run, paused=True) for run in runs]

    await store.note(worker.id, notes)

    jobs = (await store.find(JobFilter(states=frozenset({State.RUNNING})), limit=50)).jobs
    assert {told(job) for job in jobs} == {(0.2, "then", True)}
    assert len(jobs) == 50
    assert await store.checkpoint_of(runs[7].job_id) == "1"


async def test_no_notes_are_no_work(store: Store, worker: Worker) -> None:
    await store.note(worker.id, [])


Change = Callable[[Store, Worker, Run], Awaitable[object]]
ENDS: dict[str, Change] = {
    "returned": settle,
    "failed": lambda store, worker, run: settle(store, worker, run, Cause.FAILED),
    "gave up": lambda store, worker, run: settle(store, worker, run, Cause.GAVE_UP),
    "left": lambda store, worker, _: store.deregister(worker.id),
}


@pytest.mark.parametrize("end", ENDS.values(), ids=ENDS)
async def test_a_run_that_has_ended_notes_nothing(store: Store, worker: Worker, end: Change) -> None:
    run = await start(store, worker)
    await note(store, worker, run, progress=0.5, checkpoint="1")
    await end(store, worker, run)

    await note(store, worker, run, progress=0.9, message="late", checkpoint="2", paused=True)

    assert told(await store.get(run.job_id)) == (0.5, "", False)
    assert await store.checkpoint_of(run.job_id) == "1"


async def test_only_the_worker_that_has_the_job_notes_anything(store: Store, worker: Worker) -> None:
    stranger = await store.register(a_worker(ttl=HOUR))
    run = await start(store, worker)

    await note(store, stranger, run, progress=0.5, checkpoint="1")
    await store.note(worker.id, [RunNote(job_id=run.job_id, token=run.token + 1, progress=0.5, checkpoint="1")])
    await store.note(worker.id, [RunNote(job_id=worker.id, token=1, progress=0.5, checkpoint="1")])

    assert told(await store.get(run.job_id)) == NOTHING
    assert await store.checkpoint_of(run.job_id) is None


async def test_stale_notes_leave_the_others_of_a_batch_alone(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(3))
    runs = await claim(store, worker)
    await settle(store, worker, runs[1])

    await store.note(worker.id, [a_note(run, progress=0.5) for run in runs])

    assert [(await store.get(run.job_id)).progress for run in runs] == [0.5, None, 0.5]


async def test_the_next_run_begins_with_the_checkpoint_and_nothing_else(store: Store, worker: Worker) -> None:
    first = await start(store, worker)
    await note(store, worker, first, progress=0.5, message="half", checkpoint='{"at":1}', paused=True)
    await settle(store, worker, first, Cause.CRASHED)
    assert told(await store.get(first.job_id)) == (0.5, "half", False), "a job that waits is not paused"
    (second,) = await claim(store, worker)

    assert told(await store.get(first.job_id)) == NOTHING
    assert await store.checkpoint_of(first.job_id) == '{"at":1}'
    await note(store, worker, second, message="begun")
    assert told(await store.get(first.job_id)) == (None, "begun", False)
    assert await store.checkpoint_of(first.job_id) == '{"at":1}'


async def test_the_checkpoint_survives_a_lost_worker(backend: Backend, store: Store) -> None:
    doomed = await store.register(a_worker(ttl=2 * SECOND))
    run = await start(store, doomed)
    await note(store, doomed, run, checkpoint="[1]")
    await backend.clock.advance(3 * SECOND)
    await store.reap(doomed.id, doomed.beat)

    assert await store.checkpoint_of(run.job_id) == "[1]"


async def test_a_redrive_starts_afresh(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await note(store, worker, run, progress=0.5, checkpoint="1")
    await settle(store, worker, run, Cause.GAVE_UP)
    await store.redrive([run.job_id])

    assert await store.checkpoint_of(run.job_id) is None
    assert told(await store.get(run.job_id)) == NOTHING


TOO_LONG = f'"{"x" * MAX_CHECKPOINT}"'
TOO_DEEP = "[" * 70 + "]" * 70


@pytest.mark.parametrize("bad", ["no JSON", '"\\u0000"', '"\0"', '"\\ud800"', '"\ud800"', "NaN", TOO_LONG, TOO_DEEP])
async def test_a_bad_checkpoint_is_refused_before_anything_is_written(store: Store, worker: Worker, bad: str) -> None:
    await store.submit(some_jobs(2))
    runs = await claim(store, worker)

    with pytest.raises(Invalid, match=r"notes\[1\]\.checkpoint"):
        await store.note(worker.id, [a_note(runs[0], progress=0.5), a_note(runs[1], checkpoint=bad)])

    assert (await store.get(runs[0].job_id)).progress is None


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan, math.inf])
async def test_progress_lies_between_nothing_and_all(store: Store, worker: Worker, bad: float) -> None:
    run = await start(store, worker)
    with pytest.raises(Invalid, match=r"notes\[0\]\.progress"):
        await note(store, worker, run, progress=bad)


async def test_any_message_can_be_stored(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await note(store, worker, run, progress=0, message="a\0b\ud800c" + "x" * MAX_MESSAGE)

    message = (await store.get(run.job_id)).progress_message
    assert message.startswith("a\ufffdb\ufffdcxxx")
    assert len(message) == MAX_MESSAGE


async def test_notes_and_ends_of_the_same_runs_do_not_block_one_another(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(60))
    runs = await claim(store, worker, 60)
    calls: list[Awaitable[object]] = []
    for run in runs:
        calls += [note(store, worker, run, progress=0.5, checkpoint="1"), settle(store, worker, run, Cause.GAVE_UP)]
    calls += [store.note(worker.id, [a_note(run, progress=0.7) for run in order]) for order in (runs, runs[::-1])]

    await asyncio.wait_for(asyncio.gather(*calls), 30)

    for run in runs:
        job = await store.get(run.job_id)
        assert job.state is State.DEAD
        assert job.progress in (None, 0.5, 0.7)


async def test_notes_go_a_day_after_the_end_of_their_job(backend: Backend, store: Store, worker: Worker) -> None:
    keep: dict[State, timedelta] = dict.fromkeys(FINAL, 40 * DAY)
    await store.submit(some_jobs(7))
    *ended, going = await claim(store, worker)
    for run in (*ended, going):
        await note(store, worker, run, progress=0.5, checkpoint="1")
    for run in ended:
        await settle(store, worker, run)
    await store.retire(keep, limit=2)
    assert (await store.get(ended[0].job_id)).progress == 0.5
    await backend.clock.advance(DAY + SECOND)
    await store.retire(keep, limit=2)

    assert [await store.checkpoint_of(run.job_id) for run in ended] == [None] * 6
    assert await store.checkpoint_of(going.job_id) == "1"


async def test_a_job_that_never_ran_has_no_notes(store: Store) -> None:
    job_id = await submit(store)
    assert told(await store.get(job_id)) == NOTHING
    assert await store.checkpoint_of(job_id) is None
