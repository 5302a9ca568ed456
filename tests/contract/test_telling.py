"""The duty that tells, on each store: whoever is slow or dies, the others hear, and nothing is told that was undone."""

import asyncio
import signal
import sys
from collections import Counter
from uuid import UUID

import pytest

from tests.builders import MINUTE, a_job, outcome_of
from tests.contract.backends import Backend
from tests.contract.steps import claim, finish
from tests.notify.receiving import HANG, receiving
from tidewheel.clock import SystemClock
from tidewheel.errors import Conflict, Unavailable
from tidewheel.keeper.notices import SHARES, Postman
from tidewheel.model.channel import ChannelSpec, Parcel
from tidewheel.model.notification import Answer, DeliveryState, Event, SubscriptionSpec
from tidewheel.model.worker import Worker
from tidewheel.notify import AddressGuard, Sender
from tidewheel.store import notify_rows
from tidewheel.store.base import Store
from tidewheel.store.notifying import Shares
from tidewheel.testing import FakeClock

ONE_SENDER = """
import asyncio, sys
from datetime import datetime
from tidewheel.clock import SystemClock
from tidewheel.keeper.notices import Postman
from tidewheel.notify import AddressGuard, Sender
from tidewheel.testing import FakeClock

async def open_it(place, now):
    if place.startswith("sqlite:///"):
        from tidewheel.store.sqlite import open_store
        return await open_store(place.removeprefix("sqlite:///"), FakeClock(now))
    from tidewheel.store.postgres import open_store
    return await open_store(place)

async def main():
    store = await open_it(sys.argv[1], datetime.fromisoformat(sys.argv[2]))
    clock = SystemClock()
    await Postman(store, Sender(AddressGuard(["127.0.0.0/8"]), clock), clock).run_once()
    await asyncio.Event().wait()

asyncio.run(main())
"""


class Slow:
    """Carries messages at once, but for those of some channels, which are under way until they are let go."""

    def __init__(self, *channels: UUID) -> None:
        self.channels = channels
        self.sent: Counter[UUID] = Counter()
        self.begun: Counter[UUID] = Counter()
        self.let_go = asyncio.Event()
        self._moved = asyncio.Event()

    async def has_sent(self, channel: UUID, count: int) -> None:
        async with asyncio.timeout(60):
            while self.sent[channel] < count:
                self._moved.clear()
                await self._moved.wait()

    async def send(self, parcel: Parcel) -> Answer:
        self.begun[parcel.channel_id] += 1
        if parcel.channel_id in self.channels:
            await self.let_go.wait()
        self.sent[parcel.channel_id] += 1
        self._moved.set()
        return Answer(accepted=True, told="200")


async def add_channel(
    store: Store, name: str, address: str = "https://example.org", *, kind: str | None = None, tenant: str | None = None
) -> UUID:
    made = await store.add_channel(ChannelSpec(name=name, address=address, tenant=tenant))
    wish = SubscriptionSpec(channel=name, events=frozenset([Event.SUCCEEDED]), kind=kind)
    await store.subscribe(wish, tenant=tenant)
    return made.channel.id


async def end_jobs(store: Store, worker: Worker, count: int, kind: str = "echo", tenant: str = "default") -> None:
    await store.submit([a_job(kind, tenant=tenant) for _ in range(count)])
    await finish(store, worker, await claim(store, worker, count))


async def all_spread(store: Store) -> None:
    while await store.spread_happenings():
        pass


async def test_a_slow_receiver_holds_up_no_other(store: Store, worker: Worker) -> None:
    slow = await add_channel(store, "slow", kind="slow")
    quick = await add_channel(store, "quick", kind="quick")
    await end_jobs(store, worker, 60, "slow")
    await end_jobs(store, worker, 30, "quick")
    clock, sender = FakeClock(), Slow(slow)
    postman = Postman(store, sender, clock)
    running = asyncio.ensure_future(postman.run_once())
    await sender.has_sent(quick, 30)
    assert (sender.begun[slow], sender.sent[slow]) == (SHARES.channel, 0)
    while not running.done():
        await clock.advance(MINUTE)  # nothing moves, and it is time to look elsewhere
    await end_jobs(store, worker, 5, "quick")
    assert await running > 0
    running = asyncio.ensure_future(postman.run_once())
    await sender.has_sent(quick, 35)
    assert sender.begun[slow] == SHARES.channel
    sender.let_go.set()
    await running
    assert (sender.sent[slow], sender.sent[quick]) == (60, 35)


