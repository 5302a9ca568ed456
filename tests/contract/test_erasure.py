"""Erasure: nothing of what a job was about is left, and that there was such a job stays."""

import asyncio
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tests.builders import a_job, needing
from tests.contract.backends import START, Backend
from tests.contract.steps import claim, settle, start, stores_on, submit
from tidewheel.errors import NotFinished, NotFound
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.audit import AuditFilter
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.job import Options, Run
from tidewheel.model.log import LogLine
from tidewheel.model.note import RunNote
from tidewheel.model.notification import Answer, Event, SubscriptionSpec
from tidewheel.model.outcome import Failure, own_location
from tidewheel.model.states import Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

ROOT = Actor(role=Role.ADMIN, name="root")
ADA = Actor(role=Role.ADMIN, tenant="ada", name="ada's admin")
PERSON = "Grace Hopper"
FIELDS: dict[str, Any] = {
    "args": {"name": PERSON},
    "labels": {"who": PERSON},
    "options": Options(name=PERSON, description=f"mail for {PERSON}"),
    "limit_keys": (PERSON,),
    "unique_key": PERSON,
    "idempotency_key": PERSON,
}


async def speak(store: Store, worker: Worker, run: Run) -> None:
    line = LogLine(run.job_id, run.token, 1, START, "stdout", None, f"hello {PERSON}")
    await store.append_logs([line])
    note = RunNote(job_id=run.job_id, token=run.token, progress=0.5, message=PERSON, checkpoint=f'{{"at":"{PERSON}"}}')
    await store.note(worker.id, [note])


async def a_dead_one(store: Store, worker: Worker) -> Run:
    """Fail once and then for good, speaking of a person at every occasion."""
    error = Failure(reason="error", message=f"{PERSON} is away", detail=f"Traceback {PERSON}", exit_code=3)
    run = await start(store, worker, **FIELDS)
    await speak(store, worker, run)
    await settle(store, worker, run, Cause.FAILED, error=error)
    (again,) = await claim(store, worker)
    await speak(store, worker, again)
    await settle(store, worker, again, Cause.GAVE_UP, error=error)
    return again


async def test_nothing_of_it_is_left_but_that_there_was_such_a_job(store: Store, worker: Worker) -> None:
    run = await a_dead_one(store, worker)
    before = await store.get(run.job_id)
    assert PERSON in repr((before, await store.attempts(run.job_id), await store.logs(run.job_id)))

    left = await store.erase(run.job_id, by=ROOT)

    assert left == await store.get(run.job_id)
    told = (left, await store.attempts(run.job_id), await store.logs(run.job_id), await store.find(JobFilter()))
    assert PERSON not in repr(told)
    assert await store.checkpoint_of(run.job_id) is None
    assert (left.id, left.kind, left.state, left.erased_at) == (before.id, before.kind, State.DEAD, START)
    assert (left.args, left.labels, left.result, left.error) == ({}, {}, None, Failure(reason="error"))
    for name in ("tenant", "queue", "created_at", "finished_at", "due_at", "token", "failures", "last_worker"):
        assert getattr(left, name) == getattr(before, name)
    assert [attempt.error for attempt in await store.attempts(run.job_id)] == [Failure(reason="error")] * 2


async def test_a_result_goes_too_and_its_state_stays(store: Store, worker: Worker) -> None:
    run = await start(store, worker, **FIELDS)
    await settle(store, worker, run, result=f'"{PERSON}"')
    left = await store.erase(run.job_id, by=ROOT)
    assert (left.state, left.result, left.error) == (State.SUCCEEDED, None, None)
    located = await start(store, worker)
    location = own_location(located.job_id, located.token)
    await settle(store, worker, located, result=None, result_location=location)
    assert (await store.erase(located.job_id, by=ROOT)).result_location is None


