"""Ids that are given, rings, results as arguments, and what readers and keepers see of dependencies."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from tests.builders import DAY, HOUR, a_job
from tests.contract.backends import Backend
from tests.contract.family import a_child, an_id, child_of, end, states
from tests.contract.steps import claim, everything, in_order, settle, start, state_of, submit
from tidewheel.errors import IdTaken, Invalid, NotFound
from tidewheel.model.dependency import Relative
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.ids import make_id
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store

S = State


# Ids that are given


async def test_jobs_of_one_batch_may_wait_for_one_another_in_any_order(
    backend: Backend, store: Store, worker: Worker
) -> None:
    ids = [an_id(backend) for _ in range(4)]
    fetch, left, right, merge = ids
    answers = await store.submit(
        [
            a_child(left, right, id=merge),
            a_child(fetch, id=left),
            a_child(fetch, id=right),
            a_job(id=fetch),
            a_child(merge),
        ]
    )
    assert [answer.job_id for answer in answers[:4]] == [merge, left, right, fetch]
    assert all(answer.created for answer in answers)
    for step in ([fetch], [left, right], [merge], [answers[4].job_id]):
        await end(store, worker, *step)
    assert [job.state for job in await everything(store)] == [S.SUCCEEDED] * 5


async def test_a_batch_below_a_failed_job_is_skipped_whole(backend: Backend, store: Store) -> None:
    failed = await submit(store)
    await store.cancel(failed)
    first, second = an_id(backend), an_id(backend)
    await store.submit([a_child(failed, id=first), a_child(first, id=second), a_child(second, on_parent_failure="run")])
    assert await states(store, [first, second]) == [S.SKIPPED, S.SKIPPED]
    assert len(await everything(store, JobFilter(states=frozenset({S.QUEUED})))) == 1


async def test_an_id_that_is_taken_is_a_conflict(backend: Backend, store: Store, worker: Worker) -> None:
    active, ended = an_id(backend), an_id(backend)
    await store.submit([a_job(id=active, delay=HOUR), a_job(id=ended)])
    await end(store, worker, ended)
    for taken in (active, ended):
        with pytest.raises(IdTaken, match=str(taken)):
            await store.submit([a_job(), a_job(id=taken)])
    assert len(await everything(store)) == 2


async def test_the_same_request_with_the_same_id_and_key_is_answered_with_the_same_job(
    backend: Backend, store: Store
) -> None:
    parent, job_id = await submit(store), an_id(backend)
    spec = a_child(parent, id=job_id, idempotency_key="k")
    answers = [(await store.submit([spec]))[0] for _ in range(2)]
    assert [(answer.job_id, answer.created) for answer in answers] == [(job_id, True), (job_id, False)]
    assert len(await store.children_of(parent)) == 1


async def test_ids_that_are_not_like_ours_are_refused(backend: Backend, store: Store) -> None:
    now = int(backend.clock.now().timestamp() * 1000)
    day = 24 * 3600 * 1000
    for bad in (uuid4(), UUID(int=5), make_id(now + day, 1), make_id(now - day, 1), "no id"):
        with pytest.raises(Invalid) as refusal:
            await store.submit([a_job(), a_job(id=bad)])
        assert refusal.value.field == "specs[1].id"
    twice = an_id(backend)
    with pytest.raises(Invalid, match="given twice"):
        await store.submit([a_job(id=twice), a_job(id=twice)])
    assert await everything(store) == []


async def test_rings_are_refused_and_named(backend: Backend, store: Store) -> None:
    a, b, c, d = (an_id(backend) for _ in range(4))
    with pytest.raises(Invalid) as refusal:
        await store.submit([a_job(id=d), a_child(c, d, id=a), a_child(a, id=b), a_child(b, id=c), a_child(a)])
    assert refusal.value.field == "specs[1].after"
    for job in (a, b, c):
        assert str(job) in refusal.value.why
    assert str(d) not in refusal.value.why
    with pytest.raises(Invalid, match="wait for one another"):
        await store.submit([a_child(a, id=a)])
    assert await everything(store) == []


async def test_a_job_of_the_batch_that_was_not_made_is_no_parent(backend: Backend, store: Store) -> None:
    """Its unique key was taken, and so another job stands for it."""
    await submit(store, unique_key="u")
    kept = an_id(backend)
    with pytest.raises(Invalid) as refusal:
        await store.submit([a_job(id=kept, unique_key="u", unique="keep"), a_child(kept)])
    assert (refusal.value.field, refusal.value.why) == ("specs[1].after", f"no job {kept}")
    assert len(await everything(store)) == 1


async def test_a_parent_that_is_replaced_within_its_batch_is_told_of(backend: Backend, store: Store) -> None:
    first, child = an_id(backend), an_id(backend)
    specs = [
        a_job(id=first, unique_key="u"),
        a_child(first, id=child),
        a_job("new", unique_key="u", unique="replace"),
    ]
    await store.submit(specs)
    assert await states(store, [first, child]) == [S.CANCELLED, S.SKIPPED]


@pytest.mark.native("what ails its database a server tells nobody")
async def test_a_batch_with_a_bad_spec_leaves_no_trace_of_its_dependencies(backend: Backend, store: Store) -> None:
    parent = await submit(store)
    await backend.refuse_jobs_with_label("poison")
    with pytest.raises(Exception, match=r"refused by the test|full|room"):
        await store.submit([a_child(parent), a_child(parent, labels={"poison": "x"})])
    assert await store.children_of(parent) == []


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"after": ("x",)}, "after"),
        ({"after": "x"}, "after"),
        ({"after": (UUID(int=1), UUID(int=1))}, "after"),
        ({"after": tuple(map(UUID, map("{:032x}".format, range(100_001))))}, "after"),
        ({"on_parent_failure": "retry"}, "on_parent_failure"),
        ({"args": {"x": {"$result_of": str(UUID(int=1))}}}, "args"),
    ],
)
async def test_what_cannot_be_a_dependency_is_refused(store: Store, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.submit([a_job(**fields)])
    assert refusal.value.field == field


async def test_a_result_that_stands_in_arguments_must_be_that_of_a_parent(store: Store, worker: Worker) -> None:
    parent, other = await submit(store), await submit(store, delay=HOUR)
    args = {"n": 1, "of": [{"$result_of": str(parent)}]}
    child = await child_of(store, parent, args=args)
    with pytest.raises(Invalid, match=f"result of job {parent}, which is not in after"):
        await child_of(store, other, args=args)
    await end(store, worker, parent)
    (run,) = await claim(store, worker)
    assert run.job_id == child
    assert f'"$result_of":"{parent}"' in run.args, "the worker fills it in"


# Readers


async def test_parents_and_children_are_shown_page_by_page(store: Store, worker: Worker) -> None:
    done = await start(store, worker, "first")
    await settle(store, worker, done)
    parents = [done.job_id, *[await submit(store) for _ in range(4)]]
    child = await child_of(store, *parents)
    first = await store.parents_of(child, limit=3)
    rest = await store.parents_of(child, limit=3, after=first[-1].job_id)
    assert [relative.job_id for relative in (*first, *rest)] == parents
    assert first[0] == Relative(done.job_id, "first", S.SUCCEEDED)
    assert first[1] == Relative(parents[1], "echo", S.QUEUED)
    assert await store.children_of(parents[1]) == [Relative(child, "child", S.BLOCKED)]
    await store.cancel(parents[1])
    assert await store.children_of(parents[1]) == [Relative(child, "child", S.SKIPPED)]
    assert await store.children_of(child) == []


async def test_relatives_are_shown_to_their_tenant_alone(store: Store) -> None:
    parent = await submit(store, tenant="us")
    child = await child_of(store, parent, tenant="us")
    assert [r.job_id for r in await store.children_of(parent, tenant="us")] == [child]
    for look in (store.parents_of, store.children_of):
        with pytest.raises(NotFound):
            await look(parent, tenant="them")
        with pytest.raises(NotFound):
            await look(uuid4())
        for limit in (0, 1001):
            with pytest.raises(Invalid, match="limit"):
                await look(parent, limit=limit)


async def test_blocked_jobs_are_found_and_counted(store: Store) -> None:
    parent = await submit(store)
    children = [await child_of(store, parent) for _ in range(3)]
    found = await everything(store, JobFilter(states=frozenset({S.BLOCKED})))
    assert sorted(job.id for job in found) == children
    await store.take_census()
    counted = {(row.kind, row.state): row.jobs for row in (await store.counts()).rows}
    assert counted == {("echo", S.QUEUED): 1, ("child", S.BLOCKED): 3}


async def test_a_drop_gate_also_drops_what_is_blocked(store: Store) -> None:
    parent = await submit(store, delay=HOUR)
    children = [await child_of(store, parent, kind="gated") for _ in range(3)]
    below = await child_of(store, children[0])
    await store.close_gate(GateSpec(mode=GateMode.DROP, kind="gated"))
    assert await store.drop_gated() == 3
    assert await states(store, [*children, below]) == [*[S.DROPPED] * 3, S.SKIPPED]


async def test_edges_go_with_the_record_of_the_child(backend: Backend, store: Store, worker: Worker) -> None:
    parent = await submit(store)
    gone, kept = await child_of(store, parent), await child_of(store, parent, delay=50 * DAY)
    await end(store, worker, parent)
    await end(store, worker, gone)
    for _ in range(3):
        await backend.clock.advance(DAY)
        await store.prepare_days()
    again = await backend.open()  # its clock is read when it is opened
    await again.retire(dict.fromkeys(FINAL, DAY))
    assert [job.id for job in await everything(store)] == [kept]
    shown = await store.get(kept)
    assert shown.after == (parent,)
    assert await store.parents_of(kept) == [Relative(parent, None, None)]
    assert await backend.edges() == [(parent, kept)]


async def test_a_held_child_of_a_parent_that_was_removed_can_still_be_cancelled(backend: Backend, store: Store) -> None:
    parent = await submit(store)
    await store.cancel(parent)
    child = await child_of(store, parent, on_parent_failure="hold")
    await backend.clock.advance(3 * DAY)
    await store.prepare_days()
    await store.retire(dict.fromkeys(FINAL, DAY))
    assert await store.recheck_blocked() == 0
    assert (await store.cancel(child)).state is S.CANCELLED


# The duties


@pytest.mark.parametrize(("policy", "state"), [("skip", S.SKIPPED), ("run", S.QUEUED), ("hold", S.BLOCKED)])
async def test_a_blocked_job_that_was_forgotten_is_found(
    backend: Backend, store: Store, policy: str, state: State
) -> None:
    """As after a bug, or a restore of half of the tables."""
    parent = await submit(store)
    child = await child_of(store, parent, on_parent_failure=policy)
    await backend.forget_children(parent)
    await store.cancel(parent)
    assert await state_of(store, child) is S.BLOCKED
    assert await store.recheck_blocked() == (state is not S.BLOCKED)
    assert await state_of(store, child) is state


async def test_a_wrong_counter_is_mended(backend: Backend, store: Store, worker: Worker) -> None:
    parents = [await submit(store) for _ in range(2)]
    child = await child_of(store, *parents)
    await backend.spoil_waits(child, 7)
    assert await store.recheck_blocked() == 1
    assert (await store.get(child)).waiting_for == 2
    await end(store, worker, *parents)
    assert in_order(await claim(store, worker)) == [child]


async def test_the_recheck_comes_round_to_every_blocked_job(backend: Backend, store: Store) -> None:
    parents = [await submit(store) for _ in range(7)]
    children = [await child_of(store, parent, kind=f"k{i % 3}", priority=i % 2) for i, parent in enumerate(parents)]
    for parent in parents[::2]:
        await backend.forget_children(parent)
        await store.cancel(parent)
    found = [await store.recheck_blocked(limit=2) for _ in range(5)]
    assert sum(found) == 4
    expected = [S.BLOCKED if i % 2 else S.SKIPPED for i in range(7)]
    assert await states(store, children) == expected


async def test_a_redrive_does_not_overtake_what_the_children_are_still_being_told(store: Store, worker: Worker) -> None:
    """Children that come after the redrive must not hear of the end before it."""
    parent = await submit(store)
    await store.submit([a_child(parent)] * 2_500)
    await end(store, worker, parent, cause=Cause.GAVE_UP)
    assert await store.redrive([parent]) == [parent]
    late = await child_of(store, parent)
    assert await store.unblock() == 0
    assert await state_of(store, late) is S.BLOCKED
    found = await everything(store, JobFilter(states=frozenset({S.SKIPPED})))
    assert len(found) == 2_500
    await end(store, worker, parent)
    assert await state_of(store, late) is S.QUEUED
