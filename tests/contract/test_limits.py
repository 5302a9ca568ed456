"""Limits: decided in the claim, all keys or none, and given back at every kind of end."""

from typing import Any
from uuid import UUID

import pytest

from tests.builders import MINUTE, NOT_RETURNED, SECOND, a_job, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, in_order, settle, start, state_of, submit
from tidewheel.errors import Invalid, NotFound, StaleVersion
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.outcome import Verdict
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause, State
from tidewheel.model.version import limit_version
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


async def _running(store: Store, key: str = "l") -> int:
    return next(limit.running for limit in await store.limits() if limit.key == key)


async def _claim_all(store: Store, worker: Worker) -> list[str]:
    """Claim until nothing more comes; a claim may come back short when limits refused what it meant to take."""
    got = [run.kind for _ in range(10) for run in await claim(store, worker, 100)]
    assert await claim(store, worker, 100) == []
    return got


async def test_no_more_than_the_limit_run_and_the_others_say_what_they_wait_for(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 2)
    ids = [answer.job_id for answer in await store.submit(some_jobs(5, limit_keys=("l",)))]
    assert in_order(await claim(store, worker)) == ids[:2]
    for job_id in ids[2:]:
        job = await store.get(job_id)
        assert (job.state, job.waits_for, job.last_worker, job.last_started_at) == (State.LIMITED, "l", None, None)
    assert await store.limits() == [Limit("default", "l", 2, 2)]
    assert await claim(store, worker) == []


async def test_who_holds_a_limit_and_how_many_wait_is_told_and_limits_come_in_pages(
    store: Store, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    for key, most in (("a", 2), ("b", 5), ("c", 1)):
        await store.set_limit(key, most)
    await store.set_limit("a", 1, tenant="acme")
    first = [made.job_id for made in await store.submit(some_jobs(5, limit_keys=("a", "b")))]
    theirs = await submit(store, limit_keys=("a",), tenant="acme")
    await _claim_all(store, worker)
    places = [(limit.tenant, limit.key) for limit in await store.limits()]

    uses = await store.limit_uses(places)

    assert [(use.tenant, use.key, use.waiting, use.holders) for use in uses] == [
        ("acme", "a", 0, [theirs]),
        ("default", "a", 3, first[:2]),
        ("default", "b", 0, first[:2]),
        ("default", "c", 0, []),
    ]
    assert await store.limit_uses([]) == []
    for dialect in ("sqlite", "postgres"):
        monkeypatch.setattr(f"tidewheel.store.{dialect}.limiting.MOST_WAITING", 2)
        monkeypatch.setattr(f"tidewheel.store.{dialect}.limiting.MOST_HOLDERS", 1)
    (use,) = await store.limit_uses([("default", "a")])
    assert (use.waiting, use.holders) == (2, first[:1])
    pages = [await store.limits(limit=2), await store.limits(limit=2, after=places[1])]
    assert [(limit.tenant, limit.key) for page in pages for limit in page] == places
    own = await store.limits(tenant="default", limit=2, after=("default", "a"))
    assert [limit.key for limit in own] == ["b", "c"]


async def test_runs_tell_which_keys_they_hold(store: Store, worker: Worker) -> None:
    await start(store, worker, "plain")
    await start(store, worker, "keyed", limit_keys=("a", "b"))
    held = {run.kind: run.limit_keys for run in await store.owned(worker.id)}
    assert held == {"plain": (), "keyed": ("a", "b")}
    (run,) = [await start(store, worker, limit_keys=("c",), tenant="acme")]
    assert run.held == {("acme", "c")}


async def test_an_end_releases_just_as_many_as_now_fit(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 3)
    ids = [answer.job_id for answer in await store.submit(some_jobs(10, limit_keys=("l",)))]
    runs = await claim(store, worker)
    await finish(store, worker, runs[:2])
    states = [await state_of(store, job_id) for job_id in ids]
    assert states == [State.SUCCEEDED] * 2 + [State.RUNNING] + [State.QUEUED] * 2 + [State.LIMITED] * 5
    assert (await store.get(ids[3])).waits_for is None
    assert in_order(await claim(store, worker)) == ids[3:5]
    assert await _running(store) == 3


@pytest.mark.parametrize("cause", [Cause.RETURNED, *NOT_RETURNED])
@pytest.mark.parametrize("cancelled", [False, True])
async def test_every_end_of_a_run_gives_its_keys_back(
    store: Store, worker: Worker, cause: Cause, *, cancelled: bool
) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, "first", limit_keys=("l",))
    waiting = await submit(store, "second", limit_keys=("l",), priority=Priority.HIGH)
    assert await claim(store, worker) == []
    if cancelled:
        await store.cancel(run.job_id)
    assert await settle(store, worker, run, cause) is Verdict.ACCEPTED
    assert await _running(store) == 0
    assert in_order(await claim(store, worker)) == [waiting]
    assert await _running(store) == 1


