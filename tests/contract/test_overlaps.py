"""What happens to an occurrence that is due while earlier runs are alive is decided then, and once."""

import asyncio

import pytest

from tests.builders import MINUTE, SECOND, a_claim, a_schedule, outcome_of
from tests.contract.backends import START, Backend
from tests.contract.planning import decide_all, fates, record_ahead
from tidewheel.model.job import Run
from tidewheel.model.overlap import MAX_WAITING, Overlap
from tidewheel.model.schedule import Fate, Schedule, ScheduleSpec
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.triggers import Interval

TEN = 10 * SECOND
MADE, SKIPPED = Fate.MADE, Fate.SKIPPED


def every_ten_seconds(overlap: Overlap, most: int | None = None) -> ScheduleSpec:
    return a_schedule(rule=Interval(TEN), overlap=overlap, max_concurrency=most)


async def ten_seconds_later(store: Store, backend: Backend, worker: Worker) -> list[Run]:
    """Let the next occurrence become due, be decided and claimed."""
    await backend.clock.advance(TEN)
    await decide_all(store)
    return (await store.claim(a_claim(worker.id))).runs


async def states(store: Store) -> list[State]:
    """Return the states of the jobs of the schedule, in the order of their times."""
    jobs = (await store.find(JobFilter(), limit=1000)).jobs
    return [job.state for job in sorted(jobs, key=lambda job: job.due_at)]


async def written(store: Store, spec: ScheduleSpec) -> Schedule:
    schedule = await store.create_schedule(spec)
    await record_ahead(store, MINUTE)
    return schedule


async def test_skip_leaves_out_what_is_due_while_one_runs(store: Store, backend: Backend, worker: Worker) -> None:
    made = await written(store, every_ten_seconds(Overlap.SKIP))

    (run,) = await ten_seconds_later(store, backend, worker)
    assert await ten_seconds_later(store, backend, worker) == []
    await store.settle(worker.id, [outcome_of(run)])
    (third,) = await ten_seconds_later(store, backend, worker)

    assert third.due_at == START + 3 * TEN
    assert (await fates(store))[:3] == [(START + TEN, MADE), (START + 2 * TEN, SKIPPED), (START + 3 * TEN, MADE)]
    skipped = (await store.occurrences(made.id))[-2]
    assert skipped.reason == "1 earlier run is alive, and 1 may be"
    assert skipped.job_id is not None
    job = await store.get(skipped.job_id)
    assert job.state is State.SKIPPED
    assert job.error is not None
    assert (job.error.reason, job.error.message) == (Cause.OVERLAPPED, skipped.reason)


async def test_skip_counts_a_run_that_still_waits_for_a_worker(store: Store, backend: Backend) -> None:
    await written(store, every_ten_seconds(Overlap.SKIP))
    await backend.clock.advance(2 * TEN)

    assert await decide_all(store) == 2

    assert (await states(store))[:3] == [State.QUEUED, State.SKIPPED, State.QUEUED]


async def test_a_run_starts_on_time_though_nobody_decides(store: Store, backend: Backend, worker: Worker) -> None:
    """The keeper may be away: what needs no decision does not wait for one."""
    await written(store, every_ten_seconds(Overlap.SKIP))
    for n in range(3):
        await backend.clock.advance(TEN)
        (run,) = (await store.claim(a_claim(worker.id))).runs
        assert run.due_at == START + (n + 1) * TEN
        await store.settle(worker.id, [outcome_of(run)])

    assert await decide_all(store) == 3
    assert [fate for _, fate in await fates(store)] == [MADE] * 6


async def test_two_never_run_at_once_though_nobody_decides(store: Store, backend: Backend, worker: Worker) -> None:
    await written(store, every_ten_seconds(Overlap.SKIP))
    await backend.clock.advance(3 * TEN)

    assert len((await store.claim(a_claim(worker.id))).runs) == 1
    assert (await store.claim(a_claim(worker.id))).runs == []
    await decide_all(store)

    assert (await states(store))[:3] == [State.RUNNING, State.SKIPPED, State.SKIPPED]


async def test_queue_lets_the_next_wait_for_its_turn(store: Store, backend: Backend, worker: Worker) -> None:
    await written(store, every_ten_seconds(Overlap.QUEUE))

    (run,) = await ten_seconds_later(store, backend, worker)
    assert await ten_seconds_later(store, backend, worker) == []
    await store.settle(worker.id, [outcome_of(run)])
    (second,) = (await store.claim(a_claim(worker.id))).runs

    assert second.due_at == START + 2 * TEN
    assert {fate for _, fate in await fates(store)} == {MADE}


