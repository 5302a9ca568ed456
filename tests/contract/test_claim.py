"""Claiming: only what is due, open and served, each job once, and only by a worker that is alive."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_job, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, drain, finish, in_order, settle, start, submit
from tidewheel.errors import LeaseLost
from tidewheel.model.job import Claimed, Options
from tidewheel.model.outcome import Verdict
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def test_a_run_carries_what_its_worker_needs(backend: Backend, store: Store, worker: Worker) -> None:
    now = backend.clock.now()
    job_id = await submit(
        store,
        "mail",
        args={"b": 1, "a": [2, "ü"]},
        queue="mails",
        tenant="acme",
        priority=Priority.HIGH,
        labels={"x": "y"},
        options=Options(name="n", timeout=HOUR),
        run_at=now - MINUTE,
        start_by=now + HOUR,
    )
    (run,) = await claim(store, worker, queues=("mails",))
    assert (run.job_id, run.kind, run.queue, run.tenant) == (job_id, "mail", "mails", "acme")
    assert (run.priority, run.failures, run.losses, run.cancelling) == (Priority.HIGH, 0, 0, False)
    assert (run.args, run.labels) == ('{"b":1,"a":[2,"ü"]}', '{"x":"y"}')
    assert run.options is not None
    assert '"timeout"' in run.options
    assert (run.due_at, run.run_at, run.start_by, run.claimed_at) == (now - MINUTE, now, now + HOUR, now)


async def test_a_plain_run_has_no_labels_and_no_options(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    assert (run.args, run.labels, run.options) == ("{}", None, None)


async def test_a_claimed_job_is_running_under_its_worker(backend: Backend, store: Store, worker: Worker) -> None:
    await submit(store)
    await backend.clock.advance(SECOND)
    (run,) = await claim(store, worker)
    job = await store.get(run.job_id)
    now = backend.clock.now()
    assert (job.state, job.token, job.last_worker) == (State.RUNNING, run.token, worker.id)
    assert (job.last_started_at, job.updated_at) == (now, now)


async def test_a_job_is_claimed_once(backend: Backend, store: Store, worker: Worker) -> None:
    await start(store, worker)
    other = await backend.open()
    second = await other.register(a_worker())
    assert await claim(store, worker) == []
    assert await claim(other, second) == []


async def test_a_job_never_starts_before_it_is_due(backend: Backend, store: Store, worker: Worker) -> None:
    job_id = await submit(store, delay=10 * SECOND)
    await backend.clock.advance(10 * SECOND - timedelta(milliseconds=1))
    assert await claim(store, worker) == []
    await backend.clock.advance(timedelta(milliseconds=1))
    assert in_order(await claim(store, worker)) == [job_id]


async def test_no_more_than_the_limit_are_taken(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(30))
    sizes = [len(await claim(store, worker, 12)) for _ in range(4)]
    assert sizes == [12, 12, 6, 0]


async def test_a_claim_takes_all_that_it_may_over_many_lanes(store: Store, worker: Worker) -> None:
    specs = [a_job(f"k{i % 10}", tenant=f"t{i % 3}", priority=Priority(i % 3)) for i in range(300)]
    await store.submit(specs)
    assert len(await claim(store, worker, 250)) == 250
    assert len(await claim(store, worker, 250)) == 50


async def test_only_subscribed_queues_are_served(store: Store, worker: Worker) -> None:
    ids = {queue: await submit(store, queue=queue) for queue in ("default", "a", "b", "c")}
    assert in_order(await claim(store, worker)) == [ids["default"]]
    assert set(in_order(await claim(store, worker, queues=("a", "b")))) == {ids["a"], ids["b"]}
    assert await claim(store, worker, queues=("nobody-uses-this",)) == []


async def test_only_known_kinds_are_served(store: Store, worker: Worker) -> None:
    await submit(store, "unknown")
    known = await submit(store, "known")
    assert in_order(await claim(store, worker, kinds=frozenset({"known", "other"}))) == [known]
    assert await claim(store, worker, kinds=frozenset({"known"})) == []
    assert await claim(store, worker, kinds=frozenset()) == []


async def test_kinds_that_a_worker_lacks_hide_nothing_from_it(store: Store, worker: Worker) -> None:
    """A thousand older jobs of higher priority that it may not take must not be in its way."""
    await store.submit(some_jobs(1_000, "unknown", priority=Priority.HIGH))
    ids = [answer.job_id for answer in await store.submit(some_jobs(5, "known", priority=Priority.LOW))]
    assert in_order(await claim(store, worker, 5, kinds=frozenset({"known"}))) == ids


async def test_tokens_rise_with_every_claim(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    tokens = [run.token]
    for cause in (Cause.FAILED, Cause.SNOOZED, Cause.RELEASED, Cause.CRASHED):
        assert await settle(store, worker, run, cause) is Verdict.ACCEPTED
        (run,) = await claim(store, worker)
        tokens.append(run.token)
    assert tokens == sorted(set(tokens))
    assert tokens[0] > 0


async def test_a_new_lane_is_found_by_a_store_that_is_at_work(backend: Backend, store: Store, worker: Worker) -> None:
    """Whatever a claimer remembers of the lanes, those that appear later must be found at the next look."""
    other = await backend.open()
    await submit(store, "first")
    assert len(await claim(store, worker)) == 1
    for kind in ("second", "third"):
        job_id = await submit(other, kind, tenant=kind)
        await backend.clock.advance(2 * SECOND)
        assert in_order(await claim(store, worker)) == [job_id]


async def test_a_late_commit_behind_the_mark_is_found_by_a_sweep(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """A submit takes its time when it begins; if it commits after others were claimed, it lies behind the mark."""
    begun = backend.clock.now()
    late = await submit(store, delay=HOUR)
    await backend.clock.advance(10 * SECOND)
    for _ in range(3):
        await store.submit(some_jobs(10))
        await finish(store, worker, await claim(store, worker))
        await backend.clock.advance(3 * SECOND)
    await backend.backdate(late, begun)
    await backend.clock.advance(2 * SECOND)
    assert in_order(await claim(store, worker)) == [late]


async def test_a_sweep_also_comes_while_there_is_work(backend: Backend, store: Store, worker: Worker) -> None:
    begun = backend.clock.now()
    late = await submit(store, delay=HOUR)
    await backend.clock.advance(10 * SECOND)
    await store.submit(some_jobs(40))
    await claim(store, worker)
    await backend.backdate(late, begun)
    await backend.clock.advance(3 * SECOND)
    assert late in in_order([*await claim(store, worker), *await claim(store, worker)])


async def test_a_job_that_returns_to_the_queue_is_found_though_marks_have_passed(
    backend: Backend, store: Store, worker: Worker
) -> None:
    run = await start(store, worker)
    for _ in range(3):
        await backend.clock.advance(5 * SECOND)
        await store.submit(some_jobs(5))
        assert len(await claim(store, worker)) == 5
    await settle(store, worker, run, Cause.RELEASED)
    assert in_order(await claim(store, worker)) == [run.job_id]


async def test_an_empty_answer_says_when_to_look_again(backend: Backend, store: Store, worker: Worker) -> None:
    now = backend.clock.now()
    await store.submit([a_job(delay=HOUR), a_job(delay=MINUTE), a_job("other", delay=2 * MINUTE)])
    assert await store.claim(a_claim(worker.id)) == Claimed([], now + MINUTE, now)
    await backend.clock.advance(MINUTE)
    assert len(await claim(store, worker)) == 1
    assert await store.claim(a_claim(worker.id)) == Claimed([], now + 2 * MINUTE, now + MINUTE)


async def test_a_retry_counts_for_when_to_look_again(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await submit(store, delay=HOUR)
    await settle(store, worker, run, Cause.FAILED, delay=MINUTE)
    assert (await store.claim(a_claim(worker.id))).next_due == backend.clock.now() + MINUTE


async def test_there_is_nothing_to_look_for_in_an_empty_store(backend: Backend, store: Store, worker: Worker) -> None:
    assert await store.claim(a_claim(worker.id)) == Claimed([], None, backend.clock.now())


async def test_when_to_look_again_leaves_out_what_the_worker_does_not_serve(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit([a_job("unknown", delay=SECOND), a_job(queue="other", delay=SECOND), a_job("mine", delay=HOUR)])
    answer = await store.claim(a_claim(worker.id, kinds=frozenset({"mine"})))
    assert answer == Claimed([], backend.clock.now() + HOUR, backend.clock.now())


async def test_an_unknown_worker_gets_nothing(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    with pytest.raises(LeaseLost):
        await store.claim(a_claim(uuid4()))
    assert in_order(await claim(store, worker)) == [job_id]


@pytest.mark.parametrize("jobs", [0, 1])
async def test_a_worker_whose_lease_has_passed_gets_nothing(backend: Backend, store: Store, jobs: int) -> None:
    """Also if there is nothing to get: the answer must not depend on luck."""
    await store.submit(some_jobs(jobs))
    short = await store.register(a_worker(ttl=5 * SECOND))
    await backend.clock.advance(5 * SECOND)
    with pytest.raises(LeaseLost) as refusal:
        await claim(store, short)
    assert refusal.value.worker_id == short.id
    await store.beat([short.id])
    assert len(await claim(store, short)) == jobs


async def test_a_worker_that_was_reaped_or_has_left_gets_nothing(backend: Backend, store: Store) -> None:
    reaped = await store.register(a_worker(ttl=5 * SECOND))
    left = await store.register(a_worker(ttl=HOUR))
    await backend.clock.advance(6 * SECOND)
    assert await store.reap(reaped.id, reaped.beat) is not None
    await store.deregister(left.id)
    job_id = await submit(store)
    for gone in (reaped, left):
        with pytest.raises(LeaseLost):
            await claim(store, gone)
    assert (await store.get(job_id)).state is State.QUEUED


async def test_a_queue_can_be_worked_off_over_and_over(backend: Backend, store: Store, worker: Worker) -> None:
    for _ in range(5):
        await store.submit(some_jobs(100))
        assert len(await drain(store, worker, 33)) == 100
        await backend.clock.advance(SECOND)


async def test_the_next_due_time_is_told_again_and_again_with_many_lanes(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """Also while a claim looks only at lanes that lately had something to do."""
    await store.submit([a_job(f"kind-{n}", delay=(n + 1) * HOUR) for n in range(40)])
    for _ in range(5):
        got = await store.claim(a_claim(worker.id))
        assert (got.runs, got.next_due) == ([], backend.clock.now() + HOUR)