@pytest.mark.parametrize("how", ["reap", "quarantine", "deregister"])
async def test_the_end_of_a_worker_gives_the_keys_back(backend: Backend, store: Store, how: str) -> None:
    await store.set_limit("l", 2)
    dying = await store.register(a_worker(ttl=5 * SECOND))
    await store.submit(some_jobs(4, limit_keys=("l",)))
    assert len(await claim(store, dying)) == 2
    await backend.clock.advance(6 * SECOND)
    if how == "deregister":
        await store.deregister(dying.id)
    else:
        await store.reap(dying.id, dying.beat, max_losses=1 if how == "quarantine" else 3)
    assert await _running(store) == 0
    survivor = await store.register(a_worker())
    assert await _claim_all(store, survivor) == ["echo"] * 2
    assert await _running(store) == 2
    assert await store.repair_limits() == 0


async def test_a_job_takes_all_of_its_keys_or_none(store: Store, worker: Worker) -> None:
    await store.set_limit("a", 1)
    await store.set_limit("b", 1)
    await start(store, worker, limit_keys=("a",))
    both = await submit(store, "both", limit_keys=("b", "a"))
    alone = await submit(store, "alone", limit_keys=("b",))
    assert await _claim_all(store, worker) == ["alone"]
    job = await store.get(both)
    assert (job.state, job.waits_for) == (State.LIMITED, "a")
    assert (await store.get(alone)).state is State.RUNNING
    assert (await _running(store, "a"), await _running(store, "b")) == (1, 1)


async def test_the_first_full_key_is_named(store: Store, worker: Worker) -> None:
    for key in ("a", "b", "c"):
        await store.set_limit(key, 1)
    await start(store, worker, limit_keys=("b", "c"))
    job_id = await submit(store, limit_keys=("a", "c", "b"))
    assert await claim(store, worker) == []
    assert (await store.get(job_id)).waits_for == "c"


async def test_a_released_job_may_find_its_other_key_full(store: Store, worker: Worker) -> None:
    await store.set_limit("a", 1)
    await store.set_limit("b", 1)
    first = await start(store, worker, "first", limit_keys=("a",))
    second = await start(store, worker, "second", limit_keys=("b",))
    both = await submit(store, "both", limit_keys=("a", "b"))
    assert await claim(store, worker) == []
    assert (await store.get(both)).waits_for == "a"
    await finish(store, worker, [first])
    assert await claim(store, worker) == []
    assert (await store.get(both)).waits_for == "b"
    await finish(store, worker, [second])
    assert in_order(await claim(store, worker)) == [both]


async def test_a_waiter_that_could_not_use_its_room_does_not_block_the_next(store: Store, worker: Worker) -> None:
    """The room of key a goes to a job whose other key is full; the one behind it must get the room instead."""
    await store.set_limit("a", 1)
    await store.set_limit("b", 1)
    first = await start(store, worker, "first", limit_keys=("a",))
    await start(store, worker, "second", limit_keys=("b",))
    await submit(store, "both", limit_keys=("a", "b"))
    await submit(store, "only-a", limit_keys=("a",))
    assert await claim(store, worker) == []
    await finish(store, worker, [first])
    assert await _claim_all(store, worker) == ["only-a"]


async def test_waiters_are_released_by_priority_and_then_by_age(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, "first", limit_keys=("l",))
    for kind, priority in (("low", 2), ("medium-1", 1), ("medium-2", 1), ("high", 0)):
        await submit(store, kind, priority=priority, limit_keys=("l",))
        await backend.clock.advance(SECOND)
    assert await claim(store, worker) == []
    order = []
    for _ in range(4):
        await finish(store, worker, [run])
        (run,) = await claim(store, worker)
        order.append(run.kind)
    assert order == ["high", "medium-1", "medium-2", "low"]


