"""Submitting: what is stored is what was asked for, whole batches or nothing."""

from datetime import timedelta
from uuid import uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, needing, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, everything, in_order, submit
from tidewheel.errors import AlreadyActive, Invalid, KeyReused
from tidewheel.model.job import Job, Options, Submitted
from tidewheel.model.priority import Priority
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


@pytest.mark.native("jobs of schedules are made by the server")
async def test_a_job_comes_back_as_it_was_asked_for(backend: Backend, store: Store) -> None:
    schedule_id, now = uuid4(), backend.clock.now()
    retry = RetryPolicy(max_attempts=9, backoff="fixed")
    options = Options(name="nightly", description="öß\nzwei", retry=retry, timeout=HOUR, recurrence="every 5m")
    spec = a_job(
        "mail.send",
        args={"to": "a@b", "n": [1, 2.5, None, True, {"deep": "ünï 😀"}]},
        queue="mails",
        tenant="acme",
        priority=Priority.LOW,
        labels={"team": "blue", "empty": ""},
        needs=needing({"cpu": 500, "gpu": 1}, zone="eu"),
        options=options,
        run_at=now + MINUTE,
        start_by=now + HOUR,
        limit_keys=("host:a", "user 7"),
        idempotency_key="order 66",
        unique_key="mail of 66",
        schedule_id=schedule_id,
    )
    (answer,) = await store.submit([spec])
    assert answer.created
    assert await store.get(answer.job_id) == Job(
        id=answer.job_id,
        tenant="acme",
        queue="mails",
        kind="mail.send",
        name="nightly",
        description="öß\nzwei",
        args=spec.args,
        labels={"team": "blue", "empty": ""},
        priority=Priority.LOW,
        needs=needing({"cpu": 500, "gpu": 1}, zone="eu"),
        retry=retry,
        timeout=HOUR,
        limit_keys=("host:a", "user 7"),
        unique_key="mail of 66",
        idempotency_key="order 66",
        schedule_id=schedule_id,
        recurrence="every 5m",
        state=State.QUEUED,
        token=0,
        failures=0,
        losses=0,
        created_at=now,
        updated_at=now,
        due_at=now + MINUTE,
        run_at=now + MINUTE,
        start_by=now + HOUR,
    )


async def test_a_plain_job_has_the_defaults_and_is_due_now(backend: Backend, store: Store) -> None:
    job = await store.get(await submit(store))
    now = backend.clock.now()
    assert (job.state, job.queue, job.tenant, job.priority) == (State.QUEUED, "default", "default", Priority.MEDIUM)
    assert (job.created_at, job.due_at, job.run_at, job.start_by) == (now, now, now, None)
    assert (job.args, job.labels, job.limit_keys, job.cancelling, job.gate) == ({}, {}, (), False, "open")


async def test_a_delay_counts_from_the_time_of_the_store(backend: Backend, store: Store) -> None:
    job = await store.get(await submit(store, delay=timedelta(seconds=90)))
    assert job.due_at == job.run_at == backend.clock.now() + timedelta(seconds=90)


async def test_a_time_in_the_past_is_kept_as_due_but_runs_from_now(backend: Backend, store: Store) -> None:
    """Else it would lie before the marks of the claimers, who look there only now and then."""
    now = backend.clock.now()
    job = await store.get(await submit(store, run_at=now - HOUR))
    assert (job.due_at, job.run_at) == (now - HOUR, now)


async def test_a_time_in_another_zone_is_the_same_instant(backend: Backend, store: Store) -> None:
    from zoneinfo import ZoneInfo  # noqa: PLC0415

    at = (backend.clock.now() + HOUR).astimezone(ZoneInfo("Asia/Kathmandu"))
    assert (await store.get(await submit(store, run_at=at))).run_at == at


async def test_answers_come_in_the_order_of_the_specs(store: Store) -> None:
    specs = [a_job(f"kind-{i % 7}", args={"i": i}, tenant=f"t{i % 3}") for i in range(300)]
    answers = await store.submit(specs)
    assert all(answer.created for answer in answers)
    for i in (0, 1, 150, 299):
        assert (await store.get(answers[i].job_id)).args == {"i": i}