async def test_messages_about_it_go_whether_they_were_sent_wait_or_are_not_made_yet(
    store: Store, worker: Worker
) -> None:
    await store.add_channel(ChannelSpec(name="hook", address="https://example.org"))
    await store.subscribe(SubscriptionSpec(channel="hook", events=frozenset(Event), text="$error"))
    run, other = await a_dead_one(store, worker), await start(store, worker)
    await store.spread_happenings()
    failed, dead = await store.take_deliveries()
    await store.close_delivery(failed, Answer(accepted=True, told=f"thanks, {PERSON}"))
    await store.redrive([run.job_id])
    (again,) = await claim(store, worker)
    await settle(store, worker, again, Cause.GAVE_UP, error=Failure(reason="error", message=PERSON))
    await settle(store, worker, other)
    assert PERSON in repr(await store.deliveries())

    await store.erase(run.job_id, by=ROOT)

    await store.spread_happenings()
    assert [delivery.event for delivery in await store.deliveries()] == [Event.SUCCEEDED]
    assert not await store.close_delivery(dead, Answer(accepted=True, told=""))


@pytest.mark.native("the server writes down whose key it was")
async def test_an_erasure_is_written_down_without_what_was_erased(store: Store, worker: Worker) -> None:
    run = await a_dead_one(store, worker)
    await store.erase(run.job_id, by=ROOT)
    (entry,) = (await store.audited(AuditFilter(tenant="default"))).entries
    assert (entry.action, entry.subject, entry.actor) == (Action.JOBS_ERASE, str(run.job_id), "root")
    assert PERSON not in repr(entry)


async def test_what_has_not_ended_is_not_erased(store: Store, worker: Worker) -> None:
    run = await start(store, worker, args={"n": 1})
    waiting = await submit(store, delay=None, args={"n": 1}, needs=needing(zone="nowhere"))
    parent = await submit(store, "parent", needs=needing(zone="nowhere"))
    (blocked,) = await store.submit([a_job(after=(parent,), args={"n": 1})])
    for job_id, state in ((run.job_id, "running"), (waiting, "queued"), (blocked.job_id, "blocked")):
        with pytest.raises(NotFinished) as refused:
            await store.erase(job_id, by=ROOT)
        assert (refused.value.job_id, refused.value.state) == (job_id, state)
        assert (await store.get(job_id)).args == {"n": 1}
    assert (await store.audited(AuditFilter())).entries == []
    await store.cancel(waiting)
    assert (await store.erase(waiting, by=ROOT)).state is State.CANCELLED


async def test_what_was_erased_cannot_run_again(store: Store, worker: Worker) -> None:
    run = await a_dead_one(store, worker)
    await store.erase(run.job_id, by=ROOT)
    assert await store.redrive([run.job_id]) == []
    assert await claim(store, worker) == []


async def test_erasing_again_removes_what_came_late(backend: Backend, worker: Worker) -> None:
    here, there = await stores_on(backend, 2)
    run = await a_dead_one(here, worker)
    await here.erase(run.job_id, by=ROOT)
    await there.append_logs([LogLine(run.job_id, run.token, 2, START, "stdout", None, PERSON)])
    await there.erase(run.job_id, by=ROOT)
    assert await here.logs(run.job_id) == []


async def test_a_job_of_another_tenant_is_not_there_to_be_erased(store: Store, worker: Worker) -> None:
    run = await a_dead_one(store, worker)
    with pytest.raises(NotFound):
        await store.erase(run.job_id, by=ADA)
    with pytest.raises(NotFound):
        await store.erase(uuid4(), by=ROOT)
    assert (await store.get(run.job_id)).args == {"name": PERSON}
    own = await start(store, worker, tenant="ada")
    await settle(store, worker, own)
    assert msgspec.structs.asdict(await store.erase(own.job_id, by=ADA))["erased_at"] == START


async def test_an_erasure_and_a_redrive_at_once_leave_one_of_the_two(backend: Backend, worker: Worker) -> None:
    here, there = await stores_on(backend, 2)
    for _ in range(20):
        run = await start(here, worker, args={"n": 1})
        await settle(here, worker, run, Cause.GAVE_UP)
        erased, sent = await asyncio.gather(
            here.erase(run.job_id, by=ROOT), there.redrive([run.job_id]), return_exceptions=True
        )
        job = await here.get(run.job_id)
        if sent:
            assert isinstance(erased, NotFinished)
            assert (job.state, job.args) == (State.QUEUED, {"n": 1})
            await here.cancel(run.job_id)
        else:
            assert (job.state, job.args, job.erased_at) == (State.DEAD, {}, START)