async def test_what_is_under_way_when_the_duty_ends_is_let_go_and_sent_by_the_next(
    backend: Backend, store: Store, worker: Worker
) -> None:
    slow = await add_channel(store, "slow")
    await end_jobs(store, worker, 1)
    clock, sender = FakeClock(), Slow(slow)
    postman = Postman(store, sender, clock)
    running = asyncio.ensure_future(postman.run_once())
    while not running.done():
        await clock.advance(MINUTE)
    await postman.stop()
    await backend.clock.advance(3 * MINUTE)
    assert await Postman(store, Slow(), clock).run_once() == 1
    (delivery,) = await store.deliveries()
    assert (delivery.state, delivery.tries) == (DeliveryState.SENT, 2)


async def test_channels_and_their_owners_take_turns(store: Store, worker: Worker) -> None:
    """One with many channels, all of which have much to send, has no more than one with a single message."""
    greedy = {await add_channel(store, f"many{number}", tenant="greedy") for number in range(3)}
    modest = await add_channel(store, "one", tenant="modest")
    await end_jobs(store, worker, 10, tenant="greedy")
    await end_jobs(store, worker, 1, tenant="modest")
    await all_spread(store)
    shares = Shares(channel=2, owner=4, all=10)
    taken = [parcel.channel_id for parcel in await store.take_deliveries(shares)]
    counted = Counter(taken)
    assert counted[modest] == 1
    assert sorted(counted[channel] for channel in greedy) == [1, 1, 2]
    assert await store.take_deliveries(shares, under_way=taken) == []
    done = next(channel for channel in taken if counted[channel] == 2)
    taken.remove(done)
    (more,) = await store.take_deliveries(shares, under_way=taken)
    assert more.channel_id in greedy
    assert await store.take_deliveries(Shares(channel=2, owner=4, all=4), under_way=taken) == []
    first, second = await store.take_deliveries(Shares(all=2))
    assert {first.channel_id, second.channel_id} <= greedy


async def test_one_owner_has_a_bounded_number_of_channels_and_subscriptions(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(notify_rows.MOST, "channels", 2)
    monkeypatch.setitem(notify_rows.MOST, "subscriptions", 3)
    for name in "ab":
        await add_channel(store, name, tenant="acme")
    with pytest.raises(Conflict, match="there are 2 channels already"):
        await store.add_channel(ChannelSpec(name="c", address="https://example.org", tenant="acme"))
    wish = SubscriptionSpec(channel="a", events=frozenset([Event.DEAD]))
    await store.subscribe(wish, tenant="acme")
    with pytest.raises(Conflict, match="there are 3 subscriptions already"):
        await store.subscribe(wish, tenant="acme")
    await add_channel(store, "a", tenant="other")
    await add_channel(store, "a")


async def test_a_message_whose_sender_was_killed_is_sent_by_the_next(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """Killed after the receiver had the message and before that was noted: it comes twice, under one id."""
    async with receiving() as receiver:
        receiver.answer = lambda _: HANG
        await add_channel(store, "hook", receiver.address)
        await end_jobs(store, worker, 1)
        await all_spread(store)
        what = ("-c", ONE_SENDER, backend.place, backend.clock.now().isoformat())
        sender = await asyncio.create_subprocess_exec(sys.executable, *what)
        try:
            async with asyncio.timeout(60):
                await receiver.came.wait()
        finally:
            sender.send_signal(signal.SIGKILL)
            await sender.wait()
        receiver.answer = lambda _: 200
        clock = SystemClock()
        postman = Postman(store, Sender(AddressGuard(["127.0.0.0/8"]), clock), clock)
        assert await postman.run_once() == 0, "it is still the dead one's"
        await backend.clock.advance(3 * MINUTE)
        assert await postman.run_once() == 1
        await postman.stop(30)
        first, second = receiver.got
        assert first.headers["webhook-id"] == second.headers["webhook-id"]
        assert (await store.deliveries())[0].state is DeliveryState.SENT


async def test_an_outcome_that_was_rolled_back_is_never_told(backend: Backend, store: Store, worker: Worker) -> None:
    """The transaction fails after the outcome and its note were written: neither is there."""
    await add_channel(store, "hook")
    await store.submit([a_job()])
    (run,) = await claim(store, worker)
    await backend.fail_late()
    with pytest.raises(Unavailable):
        await store.settle(worker.id, [outcome_of(run)])
    assert await store.spread_happenings() == 0
    assert (await store.get(run.job_id)).state == "running"
