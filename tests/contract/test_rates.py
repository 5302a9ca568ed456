"""Rates: so many starts in a time, decided in the claim; who finds no token is let go when it comes."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tests.builders import MINUTE, SECOND, a_claim, a_job, a_worker, some_jobs
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish, in_order, start, state_of, stores_on, submit
from tidewheel.errors import Invalid
from tidewheel.model.limit import Limit
from tidewheel.model.priority import Priority
from tidewheel.model.rate import Pace, parse_pace
from tidewheel.model.states import State
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

TENTH = SECOND / 10
TEN = parse_pace("10/s", 3)


async def _ids(store: Store, count: int, priority: Priority = Priority.MEDIUM) -> list[UUID]:
    return [answer.job_id for answer in await store.submit(some_jobs(count, limit_keys=("r",), priority=priority))]


async def test_no_more_than_the_burst_start_at_once_and_the_others_say_what_they_wait_for(
    store: Store, worker: Worker
) -> None:
    assert await store.set_limit("r", rate=TEN) == Limit("default", "r", None, 0, TEN, 3)
    ids = await _ids(store, 5)
    assert in_order(await claim(store, worker)) == ids[:3]
    job = await store.get(ids[3])
    assert (job.state, job.waits_for) == (State.LIMITED, "r")
    assert await store.limits() == [Limit("default", "r", None, 3, TEN, 0)]
    assert await claim(store, worker) == []


async def test_tokens_come_as_time_goes_by_and_each_lets_one_waiter_start(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("r", rate=TEN)
    ids = await _ids(store, 8)
    started = in_order(await claim(store, worker))
    for expected in (4, 5, 6):
        await backend.clock.advance(TENTH)
        started += in_order(await claim(store, worker))
        assert started == ids[:expected]
        assert await claim(store, worker) == []
    await backend.clock.advance(MINUTE)
    assert started + in_order(await claim(store, worker)) == ids


async def test_the_answer_of_a_claim_tells_when_the_next_token_comes(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("r", rate=TEN)
    await _ids(store, 5)
    claimed = await store.claim(a_claim(worker.id))
    assert len(claimed.runs) == 3
    again = await store.claim(a_claim(worker.id))
    assert again.next_due == backend.clock.now() + TENTH
    other = await backend.open()
    somebody = await other.register(a_worker("host/runner-1"))
    elsewhere = await other.claim(a_claim(somebody.id))
    assert elsewhere.next_due == again.next_due, "whoever claims knows of it"
    await backend.clock.advance(TENTH)
    assert len(await claim(other, somebody)) == 1


async def test_with_nobody_waiting_a_claim_need_not_come_back(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=TEN)
    await _ids(store, 4)
    await claim(store, worker)
    await backend.clock.advance(TENTH)
    assert len(await claim(store, worker)) == 1
    await backend.clock.advance(SECOND)
    await store.claim(a_claim(worker.id))
    assert (await store.claim(a_claim(worker.id))).next_due is None


async def test_an_end_gives_no_token_back(store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=TEN)
    ids = await _ids(store, 5)
    await finish(store, worker, await claim(store, worker))
    assert await claim(store, worker) == []
    assert await state_of(store, ids[3]) is State.LIMITED


async def test_a_limit_may_bound_both_what_runs_and_what_starts(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("r", 2, rate=TEN)
    ids = await _ids(store, 9)
    runs = await claim(store, worker)
    assert in_order(runs) == ids[:2]
    await backend.clock.advance(MINUTE)
    assert await claim(store, worker) == [], "there are tokens, but two run"
    await finish(store, worker, runs)
    runs = await claim(store, worker)
    assert in_order(runs) == ids[2:4]
    await finish(store, worker, runs)
    runs = await claim(store, worker)
    assert in_order(runs) == ids[4:5], "the burst of three is spent"
    await backend.clock.advance(TENTH)
    assert in_order(await claim(store, worker)) == ids[5:6]
    await finish(store, worker, runs)
    await backend.clock.advance(TENTH)
    assert in_order(await claim(store, worker)) == ids[6:7]


async def test_a_job_takes_all_of_its_keys_or_none(store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=parse_pace("1/m"))
    await store.set_limit("l", 1)
    run = await start(store, worker, limit_keys=("l",))
    both = await submit(store, limit_keys=("r", "l"))
    assert await claim(store, worker) == []
    assert (await store.get(both)).waits_for == "l"
    assert [limit.tokens for limit in await store.limits()] == [None, 1], "it took no token"
    await finish(store, worker, [run])
    assert in_order(await claim(store, worker)) == [both]


async def test_waiters_for_tokens_go_by_priority_and_then_by_age(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("r", rate=parse_pace("1/s"))
    await start(store, worker, "first", limit_keys=("r",))
    for kind, priority in (("low", 2), ("medium-1", 1), ("medium-2", 1), ("high", 0)):
        await submit(store, kind, priority=priority, limit_keys=("r",))
        await backend.clock.advance(TENTH)
    assert await claim(store, worker) == []
    order = []
    for _ in range(4):
        await backend.clock.advance(SECOND)
        order += [run.kind for run in await claim(store, worker)]
    assert order == ["high", "medium-1", "medium-2", "low"]


async def test_a_clock_that_steps_back_adds_no_token_and_stops_nothing(
    backend: Backend, store: Store, worker: Worker
) -> None:
    await store.set_limit("r", rate=TEN)
    ids = await _ids(store, 6)
    assert len(await claim(store, worker)) == 3
    await backend.set_clock_back(MINUTE)
    assert await store.limits() == [Limit("default", "r", None, 3, TEN, 0)]
    for job_id in ids[3:]:
        await store.cancel(job_id)
    await _ids(store, 3)
    assert await claim(store, worker) == []
    await backend.clock.advance(TENTH)
    assert len(await claim(store, worker)) == 1, "the bucket fills again from now on"


async def test_setting_a_rate_anew_gives_no_tokens_away(store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=TEN)
    await _ids(store, 10)
    assert len(await claim(store, worker)) == 3
    await store.set_limit("r", rate=parse_pace("10/s", 5))
    assert await claim(store, worker) == []


async def test_a_higher_rate_lets_waiters_go_sooner(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=parse_pace("1/h"))
    await _ids(store, 4)
    assert len(await claim(store, worker)) == 1
    await store.set_limit("r", rate=TEN)
    await backend.clock.advance(TENTH)
    assert len(await claim(store, worker)) == 1


async def test_a_removed_rate_lets_all_go(store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=parse_pace("1/h"))
    await _ids(store, 4)
    assert len(await claim(store, worker)) == 1
    await store.remove_limit("r")
    assert len(await claim(store, worker)) == 3
    assert (await store.claim(a_claim(worker.id))).next_due is None


async def test_waiters_of_other_keys_are_in_nobodys_way(store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=parse_pace("1/h"))
    await _ids(store, 300, priority=Priority.HIGH)
    await store.submit(some_jobs(5, "free"))
    got = [run.kind for _ in range(10) for run in await claim(store, worker, 100)]
    assert sorted(got) == ["echo"] + ["free"] * 5


async def test_repair_lets_those_go_whom_a_look_has_forgotten(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("r", rate=TEN)
    await _ids(store, 4)
    assert len(await claim(store, worker)) == 3
    await backend.forget_looks()
    await backend.clock.advance(SECOND)
    assert await claim(store, worker) == []
    assert await store.repair_limits() == 0
    assert len(await claim(store, worker)) == 1


async def test_many_claimers_together_start_no_more_than_the_rate_allows(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    await stores[0].set_limit("r", rate=parse_pace("100/s", 10))
    workers = [await store.register(a_worker(f"host/runner-{i}")) for i, store in enumerate(stores)]
    await stores[0].submit([a_job(f"k{i % 5}", limit_keys=("r",)) for i in range(200)])
    started = 0
    for turn in range(10):
        claims = await asyncio.gather(
            *(store.claim(a_claim(worker.id, 7)) for store, worker in zip(stores, workers, strict=True) for _ in "ab")
        )
        started += sum(len(claimed.runs) for claimed in claims)
        assert started <= 10 + 5 * turn
        await backend.clock.advance(timedelta(milliseconds=50))
    assert started >= 10 + 5 * 9 - 15, "and the tokens are used"


@pytest.mark.parametrize(
    ("most", "rate", "field"),
    [
        (None, None, "most"),
        (0, TEN, "most"),
        (None, Pace(0, 1, 1), "rate"),
        (None, Pace(1, 14 * 86_400, 1), "rate"),
        (None, Pace(1, 1, 0), "burst"),
    ],
)
async def test_a_rate_that_cannot_be_is_refused(store: Store, most: int | None, rate: Pace | None, field: str) -> None:
    with pytest.raises(Invalid) as refusal:
        await store.set_limit("r", most, rate=rate)
    assert refusal.value.field == field
    assert await store.limits() == []


async def test_a_job_that_waits_for_a_token_says_when_it_comes(backend: Backend, store: Store, worker: Worker) -> None:
    await store.set_limit("r", 10, rate=parse_pace("10/s", 1))
    ids = await _ids(store, 2)
    await claim(store, worker)
    (use,) = (await store.explain(ids[1])).limits
    assert (use.key, use.rate, use.holders) == ("r", "10/s", ())
    assert use.refill_at == backend.clock.now() + TENTH
    await store.set_limit("r", 1, rate=parse_pace("10/s", 1))
    (full,) = (await store.explain(ids[1])).limits
    assert (full.refill_at, full.holders) == (None, (ids[0],))