async def test_a_queue_that_is_too_long_grows_no_longer(store: Store, backend: Backend, worker: Worker) -> None:
    await store.create_schedule(a_schedule(rule=Interval(SECOND), overlap=Overlap.QUEUE))
    await record_ahead(store, (MAX_WAITING + 5) * SECOND)
    await backend.clock.advance(SECOND)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1
    await backend.clock.advance((MAX_WAITING + 5) * SECOND)

    await decide_all(store)

    outcomes = [fate for _, fate in await fates(store)]
    assert outcomes == [*[MADE] * (MAX_WAITING + 1), *[SKIPPED] * 4]


async def test_cancel_previous_ends_the_earlier_run_and_starts_after_it(
    store: Store, backend: Backend, worker: Worker
) -> None:
    await written(store, every_ten_seconds(Overlap.CANCEL_PREVIOUS))

    (run,) = await ten_seconds_later(store, backend, worker)
    assert await ten_seconds_later(store, backend, worker) == []
    assert (await store.get(run.job_id)).cancelling
    assert [beat.cancelling for beat in await store.beat([worker.id])] == [((run.job_id, run.token),)]
    await store.settle(worker.id, [outcome_of(run, Cause.STOPPED)])
    (second,) = (await store.claim(a_claim(worker.id))).runs

    assert second.due_at == START + 2 * TEN
    assert (await states(store))[:2] == [State.CANCELLED, State.RUNNING]


async def test_cancel_previous_ends_what_has_not_started_at_once(store: Store, backend: Backend) -> None:
    await written(store, every_ten_seconds(Overlap.CANCEL_PREVIOUS))
    await backend.clock.advance(3 * TEN)

    await decide_all(store)

    assert (await states(store))[:4] == [State.CANCELLED, State.CANCELLED, State.QUEUED, State.QUEUED]
    assert {fate for _, fate in await fates(store)} == {MADE}


@pytest.mark.parametrize(("most", "started"), [(None, 3), (2, 2)])
async def test_allow_starts_all_unless_there_is_a_limit(
    store: Store, backend: Backend, worker: Worker, most: int | None, started: int
) -> None:
    await written(store, every_ten_seconds(Overlap.ALLOW, most))
    await backend.clock.advance(3 * TEN)
    decided = await decide_all(store)

    assert len((await store.claim(a_claim(worker.id))).runs) == started
    assert decided == (0 if most is None else 3)
    assert {fate for _, fate in await fates(store)} == {MADE}


async def test_max_concurrency_is_how_many_are_alive_before_the_policy_speaks(
    store: Store, backend: Backend, worker: Worker
) -> None:
    await written(store, every_ten_seconds(Overlap.SKIP, 2))

    for expected in (1, 1, 0):
        assert len(await ten_seconds_later(store, backend, worker)) == expected

    assert [fate for _, fate in await fates(store)][:3] == [MADE, MADE, SKIPPED]


async def test_many_who_decide_at_once_decide_each_once(store: Store, backend: Backend) -> None:
    for n in range(20):
        await store.create_schedule(a_schedule(f"s{n}", Interval(TEN)))
    await record_ahead(store, MINUTE)
    await backend.clock.advance(MINUTE)
    stores = [store, await backend.open(), await backend.open()]

    decided = await asyncio.gather(*(decide_all(stores[n % 3]) for n in range(6)))

    assert sum(decided) == 120
    for n in range(20):
        assert [fate for _, fate in await fates(store, f"s{n}")] == [MADE, *[SKIPPED] * 5]


async def test_another_limit_lets_those_go_who_waited_for_the_old_one(
    store: Store, backend: Backend, worker: Worker
) -> None:
    made = await written(store, every_ten_seconds(Overlap.QUEUE))
    await backend.clock.advance(3 * TEN)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1

    await store.change_schedule(made.id, every_ten_seconds(Overlap.QUEUE, 2), version=1)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1
    await store.change_schedule(made.id, every_ten_seconds(Overlap.ALLOW), version=2)
    assert len((await store.claim(a_claim(worker.id))).runs) == 1
    assert await store.limits() == []


async def test_a_manual_run_is_never_skipped_and_waits_for_its_turn(
    store: Store, backend: Backend, worker: Worker
) -> None:
    made = await written(store, every_ten_seconds(Overlap.SKIP))
    (run,) = await ten_seconds_later(store, backend, worker)
    await backend.clock.advance(SECOND)
    manual, _ = await store.trigger_schedule(made.id)
    await decide_all(store)

    assert (await store.claim(a_claim(worker.id))).runs == []
    await store.settle(worker.id, [outcome_of(run)])
    assert [run.job_id for run in (await store.claim(a_claim(worker.id))).runs] == [manual.job_id]
