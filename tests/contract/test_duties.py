"""Duties: held by one node at a time, shared evenly, and passed on when their holder is gone."""

import asyncio
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from tests.builders import HOUR, MINUTE, SECOND, a_job, a_worker
from tests.contract.backends import Backend
from tests.contract.steps import submit
from tidewheel.errors import Invalid
from tidewheel.model.duty import MOST_NODES, Agenda, Duty
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS

PARTS = [f"sort/{number}" for number in range(8)]


async def share(store: Store, node: UUID, *names: str, ttl: timedelta = 5 * SECOND) -> dict[str, int]:
    """Return the names of the duties that are a node's, with their epochs."""
    return {duty.name: duty.epoch for duty in await duties(store, node, *names, ttl=ttl)}


async def duties(store: Store, node: UUID, *names: str, ttl: timedelta = 5 * SECOND) -> list[Duty]:
    held = await store.share_duties(node, names or ["reaper"], ttl)
    assert held is not None
    return held


async def test_a_duty_is_held_by_one_at_a_time(backend: Backend, store: Store) -> None:
    first, second = uuid4(), uuid4()
    (taken,) = await duties(store, first)
    assert (taken.name, taken.holder, taken.until) == ("reaper", first, backend.clock.now() + 5 * SECOND)
    assert await share(await backend.open(), second) == {}
    assert await share(store, first) == {"reaper": taken.epoch}


async def test_a_duty_is_renewed_by_its_holder(backend: Backend, store: Store) -> None:
    holder = uuid4()
    (taken,) = await duties(store, holder)
    for _ in range(3):
        await backend.clock.advance(4 * SECOND)
        (renewed,) = await duties(store, holder)
        assert (renewed.epoch, renewed.until) == (taken.epoch, backend.clock.now() + 5 * SECOND)
    assert await share(store, uuid4()) == {}


async def test_a_duty_whose_holder_is_silent_passes_to_another(backend: Backend, store: Store) -> None:
    first, second = uuid4(), uuid4()
    taken = await share(store, first)
    await backend.clock.advance(5 * SECOND)
    passed = await share(store, second)
    assert passed["reaper"] > taken["reaper"]
    assert await share(store, first) == {}


async def test_a_holder_that_comes_back_before_anyone_asked_goes_on(backend: Backend, store: Store) -> None:
    node = uuid4()
    taken = await share(store, node)
    await backend.clock.advance(MINUTE)
    assert await share(store, node) == taken


async def test_duties_that_were_given_up_are_free_at_once(store: Store) -> None:
    first, second = uuid4(), uuid4()
    taken = await share(store, first, ttl=HOUR)
    await store.leave_duties(second)
    assert await share(store, second, ttl=HOUR) == {}, "only its holder may give it up"
    await store.leave_duties(first)
    passed = await share(store, second, ttl=HOUR)
    assert passed["reaper"] > taken["reaper"]
    await store.leave_duties(uuid4())


async def test_the_epoch_of_a_duty_rises_over_a_gap_too(store: Store) -> None:
    """A holder that comes back must not look like its former self if another was there in between."""
    first, second = uuid4(), uuid4()
    epochs = []
    for holder in (first, second, first):
        epochs.append((await share(store, holder, ttl=HOUR))["reaper"])
        await store.leave_duties(holder)
    assert epochs == sorted(set(epochs))


async def test_nodes_share_the_parts_of_a_duty_evenly(backend: Backend, store: Store) -> None:
    nodes = [uuid4() for _ in range(3)]
    held: dict[UUID, set[str]] = {}
    for node in nodes[:1] + nodes[:2] * 2 + nodes * 3:
        held[node] = set(await share(store, node, *PARTS, ttl=MINUTE))
    assert sorted(len(names) for names in held.values()) == [2, 3, 3]
    assert sorted(name for names in held.values() for name in names) == PARTS
    await backend.clock.advance(30 * SECOND)
    for node in nodes[:2]:
        await share(store, node, *PARTS, ttl=MINUTE)
    await backend.clock.advance(31 * SECOND)  # the third is gone
    held = {node: set(await share(store, node, *PARTS, ttl=MINUTE)) for node in nodes[:2]}
    assert [len(names) for names in held.values()] == [4, 4]


