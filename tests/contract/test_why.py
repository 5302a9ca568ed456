"""Why a job does not run: every reason, by itself and together with others."""

from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID, uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_worker, needing, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, settle, start, submit
from tidewheel.errors import NotFound
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Offer
from tidewheel.model.states import Cause, State
from tidewheel.model.why import (
    AfterFirstAttempts,
    BacksOff,
    BehindGate,
    Ended,
    FullLimit,
    InLine,
    MissingParents,
    NotDue,
    NoWorker,
    Reason,
    Runs,
)
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

R = TypeVar("R")


async def reasons(store: Store, job_id: UUID) -> list[Reason]:
    return (await store.why(job_id)).reasons


async def the_reason(store: Store, job_id: UUID, kind: type[R]) -> R:
    """Return the one reason there is, which must be of this kind."""
    (reason,) = await reasons(store, job_id)
    assert isinstance(reason, kind), reason
    return reason


# It runs, or has ended


async def test_a_running_job_says_where_and_since_when(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    reason = await the_reason(store, run.job_id, Runs)
    assert (reason.worker_id, reason.since, reason.cancelling) == (worker.id, backend.clock.now(), False)
    assert reason.sentence.startswith(f"It runs on worker {worker.id} since 2030-01-01T12:00:00")
    await store.cancel(run.job_id)
    reason = await the_reason(store, run.job_id, Runs)
    assert reason.cancelling
    assert "is being cancelled" in reason.sentence


async def test_an_ended_job_says_how_it_ended(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.GAVE_UP)
    reason = await the_reason(store, run.job_id, Ended)
    assert (reason.state, reason.finished_at) == (State.DEAD, backend.clock.now())
    assert reason.sentence == "It ended at 2030-01-01T12:00:00+00:00 as dead: it broke."


async def test_an_unknown_job_is_not_explained(store: Store) -> None:
    job_id = await submit(store, tenant="a")
    await store.why(job_id, tenant="a")
    with pytest.raises(NotFound):
        await store.why(job_id, tenant="b")
    with pytest.raises(NotFound):
        await store.why(uuid4())


async def test_an_operator_of_all_hears_of_the_job_of_any_tenant(store: Store) -> None:
    job_id = await submit(store, tenant="a")
    assert (await store.why(job_id)).state is State.QUEUED


# Gates


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ({"mode": GateMode.HOLD, "kind": "echo"}, "on kind echo holds it: upgrade (by ann)."),
        ({"mode": GateMode.DROP, "tenant": "default"}, "on tenant default is about to drop it: upgrade (by ann)."),
        (
            {"mode": GateMode.HOLD, "kind": "echo", "queue": "default", "lasts": HOUR},
            "on kind echo and queue default holds it until 2030-01-01T13:00:00+00:00: upgrade (by ann).",
        ),
    ],
)
@pytest.mark.usefixtures("worker")
async def test_a_gate_is_named_with_its_author_and_reason(store: Store, spec: dict[str, Any], sentence: str) -> None:
    job_id = await submit(store)
    gate = await store.close_gate(GateSpec(**spec, reason="upgrade", author="ann"))
    reason = await the_reason(store, job_id, BehindGate)
    assert reason.gate == gate
    assert reason.sentence == f"Gate {gate.id} {sentence}"


@pytest.mark.usefixtures("worker")
async def test_behind_a_slow_gate_a_job_also_stands_in_line(store: Store) -> None:
    await store.submit(some_jobs(3))
    job_id = await submit(store)
    gate = await store.close_gate(GateSpec(mode=GateMode.SLOW, kind="echo", rate=2))
    slow, line = await reasons(store, job_id)
    assert isinstance(slow, BehindGate)
    assert isinstance(line, InLine)
    assert slow.sentence.startswith(f"Gate {gate.id} on kind echo lets 2 jobs a second through")
    assert line.ahead == 3


# Limits


async def test_a_full_limit_is_named_with_those_who_hold_it(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 2)
    await store.set_limit("m", 5)
    await store.submit(some_jobs(2, limit_keys=("l",)))
    holders = {run.job_id for run in await claim(store, worker)}
    queued = await submit(store, limit_keys=("l", "m"))
    for _ in range(2):  # before a claim has refused it, and after
        reason = await the_reason(store, queued, FullLimit)
        assert (reason.limit.key, reason.limit.most, reason.limit.running) == ("l", 2, 2)
        assert set(reason.limit.holders) == holders
        assert reason.limit.refill_at is None
        assert reason.sentence.startswith("Limit l is full: 2 of 2 run, ")
        assert await claim(store, worker) == []
    second = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    assert (await the_reason(store, second, FullLimit)).ahead == 1


async def test_no_more_than_some_of_the_holders_are_named(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 30)
    await store.submit(some_jobs(30, limit_keys=("l",)))
    assert len(await claim(store, worker, 30)) == 30
    reason = await the_reason(store, await submit(store, limit_keys=("l",)), FullLimit)
    assert (reason.limit.running, len(reason.limit.holders)) == (30, 10)
    assert "among others" in reason.sentence