async def test_a_waiter_that_was_let_go_in_vain_keeps_its_place(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    waiters = []
    for _ in range(3):
        await backend.clock.advance(SECOND)
        waiters.append(await submit(store, limit_keys=("l",)))
    assert await claim(store, worker) == []
    for _ in range(2):
        await finish(store, worker, [run])
        await backend.clock.advance(SECOND)
        urgent = await submit(store, limit_keys=("l",), priority=Priority.HIGH)
        (run,) = await claim(store, worker)
        assert run.job_id == urgent, "it came before who was let go"
        await backend.clock.advance(SECOND)
    for waiter in waiters:
        await finish(store, worker, [run])
        (run,) = await claim(store, worker)
        assert run.job_id == waiter


async def test_keys_without_a_limit_ask_for_nothing(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(10, limit_keys=("free", "too")))
    assert len(await claim(store, worker)) == 10


async def test_limited_jobs_are_in_nobodys_way(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(200, "keyed", limit_keys=("l",), priority=Priority.HIGH))
    await store.submit(some_jobs(10, "free"))
    got = await _claim_all(store, worker)
    assert sorted(got) == ["free"] * 10 + ["keyed"]


async def test_a_limit_counts_what_already_runs_when_it_is_set(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(3, limit_keys=("l",)))
    runs = await claim(store, worker)
    assert await store.set_limit("l", 2) == Limit("default", "l", 2, 3)
    waiting = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    await finish(store, worker, runs[:1])
    assert await claim(store, worker) == [], "two of two still run"
    await finish(store, worker, runs[1:2])
    assert in_order(await claim(store, worker)) == [waiting]


async def test_a_raised_limit_releases_waiters(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    ids = [answer.job_id for answer in await store.submit(some_jobs(5, limit_keys=("l",)))]
    await claim(store, worker)
    assert await store.set_limit("l", 3) == Limit("default", "l", 3, 1)
    assert in_order(await claim(store, worker)) == ids[1:3]
    assert await state_of(store, ids[3]) is State.LIMITED


async def test_a_lowered_limit_stops_nobody_but_lets_nobody_in(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 3)
    await store.submit(some_jobs(5, limit_keys=("l",)))
    runs = await claim(store, worker)
    assert await store.set_limit("l", 1) == Limit("default", "l", 1, 3)
    for run in runs:
        assert await claim(store, worker) == []
        await finish(store, worker, [run])
    assert len(await claim(store, worker)) == 1


async def test_a_removed_limit_releases_all(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    await store.submit(some_jobs(5, limit_keys=("l",)))
    runs = await claim(store, worker)
    await store.remove_limit("l")
    assert len(await claim(store, worker)) == 4
    await finish(store, worker, runs)
    assert await store.limits() == []
    with pytest.raises(NotFound):
        await store.remove_limit("l")


async def test_a_limit_belongs_to_its_tenant(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1, tenant="a")
    await store.set_limit("l", 2, tenant="b")
    specs = [a_job(tenant=tenant, limit_keys=("l",)) for tenant in "abc" for _ in range(4)]
    await store.submit(specs)
    await _claim_all(store, worker)
    assert await store.limits() == [Limit("a", "l", 1, 1), Limit("b", "l", 2, 2)]
    assert await store.limits(tenant="b") == [Limit("b", "l", 2, 2)]
    assert await store.limits(tenant="c") == []
    with pytest.raises(NotFound):
        await store.remove_limit("l", tenant="c")
    await store.remove_limit("l", tenant="b")
    assert await store.limits() == [Limit("a", "l", 1, 1)]
    assert len(await claim(store, worker)) == 2


async def test_limits_are_listed_by_tenant_and_key(store: Store) -> None:
    for tenant, key in (("b", "y"), ("a", "z"), ("b", "x"), ("a", "y")):
        await store.set_limit(key, 5, tenant=tenant)
    found = [(limit.tenant, limit.key) for limit in await store.limits()]
    assert found == [("a", "y"), ("a", "z"), ("b", "x"), ("b", "y")]


@pytest.mark.parametrize(
    ("key", "most", "field"),
    [
        ("", 1, "key"),
        ("n\0", 1, "key"),
        *[("l", most, "most") for most in (0, -1, "3", 1.5, True, 2**31, 99_999_999_999_999_999_999, -(10**5000))],
    ],
    ids=lambda value: str(value) if isinstance(value, str) else f"{max(value, -9)}",
)
async def test_a_limit_that_cannot_be_is_refused(store: Store, key: str, most: Any, field: str) -> None:
    for refused in (store.set_limit(key, most), store.set_rule(LimitRule(key, most))):
        with pytest.raises(Invalid) as refusal:
            await refused
        assert refusal.value.field in {field, "name"}
    assert (await store.limits(), await store.rules()) == ([], [])


async def test_a_limited_job_can_be_cancelled(store: Store, worker: Worker) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    waiting = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    assert (await store.cancel(waiting)).state is State.CANCELLED
    assert await store.attempts(waiting) == [], "it never started"
    await finish(store, worker, [run])
    assert await claim(store, worker) == []
    assert await _running(store) == 0


@pytest.mark.parametrize("wrong", [0, 5])
async def test_wrong_counters_are_repaired(backend: Backend, store: Store, worker: Worker, wrong: int) -> None:
    await store.set_limit("l", 4)
    await store.submit(some_jobs(2, limit_keys=("l",)))
    await claim(store, worker)
    await store.set_limit("right", 1)
    assert await store.repair_limits() == 0
    await backend.spoil_limit("l", wrong)
    assert await store.repair_limits() == 1
    assert await _running(store) == 2
    assert await store.repair_limits() == 0


async def test_repair_releases_who_has_room(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("l", 2)
    await backend.spoil_limit("l", 2)
    job_id = await submit(store, limit_keys=("l",))
    assert await claim(store, worker) == []
    assert await state_of(store, job_id) is State.LIMITED
    await store.repair_limits()
    assert in_order(await claim(store, worker)) == [job_id]


@pytest.mark.parametrize("how", ["cancel", "expire", "drop", "replace"])
async def test_a_released_waiter_that_ends_before_its_start_passes_its_room_on(
    backend: Backend, store: Store, worker: Worker, how: str
) -> None:
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    released = await submit(store, "released", limit_keys=("l",), unique_key="u", start_by=backend.clock.now() + SECOND)
    last = await submit(store, "last", limit_keys=("l",), delay=SECOND / 2)
    await backend.clock.advance(SECOND / 2)
    assert await claim(store, worker) == []
    await finish(store, worker, [run])
    assert [await state_of(store, job_id) for job_id in (released, last)] == [State.QUEUED, State.LIMITED]
    if how == "cancel":
        await store.cancel(released)
    elif how == "expire":
        await backend.clock.advance(2 * SECOND)
        assert await store.expire() == 1
    elif how == "drop":
        await store.close_gate(GateSpec(mode=GateMode.DROP, kind="released"))
        assert await store.drop_gated() == 1
    else:
        await submit(store, "other", unique_key="u", unique="replace", delay=MINUTE)
    assert in_order(await claim(store, worker)) == [last]


async def test_repair_releases_who_waits_for_a_limit_that_is_gone(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """Whoever was locked in the moment in which the limit was removed went on waiting."""
    for key in ("a", "b"):
        await store.set_limit(key, 1)
        await start(store, worker, limit_keys=(key,))
    ids = [await submit(store, limit_keys=(key,)) for key in ("a", "b")]
    assert await claim(store, worker) == []
    held = await backend.hold_jobs(ids)
    for key in ("a", "b"):
        await store.remove_limit(key)
    if held is not None:
        await held.release()
    await store.repair_limits()
    assert [await state_of(store, job_id) for job_id in ids] == [State.QUEUED] * 2
    assert in_order(await claim(store, worker)) == ids


@pytest.mark.parametrize("tenant", ["", "x" * 400, "a b"])
async def test_a_limit_of_a_tenant_that_cannot_be_is_refused(store: Store, tenant: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.set_limit("l", 1, tenant=tenant)
    assert refusal.value.field == "tenant"
    with pytest.raises((Invalid, NotFound)):
        await store.remove_limit("l", tenant=tenant)
    assert await store.limits() == []


async def test_a_full_key_hides_no_job_of_another_key_behind_it(store: Store, worker: Worker) -> None:
    """However many of the full key lie ahead in the same lane, a worker that claims one at a time gets past them."""
    await store.set_limit("full", 1)
    await store.set_limit("free", 1)
    await start(store, worker, limit_keys=("full",))
    await store.submit(some_jobs(400, limit_keys=("full",)))
    behind = await submit(store, limit_keys=("free",))
    got: list[UUID] = []
    for _ in range(3):
        got += in_order(await claim(store, worker, 1))
    assert got == [behind]


async def test_who_is_let_in_is_counted_and_runs_though_others_behind_it_are_turned_away(
    store: Store, worker: Worker
) -> None:
    await store.set_limit("l", 2)
    await store.submit(some_jobs(30, limit_keys=("l",)))
    runs = await claim(store, worker, 30)
    (limit,) = await store.limits()
    assert (len(runs), limit.running) == (2, 2)


async def test_a_limit_that_has_another_version_is_left_alone(store: Store, worker: Worker) -> None:
    with pytest.raises(StaleVersion):
        await store.set_limit("l", 1, version=1)
    seen = limit_version(await store.set_limit("l", 1))
    await start(store, worker, limit_keys=("l",))
    assert limit_version(await store.limit("l")) == seen, "whatever runs under it"
    await store.set_limit("l", 2, version=seen)
    for change in (store.set_limit("l", 3, version=seen), store.remove_limit("l", version=seen)):
        with pytest.raises(StaleVersion):
            await change
    assert [limit.most for limit in await store.limits()] == [2]
    await store.remove_limit("l", version=limit_version(await store.limit("l")))
    with pytest.raises(NotFound):
        await store.limit("l")