async def test_a_duty_goes_to_a_node_that_is_ready_for_it(store: Store) -> None:
    old, new = uuid4(), uuid4()
    await share(store, old, "a", "b", ttl=HOUR)
    assert set(await share(store, new, "a", "b", "c", ttl=HOUR)) == {"c"}
    assert set(await share(store, old, "a", "b", ttl=HOUR)) == {"a", "b"}
    assert set(await share(store, old, "a", ttl=HOUR)) == {"a"}, "it is no longer ready for the other"
    assert set(await share(store, new, "a", "b", "c", ttl=HOUR)) == {"b", "c"}


async def test_of_many_nodes_that_ask_at_once_each_duty_has_one_holder(backend: Backend, store: Store) -> None:
    stores = [store, *[await backend.open() for _ in range(3)]]
    nodes = [uuid4() for _ in stores]
    for _ in range(3):
        held = await asyncio.gather(
            *(share(one, node, *PARTS, ttl=MINUTE) for one, node in zip(stores, nodes, strict=True))
        )
        names = [name for mine in held for name in mine]
        assert len(names) == len(set(names))
    assert sorted(names) == PARTS
    assert {len(mine) for mine in held} == {2}


async def test_of_very_many_nodes_some_stand_by_until_they_are_needed(backend: Backend, store: Store) -> None:
    nodes = [uuid4() for _ in range(MOST_NODES + 2)]
    for node in nodes[:MOST_NODES]:
        await share(store, node, *PARTS, ttl=MINUTE)
    assert await store.share_duties(nodes[-1], PARTS, MINUTE) is None
    assert await backend.count("keeper") == MOST_NODES
    assert await share(store, nodes[0], *PARTS, ttl=MINUTE), "who is there stays"
    await store.leave_duties(nodes[0])
    assert await store.share_duties(nodes[-1], PARTS, MINUTE) is not None
    assert await store.share_duties(nodes[-2], PARTS, MINUTE) is None
    await backend.clock.advance(2 * MINUTE)
    assert sorted(await share(store, nodes[-2], *PARTS)) == PARTS


async def test_nodes_that_are_gone_for_a_day_are_forgotten(backend: Backend, store: Store) -> None:
    await share(store, uuid4())
    await backend.clock.advance(timedelta(days=2))
    await store.retire({})
    assert await backend.count("keeper") == 0


async def test_bad_names_and_leases_of_duties_are_refused(store: Store) -> None:
    with pytest.raises(Invalid, match="names"):
        await store.share_duties(uuid4(), ["two words"], SECOND)
    with pytest.raises(Invalid, match="ttl"):
        await store.share_duties(uuid4(), ["reaper"], 0 * SECOND)


async def test_the_agenda_of_an_idle_store_is_empty(backend: Backend, store: Store, worker: Worker) -> None:
    del worker
    await submit(store)
    agenda = await store.agenda()
    nothing = (None,) * SHARDS
    assert agenda == Agenda(now=backend.clock.now(), next_fires=nothing, next_decisions=nothing)


async def test_the_agenda_tells_what_there_is_to_do(backend: Backend, store: Store) -> None:
    now = backend.clock.now()
    await store.register(a_worker(ttl=5 * SECOND))
    await submit(store, start_by=now + HOUR)
    await submit(store, start_by=now + MINUTE, delay=SECOND)
    assert (await store.agenda()).next_start_by == now + MINUTE
    await backend.clock.advance(6 * SECOND)
    assert (await store.agenda()).lapsed
    gate = await store.close_gate(GateSpec(mode=GateMode.DROP, kind="echo"))
    assert (await store.agenda()).dropping
    await store.open_gate(gate.id)
    assert not (await store.agenda()).dropping
    parent = await submit(store)
    await store.submit([a_job(after=(parent,))] * 1_500)
    await store.cancel(parent)
    assert (await store.agenda()).telling
    while await store.unblock():
        pass
    assert not (await store.agenda()).telling
