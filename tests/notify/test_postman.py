"""The duty, a real store and a real receiver: at least once, whatever dies, and never for what did not happen."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from tests.builders import DAY, SECOND, a_claim, a_job, a_worker, outcome_of
from tests.notify.receiving import DROP, Receiver, receiving
from tidewheel.clock import SystemClock
from tidewheel.keeper import chore_named, chores_of
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.notification import DeliveryState, Event, SubscriptionSpec
from tidewheel.model.retention import Upkeep
from tidewheel.model.states import Cause
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.testing import FakeClock

UPKEEP = Upkeep(notify_private=("127.0.0.0/8",))


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    async with receiving() as receiver:
        yield receiver


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(start=SystemClock().now())  # a signature is judged by the time of day


@pytest.fixture
async def store(tmp_path: Path, clock: FakeClock) -> AsyncIterator[Store]:
    store = await open_store(tmp_path / "jobs.db", clock)
    yield store
    await store.close()


async def work(store: Store, receiver: Receiver, jobs: int = 1, cause: Cause = Cause.GAVE_UP) -> str:
    """Let a channel hear of dead jobs, and some die; return its secret."""
    made = await store.add_channel(ChannelSpec(name="hook", address=receiver.address))
    await store.subscribe(SubscriptionSpec(channel="hook", events=frozenset([Event.DEAD])))
    await store.submit([a_job() for _ in range(jobs)])
    worker = await store.register(a_worker())
    runs = (await store.claim(a_claim(worker.id, jobs))).runs
    await store.settle(worker.id, [outcome_of(run, cause) for run in runs])
    assert made.secret is not None
    return made.secret


async def tell(store: Store, clock: FakeClock) -> int:
    return await chore_named(chores_of(store, clock, UPKEEP), "notifications").run_once()


async def test_a_dead_job_reaches_the_receiver_signed(store: Store, clock: FakeClock, receiver: Receiver) -> None:
    secret = await work(store, receiver)
    await tell(store, clock)
    (got,) = receiver.got
    event = Webhook(secret).verify(got.body, got.headers)
    assert event["type"] == "dev.tidewheel.job.dead"
    assert event["id"] == got.headers["webhook-id"]
    assert event["data"]["error"]["message"] == "it broke"
    (delivery,) = await store.deliveries()
    assert (delivery.state, delivery.answer, delivery.tries) == (DeliveryState.SENT, "200", 1)


async def test_what_a_receiver_drops_comes_again_under_the_same_id(
    store: Store, clock: FakeClock, receiver: Receiver
) -> None:
    answers = iter([DROP, 500, 200])
    receiver.answer = lambda _: next(answers)
    await work(store, receiver)
    for _ in range(3):
        await tell(store, clock)
        await clock.advance(200 * SECOND)
    await tell(store, clock)
    assert len(receiver.got) == 3
    assert len({got.headers["webhook-id"] for got in receiver.got}) == 1
    assert len({got.body for got in receiver.got}) == 1
    assert (await store.deliveries())[0].state is DeliveryState.SENT


async def test_a_receiver_that_is_gone_is_left_alone(store: Store, clock: FakeClock, receiver: Receiver) -> None:
    receiver.answer = lambda _: 410
    await work(store, receiver)
    await tell(store, clock)
    await clock.advance(DAY)
    await tell(store, clock)
    assert len(receiver.got) == 1
    assert (await store.channels())[0].disabled


async def test_an_outcome_that_was_rolled_back_is_never_told(
    store: Store, clock: FakeClock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The transaction fails after the outcome and its note were written: neither is there."""
    from tidewheel.store.sqlite import ending  # noqa: PLC0415 - beside the one test that breaks it

    def fail(*_: object) -> None:
        raise RuntimeError("the power went")

    monkeypatch.setattr(ending, "free_keys", fail)
    with pytest.raises(RuntimeError):
        await work(store, receiver)
    monkeypatch.undo()
    await tell(store, clock)
    assert receiver.got == []
    assert await store.deliveries() == []


@pytest.mark.parametrize(("status", "state"), [(200, DeliveryState.SENT), (500, DeliveryState.FAILED)])
async def test_a_test_message_reaches_the_receiver_signed_and_once(
    store: Store, clock: FakeClock, receiver: Receiver, status: int, state: DeliveryState
) -> None:
    receiver.answer = lambda _: status
    made = await store.add_channel(ChannelSpec(name="hook", address=receiver.address))
    await store.test_channel(made.channel.id)
    await tell(store, clock)
    await clock.advance(DAY)
    await tell(store, clock)
    (got,) = receiver.got
    assert Webhook(made.secret or "").verify(got.body, got.headers)["data"] == {"event": "test"}
    (delivery,) = await store.deliveries()
    assert (delivery.state, delivery.answer, delivery.tries) == (state, str(status), 1)