async def test_another_tenant_s_limit_of_the_same_name_is_not_meant(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1, tenant="a")
    await start(store, worker, tenant="a", limit_keys=("l",))
    assert isinstance((await reasons(store, await submit(store, tenant="b", limit_keys=("l",))))[0], InLine)


# Parents


@pytest.mark.usefixtures("worker")
async def test_missing_parents_are_named_with_their_states(store: Store, worker: Worker) -> None:
    done = await start(store, worker, "done")
    running = await start(store, worker, "running")
    waiting = await submit(store, "waiting", delay=HOUR)
    child = await submit(store, after=(done.job_id, running.job_id, waiting))
    await finish(store, worker, [done])
    reason = await the_reason(store, child, MissingParents)
    assert reason.missing == 2
    assert [(parent.job_id, parent.state) for parent in reason.parents] == [
        (running.job_id, State.RUNNING),
        (waiting, State.QUEUED),
    ]
    assert reason.sentence == f"It waits for 2 other jobs: {running.job_id} (running), {waiting} (queued)."


async def test_of_many_parents_the_first_are_named(store: Store, worker: Worker) -> None:
    parents = [answer.job_id for answer in await store.submit(some_jobs(25))]
    child = await submit(store, "child", after=tuple(parents))
    await finish(store, worker, await claim(store, worker, 5))
    reason = await the_reason(store, child, MissingParents)
    assert (reason.missing, [parent.job_id for parent in reason.parents]) == (20, parents[5:15])
    assert " and 10 more." in reason.sentence


async def test_a_parent_that_failed_and_is_waited_for_is_to_be_redriven(store: Store, worker: Worker) -> None:
    parent = await start(store, worker)
    child = await submit(store, after=(parent.job_id,), on_parent_failure="hold")
    await settle(store, worker, parent, Cause.GAVE_UP)
    reason = await the_reason(store, child, MissingParents)
    assert [(one.job_id, one.state) for one in reason.parents] == [(parent.job_id, State.DEAD)]
    assert "redriven" in reason.sentence


# Workers


@pytest.mark.parametrize(
    ("lacks", "workers", "sentence"),
    [
        ("worker", [], "No worker is alive."),
        ("queue", [{"queues": ("other",)}], "No living worker serves queue default."),
        ("kind", [{"kinds": ("mail",)}, {"queues": ("other",)}], "No worker of queue default knows kind echo."),
        (
            "labels",
            [{"offer": Offer(resources={"gpu": 9})}, {"offer": Offer(labels={"zone": "b"})}],
            "No worker that could run it has the labels zone=a.",
        ),
        (
            "resources",
            [{"offer": Offer(labels={"zone": "a"}, resources={"gpu": 1})}, {"offer": Offer(resources={"gpu": 9})}],
            "No worker that could run it has the resources gpu=2.",
        ),
    ],
)
async def test_it_is_told_apart_what_no_worker_has(
    store: Store, lacks: str, workers: list[dict[str, Any]], sentence: str
) -> None:
    for fields in workers:
        await store.register(a_worker(**fields))
    job_id = await submit(store, needs=needing({"gpu": 2}, zone="a"))
    reason = await the_reason(store, job_id, NoWorker)
    assert (reason.lacks, reason.sentence) == (lacks, sentence)
    await store.register(a_worker(offer=Offer(labels={"zone": "a"}, resources={"gpu": 2})))
    assert isinstance((await reasons(store, job_id))[0], InLine)


async def test_a_worker_whose_lease_has_passed_does_not_count(backend: Backend, store: Store) -> None:
    worker = await store.register(a_worker(ttl=10 * SECOND))
    job_id = await submit(store)
    assert isinstance((await reasons(store, job_id))[0], InLine)
    await backend.clock.advance(11 * SECOND)
    assert (await the_reason(store, job_id, NoWorker)).lacks == "worker"
    await store.beat([worker.id])
    assert isinstance((await reasons(store, job_id))[0], InLine)
    await store.deregister(worker.id)
    assert (await the_reason(store, job_id, NoWorker)).lacks == "worker"


# Time


@pytest.mark.usefixtures("worker")
async def test_a_job_of_the_future_says_when_it_is_due(backend: Backend, store: Store) -> None:
    reason = await the_reason(store, await submit(store, delay=HOUR), NotDue)
    assert reason.until == backend.clock.now() + HOUR
    assert reason.sentence == "It may not start before 2030-01-01T13:00:00+00:00."


async def test_a_job_that_failed_says_when_it_is_tried_again(backend: Backend, store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.FAILED, delay=MINUTE)
    reason = await the_reason(store, run.job_id, BacksOff)
    assert (reason.until, reason.failures) == (backend.clock.now() + MINUTE, 1)
    assert reason.sentence == "It failed 1 time and is tried again at 2030-01-01T12:01:00+00:00."


async def test_a_job_that_asked_for_a_later_time_did_not_fail(store: Store, worker: Worker) -> None:
    run = await start(store, worker)
    await settle(store, worker, run, Cause.SNOOZED, delay=MINUTE)
    await the_reason(store, run.job_id, NotDue)


# Its place


