"""Quotas of tenants."""

import asyncio

import pytest

from tests.access.conftest import ROOT, SECOND
from tests.builders import some_jobs
from tidewheel.errors import Invalid, TooMany
from tidewheel.model.tenant import Tenant
from tidewheel.server.access import Quotas
from tidewheel.store.sqlite import SqliteStore
from tidewheel.testing import FakeClock


async def test_a_tenant_without_bounds_brings_what_it_likes(store: SqliteStore, clock: FakeClock) -> None:
    quotas = Quotas(store, clock)
    await quotas.check("ada", [10**6] * 1000)


async def test_jobs_that_have_not_ended_are_counted_with_those_just_let_in(
    store: SqliteStore, clock: FakeClock
) -> None:
    await store.set_tenant(Tenant(name="ada", max_queued=5), by=ROOT)
    await store.submit(some_jobs(2, tenant="ada"))
    quotas = Quotas(store, clock)
    await quotas.check("ada", [2, 2])
    with pytest.raises(TooMany) as full:
        await quotas.check("ada", [2, 2])
    assert (str(full.value), full.value.retry_after) == (
        "too many jobs: this tenant may have 5 that have not ended: try again in 1 s",
        1,
    )
    await quotas.check("ada", [2])
    await quotas.check("bob", [2] * 50)
    await clock.advance(SECOND)
    await quotas.check("ada", [2] * 3)  # what was let in was never stored


async def test_what_was_not_stored_after_all_is_given_back(store: SqliteStore, clock: FakeClock) -> None:
    await store.set_tenant(Tenant(name="ada", max_queued=1), by=ROOT)
    quotas = Quotas(store, clock)
    await quotas.check("ada", [2])
    quotas.give_back("ada", 1)
    quotas.give_back("nobody", 1)
    await quotas.check("ada", [2])


async def test_many_at_once_do_not_slip_through_together(store: SqliteStore, clock: FakeClock) -> None:
    await store.set_tenant(Tenant(name="ada", max_queued=5), by=ROOT)
    quotas = Quotas(store, clock)
    answers = await asyncio.gather(*(quotas.check("ada", [2]) for _ in range(50)), return_exceptions=True)
    assert answers.count(None) == 5


async def test_arguments_that_are_too_large_are_refused_by_their_place(store: SqliteStore, clock: FakeClock) -> None:
    await store.set_tenant(Tenant(name="ada", max_payload=100), by=ROOT)
    quotas = Quotas(store, clock)
    await quotas.check("ada", [100])
    with pytest.raises(Invalid, match=r"^args: must have at most 100 bytes as JSON in this tenant, not 101"):
        await quotas.check("ada", [101])
    with pytest.raises(Invalid, match=r"^specs\[1\]\.args"):
        await quotas.check("ada", [5, 101])


async def test_a_tenant_that_may_have_none_has_none(store: SqliteStore, clock: FakeClock) -> None:
    await store.set_tenant(Tenant(name="ada", max_queued=0), by=ROOT)
    with pytest.raises(TooMany):
        await Quotas(store, clock).check("ada", [2])
