"""Rules: what holds for a whole family of keys, each of which is counted for itself from its first use on."""

import asyncio

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_claim, a_job, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, drain, finish, start, stores_on, submit
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.limit import Limit, LimitRule
from tidewheel.model.rate import Pace, parse_pace
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

ONE_EACH = LimitRule("account", 1)


async def test_each_value_of_a_rule_is_counted_for_itself_and_for_each_tenant(store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    await store.submit([a_job(tenant=t, limit_keys=(f"account={n}",)) for t in "ab" for n in "12" for _ in range(3)])
    assert len(await claim(store, worker, 20)) == 4
    assert await claim(store, worker, 20) == []
    assert await store.limits() == [
        Limit(tenant, f"account={n}", 1, 1, rule="account") for tenant in "ab" for n in "12"
    ]


async def test_a_rule_also_holds_for_the_key_that_is_its_name_and_for_no_other(store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    for key in ("account", "accounts=1", "accountant", "other=account"):
        await store.submit(some_jobs(2, limit_keys=(key,)))
    assert len(await claim(store, worker, 20)) == 1 + 2 * 3
    assert [limit.key for limit in await store.limits()] == ["account"]


async def test_a_key_is_made_with_its_first_use_and_forgotten_when_nobody_uses_it(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_rule(LimitRule("user", 5, parse_pace("1/s", 2)))
    assert await store.limits() == []
    run = await start(store, worker, limit_keys=("user=7",))
    assert await store.forget_unused_limits() == 0, "it runs"
    await finish(store, worker, [run])
    assert await store.forget_unused_limits() == 0, "its bucket is not full again"
    await backend.clock.advance(2 * SECOND)
    assert await store.forget_unused_limits() == 1
    assert await store.limits() == []
    await start(store, worker, limit_keys=("user=7",))
    assert [limit.running for limit in await store.limits()] == [1]


async def test_a_key_that_someone_waits_for_is_not_forgotten(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    await start(store, worker, limit_keys=("account=1",))
    await submit(store, limit_keys=("account=1",))
    assert await claim(store, worker) == []
    await backend.spoil_limit("account=1", 0)
    assert await store.forget_unused_limits() == 0


async def test_a_limit_that_was_set_for_a_key_is_never_forgotten_by_itself(backend: Backend, store: Store) -> None:
    await store.set_limit("account=1", 3)
    await backend.clock.advance(HOUR)
    assert await store.forget_unused_limits() == 0


async def test_a_changed_rule_changes_its_keys_and_lets_waiters_go(store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    await store.submit(some_jobs(5, limit_keys=("account=1",)))
    assert len(await claim(store, worker)) == 1
    await store.set_rule(LimitRule("account", 3))
    assert len(await claim(store, worker)) == 2
    assert await store.limits() == [Limit("default", "account=1", 3, 3, rule="account")]


async def test_a_rule_counts_what_runs_already(store: Store, worker: Worker) -> None:
    await store.submit(some_jobs(2, limit_keys=("account=1",)))
    assert len(await claim(store, worker)) == 2
    await store.set_rule(LimitRule("account", 3))
    await store.submit(some_jobs(2, limit_keys=("account=1",)))
    assert len(await claim(store, worker)) == 1


async def test_a_limit_of_its_own_counts_for_more_than_the_rule_until_it_is_removed(
    store: Store, worker: Worker
) -> None:
    await store.set_rule(ONE_EACH)
    await store.set_limit("account=vip", 3)
    await store.submit(some_jobs(5, limit_keys=("account=vip",)))
    assert len(await claim(store, worker)) == 3
    await store.set_rule(LimitRule("account", 2))
    assert await store.limits() == [Limit("default", "account=vip", 3, 3)]
    await store.remove_limit("account=vip")
    assert await store.limits() == [Limit("default", "account=vip", 2, 3, rule="account")]
    assert await claim(store, worker) == []


async def test_a_removed_rule_lets_all_go(store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    await store.submit(some_jobs(4, limit_keys=("account=1",)))
    assert len(await claim(store, worker)) == 1
    await store.remove_rule("account")
    assert len(await claim(store, worker)) == 3
    assert (await store.rules(), await store.limits()) == ([], [])
    with pytest.raises(NotFound):
        await store.remove_rule("account")


async def test_declared_rules_take_effect_once_and_again_only_when_they_change(store: Store) -> None:
    rules = [LimitRule("a", 1), LimitRule("b", rate=parse_pace("10/s"))]
    assert await store.declare_rules(rules) == 2
    assert await store.declare_rules(rules) == 0
    assert await store.declare_rules([LimitRule("a", 2), rules[1]]) == 1
    assert await store.rules() == [LimitRule("a", 2), rules[1]]


async def test_what_an_operator_set_is_not_changed_by_what_tasks_declare(store: Store) -> None:
    await store.declare_rules([LimitRule("a", 1)])
    await store.set_rule(LimitRule("a", 9))
    assert await store.declare_rules([LimitRule("a", 1)]) == 0
    assert await store.rules() == [LimitRule("a", 9, by_hand=True)]
    await store.remove_rule("a")
    assert await store.declare_rules([LimitRule("a", 1)]) == 1


async def test_many_workers_that_declare_the_same_rules_at_once_make_each_of_them_once(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    rules = [LimitRule(f"task:{n}", n + 1) for n in range(10)]
    changed = await asyncio.gather(*(store.declare_rules(rules) for store in stores for _ in range(5)))
    assert sum(changed) == 10
    assert len(await stores[0].rules()) == 10


async def test_a_new_rule_is_heard_of_by_every_store_at_its_next_claim(backend: Backend) -> None:
    here, there = await stores_on(backend, 2)
    worker = await there.register(a_worker())
    await there.submit(some_jobs(1, limit_keys=("account=0",)))
    assert len(await claim(there, worker)) == 1
    await here.set_rule(ONE_EACH)
    await there.submit(some_jobs(5, limit_keys=("account=1",)))
    assert len(await claim(there, worker)) == 1


async def test_many_claimers_that_use_a_key_for_the_first_time_count_it_once(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    await stores[0].set_rule(LimitRule("account", 2))
    workers = [await store.register(a_worker(f"host/runner-{i}")) for i, store in enumerate(stores)]
    await stores[0].submit([a_job(f"k{i % 4}", limit_keys=(f"account={i % 3}",)) for i in range(120)])
    for _ in range(3):
        await asyncio.gather(
            *(store.claim(a_claim(worker.id, 9)) for store, worker in zip(stores, workers, strict=True))
        )
    limits = await stores[0].limits()
    assert [(limit.key, limit.running) for limit in limits] == [(f"account={n}", 2) for n in range(3)]
    assert await stores[0].repair_limits() == 0


async def test_wrong_counters_of_a_rule_are_repaired(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_rule(ONE_EACH)
    await start(store, worker, limit_keys=("account=1",))
    await backend.spoil_limit("account=1", 5)
    assert await store.repair_limits() == 1
    assert [limit.running for limit in await store.limits()] == [1]


async def test_a_thousand_users_come_and_go_and_leave_nothing(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_rule(LimitRule("user", 1, parse_pace("60/m")))
    await store.submit([a_job(limit_keys=(f"user={n}",)) for n in range(1000)])
    assert len(await drain(store, worker, 200)) == 1000
    await backend.clock.advance(MINUTE)
    assert await store.forget_unused_limits(limit=900) == 900
    assert await store.forget_unused_limits(limit=900) == 100
    assert await store.limits() == []


@pytest.mark.parametrize(
    ("rule", "field"),
    [
        (LimitRule("a"), "most"),
        (LimitRule("a", 0), "most"),
        (LimitRule("a", rate=Pace(1, 1, 0)), "burst"),
        (LimitRule("", 1), "name"),
        (LimitRule("a=b", 1), "name"),
    ],
)
async def test_a_rule_that_cannot_be_is_refused(store: Store, rule: LimitRule, field: str) -> None:
    for setting in (store.set_rule(rule), store.declare_rules([rule])):
        with pytest.raises(Invalid) as refusal:
            await setting
        assert refusal.value.field == field
    assert await store.rules() == []


async def test_a_rule_that_is_declared_twice_and_differently_is_refused(store: Store) -> None:
    with pytest.raises(Invalid, match="twice"):
        await store.declare_rules([LimitRule("a", 1), LimitRule("a", 2)])