async def test_ids_of_a_batch_rise_so_that_equal_jobs_keep_their_order(store: Store) -> None:
    ids = [answer.job_id for answer in await store.submit(some_jobs(50))]
    assert ids == sorted(set(ids))


async def test_nothing_is_a_batch_too(store: Store) -> None:
    assert await store.submit([]) == []


async def test_a_batch_may_be_large(store: Store) -> None:
    answers = await store.submit(some_jobs(10_000))
    assert len({answer.job_id for answer in answers}) == 10_000


async def test_a_job_submitted_by_one_process_is_seen_by_another(
    backend: Backend, store: Store, worker: Worker
) -> None:
    other = await backend.open()
    job_id = await submit(other)
    assert in_order(await claim(store, worker)) == [job_id]


@pytest.mark.parametrize("place", [0, 3, 6])
async def test_one_bad_spec_refuses_the_batch_and_says_where(store: Store, place: int) -> None:
    specs = some_jobs(7)
    specs[place] = a_job(queue="")
    with pytest.raises(Invalid) as refusal:
        await store.submit(specs)
    assert refusal.value.field == f"specs[{place}].queue"
    assert await everything(store) == []


async def test_a_reused_key_refuses_the_batch(store: Store) -> None:
    first = await submit(store, idempotency_key="k", args={"n": 1})
    with pytest.raises(KeyReused):
        await store.submit([a_job(), a_job(idempotency_key="k", args={"n": 2}), a_job()])
    assert [job.id for job in await everything(store)] == [first]


async def test_a_taken_unique_key_refuses_the_batch(store: Store) -> None:
    first = await submit(store, unique_key="u")
    with pytest.raises(AlreadyActive):
        await store.submit([a_job(), a_job(idempotency_key="k"), a_job(unique_key="u")])
    assert [job.id for job in await everything(store)] == [first]
    assert (await store.submit([a_job(idempotency_key="k")]))[0].created, "its key was not used up"


@pytest.mark.native("what ails its database a server tells nobody")
async def test_a_database_that_fails_in_the_middle_leaves_nothing(backend: Backend, store: Store) -> None:
    await backend.refuse_jobs_with_label("unwanted")
    specs = some_jobs(20)
    specs[13] = a_job(labels={"is": "unwanted"}, idempotency_key="k")
    with pytest.raises(Exception, match=r"refused by the test|full|room"):
        await store.submit(specs)
    assert await everything(store) == []
    assert (await store.submit([a_job(idempotency_key="k")]))[0].created


async def test_a_batch_with_keys_of_every_sort(store: Store) -> None:
    """Each spec is answered for itself, also when it refers to another one of the same batch."""
    known = await submit(store, idempotency_key="old")
    active = await submit(store, unique_key="busy")
    answers = await store.submit(
        [
            a_job(),
            a_job(idempotency_key="old"),
            a_job(unique_key="busy", unique="keep"),
            a_job(idempotency_key="new"),
            a_job(idempotency_key="new"),
            a_job(unique_key="own"),
            a_job(unique_key="own", unique="keep"),
        ]
    )
    assert answers[1] == Submitted(known, created=False)
    assert answers[2] == Submitted(active, created=False)
    assert answers[4] == Submitted(answers[3].job_id, created=False)
    assert answers[6] == Submitted(answers[5].job_id, created=False)
    assert [answer.created for answer in answers] == [True, False, False, True, False, True, False]
    assert len(await everything(store)) == 5


async def test_a_delayed_job_is_queued_from_the_start(backend: Backend, store: Store, worker: Worker) -> None:
    """Nothing promotes it: it needs no second write to become due."""
    job_id = await submit(store, delay=10 * SECOND)
    before = await store.get(job_id)
    assert before.state is State.QUEUED
    await backend.clock.advance(10 * SECOND)
    assert await store.get(job_id) == before
    assert in_order(await claim(store, worker)) == [job_id]