@pytest.mark.usefixtures("worker")
async def test_a_job_knows_how_many_go_before_it(backend: Backend, store: Store) -> None:
    """Those of its tenant in its queue that are due, in the order of claims."""
    await store.submit(some_jobs(4, "older"))
    await store.submit(some_jobs(8, "later", priority=Priority.HIGH, delay=HOUR))
    await store.submit(some_jobs(16, queue="other"))
    await store.submit(some_jobs(32, tenant="other"))
    await store.submit(some_jobs(64, priority=Priority.LOW))
    await backend.clock.advance(SECOND)
    job_id = await submit(store)
    await backend.clock.advance(SECOND)
    await store.submit(some_jobs(2, "urgent", priority=Priority.HIGH))
    await store.submit(some_jobs(128, "younger"))
    reason = await the_reason(store, job_id, InLine)
    assert (reason.ahead, reason.starts_at) == (6, None)
    assert reason.sentence == "6 jobs of its tenant in queue default go first."


@pytest.mark.usefixtures("worker")
async def test_of_very_many_not_all_are_counted(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over all lanes together, so that the answer comes as soon with a thousand of them."""
    for module in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tidewheel.store.{module}.explaining.COUNTED", 7)
    for number in range(4):
        await store.submit(some_jobs(5, f"k{number}"))
    assert (await store.explain(await submit(store))).place.ahead == 7


async def test_who_is_served_by_others_does_not_stand_before_it(store: Store) -> None:
    await store.register(a_worker(kinds=("mail",)))
    await store.register(a_worker(kinds=("report",)))
    await store.submit(some_jobs(5, "report"))
    await store.submit(some_jobs(3, "mail"))
    reason = await the_reason(store, await submit(store, "mail"), InLine)
    assert reason.ahead == 3


@pytest.mark.usefixtures("worker")
async def test_who_is_held_does_not_stand_before_it(store: Store) -> None:
    await store.submit(some_jobs(5, "held"))
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="held"))
    reason = await the_reason(store, await submit(store), InLine)
    assert reason.ahead == 0
    assert reason.sentence == "It is the next of its tenant, as soon as a worker has room."


async def test_its_start_is_estimated_by_how_fast_others_ended(backend: Backend, store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(70))
    job_id = await submit(store)
    await finish(store, worker, await claim(store, worker, 10))
    await store.take_census()
    assert (await the_reason(store, job_id, InLine)).starts_at is None
    await backend.clock.advance(10 * SECOND)
    await finish(store, worker, await claim(store, worker, 20))
    await store.take_census()
    reason = await the_reason(store, job_id, InLine)
    assert reason.ahead == 40
    assert reason.starts_at == backend.clock.now() + timedelta(seconds=20.5)  # two a second
    assert reason.sentence.endswith("go first; it may start about 2030-01-01T12:00:30+00:00.")
    await backend.clock.advance(2 * MINUTE)
    assert (await the_reason(store, job_id, InLine)).starts_at is None, "what was so then tells nothing of now"


async def test_a_retry_says_that_first_attempts_go_first_and_with_which_share(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.submit(some_jobs(3, "calls"))
    failed = await claim(store, worker, 3)
    await settle(store, worker, failed[0], Cause.FAILED)
    await settle(store, worker, failed[1], Cause.CRASHED)
    await settle(store, worker, failed[2], Cause.SNOOZED)
    await backend.clock.advance(MINUTE)
    jobs = [await store.get(run.job_id) for run in failed]
    line = [job.id for job in sorted(jobs[:2], key=lambda job: (job.run_at, job.id))]
    assert isinstance((await reasons(store, line[0]))[0], AfterFirstAttempts), (
        "a first attempt that snoozed is one still"
    )
    await store.submit(some_jobs(30, "fresh", priority=Priority.LOW))
    await store.submit(some_jobs(10, "fresh", tenant="other"))
    await store.submit(some_jobs(10, "fresh", queue="other"))
    reason = await the_reason(store, line[1], AfterFirstAttempts)
    assert (reason.first_attempts, reason.share, reason.ahead, reason.starts_at) == (41, 0.2, 1, None)
    assert reason.sentence == (
        "It failed before: 41 first attempts wait in queue default, and retries get at most 20% of its starts "
        "meanwhile, and 1 retry of its tenant goes before this one."
    )
    assert isinstance((await reasons(store, jobs[2].id))[0], InLine)


# Together


async def test_all_reasons_are_told_at_once(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    needs = needing({"gpu": 1})
    child = await submit(store, needs=needs, limit_keys=("l",), after=(run.job_id,), delay=HOUR)
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="echo"))
    await store.close_gate(GateSpec(mode=GateMode.SLOW, queue="default", rate=1))
    kinds = [type(reason) for reason in await reasons(store, child)]
    assert kinds == [BehindGate, BehindGate, MissingParents, FullLimit, NotDue, NoWorker]


async def test_asking_takes_nothing(store: Store, worker: Worker) -> None:
    job_id = await submit(store)
    before = await store.get(job_id)
    await store.explain(job_id)
    assert await store.get(job_id) == before
    assert [run.job_id for run in (await store.claim(a_claim(worker.id))).runs] == [job_id]
