"""A test message: it is sent by the way that all go, at once and once, and whoever waits hears what it came to."""

from datetime import timedelta

import msgspec
import pytest

from tests.builders import DAY
from tests.contract.backends import Backend
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.channel import Channel, ChannelSpec
from tidewheel.model.notification import Answer, DeliveryState
from tidewheel.store.base import Store
from tidewheel.store.notifying import LOOK_AGAIN, tried

OK = Answer(accepted=True, told="200")
BUSY = Answer(accepted=False, told="503")
GONE = Answer(accepted=False, told="410", gone=True)
A_WHILE = timedelta(seconds=4 * LOOK_AGAIN)


async def a_channel(store: Store, tenant: str | None = None) -> Channel:
    return (await store.add_channel(ChannelSpec(name="ops", address="https://example.org", tenant=tenant))).channel


async def send(store: Store, answer: Answer) -> None:
    for parcel in await store.take_deliveries():
        await store.close_delivery(parcel, answer)


async def test_a_test_message_goes_at_once_and_each_is_one_of_its_own(backend: Backend, store: Store) -> None:
    channel = await a_channel(store)
    first, second = await store.test_channel(channel.id), await store.test_channel(channel.id)
    assert (first.channel, first.channel_id, first.event) == ("ops", channel.id, "test")
    assert (first.state, first.tries, first.tenant) == (DeliveryState.PENDING, 0, None)
    parcels = await store.take_deliveries()
    assert {parcel.key for parcel in parcels} == {f"test.{first.id}", f"test.{second.id}"}
    event = msgspec.json.decode(first.body)
    assert (event["id"], event["type"]) == (first.key, "dev.tidewheel.test")
    assert event["time"] == backend.clock.now().isoformat().replace("+00:00", "Z")
    assert parcels[0].text.startswith("A test message of Tidewheel\n")


@pytest.mark.parametrize(("answer", "state"), [(OK, DeliveryState.SENT), (BUSY, DeliveryState.FAILED)])
async def test_a_test_message_is_tried_once(
    backend: Backend, store: Store, answer: Answer, state: DeliveryState
) -> None:
    await store.test_channel((await a_channel(store)).id)
    await send(store, answer)
    (delivery,) = await store.deliveries()
    assert (delivery.state, delivery.answer, len(delivery.attempts)) == (state, answer.told, 1)
    await backend.clock.advance(DAY)
    assert await store.take_deliveries() == []


async def test_a_channel_that_is_disabled_can_be_tried(store: Store) -> None:
    channel = await a_channel(store)
    await store.test_channel(channel.id)
    await send(store, GONE)
    assert (await store.channels())[0].disabled
    delivery = await store.test_channel(channel.id)
    await send(store, OK)
    assert (await store.deliveries())[0].id == delivery.id
    assert (await store.deliveries())[0].state is DeliveryState.SENT


async def test_a_tenant_tries_its_own_channels_alone(store: Store) -> None:
    channel = await a_channel(store, "acme")
    assert (await store.test_channel(channel.id, tenant="acme")).tenant == "acme"
    with pytest.raises(NotFound, match="channel"):
        await store.test_channel(channel.id, tenant="other")
    assert len(await store.deliveries()) == 1


async def test_whoever_waits_for_a_test_message_hears_what_it_came_to(store: Store) -> None:
    looks = 0

    async def pause(seconds: float) -> None:
        nonlocal looks
        assert seconds == LOOK_AGAIN
        looks += 1
        if looks == 2:
            await send(store, BUSY)

    channel = await a_channel(store)
    delivery = await tried(store, await store.test_channel(channel.id), pause, wait=A_WHILE)
    assert (delivery.state, delivery.answer, looks) == (DeliveryState.FAILED, "503", 2)
    later = await tried(store, await store.test_channel(channel.id), pause, wait=A_WHILE)
    assert (later.state, later.attempts, looks) == (DeliveryState.PENDING, (), 6)


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("json://127.0.0.1/x", "address: json is not offered: use a webhook"),
        ("file:///etc/x", "address: file is not offered: it belongs to the machine of the sender"),
        ("mailto://u:p@host?pgppub=/etc/x", "address: pgppub is not offered: it names a file of the sender"),
    ],
)
async def test_a_service_that_is_not_offered_is_refused_when_it_is_named(store: Store, address: str, why: str) -> None:
    with pytest.raises(Invalid, match=why.replace("?", ".")):
        await store.add_channel(ChannelSpec(name="ops", address=address))
    assert await store.channels() == []
