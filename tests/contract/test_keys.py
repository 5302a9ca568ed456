"""Keys and tenants: given out, recognised, revoked, and bounded to their tenant."""

import asyncio
import secrets
from datetime import timedelta
from uuid import uuid4

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, some_jobs
from tests.contract.backends import START, Backend
from tests.contract.steps import claim, finish, stores_on
from tidewheel.errors import Forbidden, Invalid, NotFound
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.api_key import ENTROPY, KeySpec, NewKey, digest_of, make_key, recognise
from tidewheel.model.audit import AuditFilter
from tidewheel.model.tenant import Tenant
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store

ROOT = Actor(role=Role.ADMIN, name="root")
ADA = Actor(role=Role.ADMIN, tenant="ada", name="ada's admin", key_id=uuid4())


def a_key() -> NewKey:
    return make_key(secrets.token_bytes(ENTROPY))


async def test_a_key_comes_back_as_it_was_made_and_its_secret_does_not(store: Store) -> None:
    made = a_key()
    spec = KeySpec(name="ci", role=Role.SUBMITTER, tenant="ada", lifetime=DAY, rate=2.5, burst=7)
    key = await store.create_key(spec, made.proof, by=ROOT)
    assert (key.prefix, key.name, key.role, key.tenant) == (made.proof.prefix, "ci", Role.SUBMITTER, "ada")
    assert (key.created_at, key.created_by, key.expires_at) == (START, "root", START + DAY)
    assert (key.rate, key.burst, key.last_used_at, key.revoked_at) == (2.5, 7, None, None)
    known = await store.find_key(made.proof.prefix)
    assert known is not None
    assert (known.key, known.now, recognise(digest_of(made.text), known)) == (key, START, key)
    assert known.digest != made.text.encode()
    assert await store.keys() == [key]
    (entry,) = (await store.audited(AuditFilter(action=Action.KEYS_WRITE))).entries
    assert (entry.actor, entry.tenant, entry.subject, entry.detail["did"]) == ("root", "ada", str(key.id), "create")
    assert made.text not in repr((known, entry))


async def test_a_prefix_that_nobody_has_finds_nothing(store: Store) -> None:
    assert await store.find_key("--------") is None
    assert await store.find_key("'; DROP TABLE api_key") is None


async def test_a_key_expires_by_the_clock_of_the_store(backend: Backend, store: Store) -> None:
    made = a_key()
    await store.create_key(KeySpec(name="short", role=Role.VIEWER, lifetime=HOUR), made.proof, by=ROOT)
    await backend.clock.advance(HOUR - SECOND)
    assert recognise(digest_of(made.text), await store.find_key(made.proof.prefix)) is not None
    await backend.clock.advance(SECOND)
    assert recognise(digest_of(made.text), await store.find_key(made.proof.prefix)) is None


async def test_a_revoked_key_opens_nothing_in_any_process_and_stays_in_the_list(backend: Backend) -> None:
    here, there = await stores_on(backend, 2)
    made = a_key()
    key = await here.create_key(KeySpec(name="k", role=Role.ADMIN), made.proof, by=ROOT)
    revoked = await here.revoke_key(key.id, by=ROOT)
    assert revoked.revoked_at == START
    assert recognise(digest_of(made.text), await there.find_key(made.proof.prefix)) is None
    await backend.clock.advance(MINUTE)
    assert await there.revoke_key(key.id, by=ROOT) == revoked
    assert await there.keys() == [revoked]
    did = [entry.detail["did"] for entry in (await there.audited(AuditFilter())).entries]
    assert did == ["revoke", "create"]


async def test_that_a_key_was_used_is_written_once_a_minute(backend: Backend, store: Store) -> None:
    key = await store.create_key(KeySpec(name="k", role=Role.VIEWER), a_key().proof, by=ROOT)
    seen = []
    for step in (timedelta(0), 59 * SECOND, SECOND, 61 * SECOND):
        await backend.clock.advance(step)
        await store.note_key_use(key.id)
        seen.append((await store.keys())[0].last_used_at)
    assert seen == [START, START, START + MINUTE, START + 121 * SECOND]
    await store.note_key_use(uuid4())


async def test_of_many_servers_that_start_at_once_one_makes_the_first_key(backend: Backend) -> None:
    stores = await stores_on(backend, 4)
    assert not await stores[0].has_keys()
    spec = KeySpec(name="first", role=Role.ADMIN)
    made = await asyncio.gather(*(store.create_first_key(spec, a_key().proof, by=ROOT) for store in stores * 3))
    (key,) = [key for key in made if key is not None]
    assert await stores[1].keys() == [key]
    await stores[2].revoke_key(key.id, by=ROOT)
    assert await stores[3].create_first_key(spec, a_key().proof, by=ROOT) is None
    assert await stores[3].has_keys()


async def test_keys_are_listed_by_pages_newest_first_and_by_tenant(store: Store) -> None:
    made = [
        await store.create_key(KeySpec(name=f"k{n}", role=Role.VIEWER, tenant=tenant), a_key().proof, by=ROOT)
        for n, tenant in enumerate(("ada", None, "bob", "ada"))
    ]
    first = await store.keys(limit=3)
    assert first == made[:0:-1]
    assert await store.keys(limit=3, after=first[-1].id) == made[:1]
    assert [key.name for key in await store.keys(tenant="ada")] == ["k3", "k0"]
    assert await store.keys(tenant="nobody") == []


async def test_an_admin_of_one_tenant_reaches_no_key_of_another(store: Store) -> None:
    for tenant in (None, "bob"):
        with pytest.raises(Forbidden):
            await store.create_key(KeySpec(name="k", role=Role.VIEWER, tenant=tenant), a_key().proof, by=ADA)
        made = a_key()
        key = await store.create_key(KeySpec(name="k", role=Role.VIEWER, tenant=tenant), made.proof, by=ROOT)
        with pytest.raises(NotFound):
            await store.revoke_key(key.id, by=ADA)
        assert recognise(digest_of(made.text), await store.find_key(made.proof.prefix)) == key
    own = await store.create_key(KeySpec(name="k", role=Role.VIEWER, tenant="ada"), a_key().proof, by=ADA)
    assert (await store.revoke_key(own.id, by=ADA)).revoked_at == START
    with pytest.raises(NotFound):
        await store.revoke_key(uuid4(), by=ROOT)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 201),
        ("name", "a\nb"),
        ("name", "nul\0"),
        ("role", "king"),
        ("tenant", "no tenant"),
        ("tenant", "t" * 201),
        ("lifetime", timedelta(0)),
        ("lifetime", timedelta(days=-1)),
        ("lifetime", timedelta(days=3651)),
        ("rate", 0.0),
        ("rate", float("nan")),
        ("rate", float("inf")),
        ("burst", 0),
        ("burst", 10**9),
    ],
)
async def test_a_bad_key_is_refused_by_its_field_and_nothing_is_stored(store: Store, field: str, value: object) -> None:
    spec = KeySpec(**{"name": "k", "role": Role.VIEWER, field: value})  # type: ignore[arg-type]
    with pytest.raises(Invalid) as refused:
        await store.create_key(spec, a_key().proof, by=ROOT)
    assert refused.value.field == field
    assert await store.keys() == []
    assert (await store.audited(AuditFilter())).entries == []


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_pages_have_bounds(store: Store, limit: int) -> None:
    with pytest.raises(Invalid, match="limit"):
        await store.keys(limit=limit)
    with pytest.raises(Invalid, match="limit"):
        await store.audited(AuditFilter(), limit=limit)


async def test_a_tenant_is_known_from_its_first_job_or_from_its_settings(store: Store) -> None:
    assert await store.tenants() == []
    await store.submit(some_jobs(1, tenant="bob"))
    wanted = Tenant(name="ada", weight=0.1, max_queued=0, max_payload=1000)
    assert await store.set_tenant(wanted, by=ROOT) == wanted
    assert await store.tenants() == [wanted, Tenant(name="bob")]
    assert await store.tenants(tenant="bob") == [Tenant(name="bob")]
    assert await store.tenants(tenant="carl") == []
    await store.set_tenant(Tenant(name="ada"), by=ROOT)
    assert (await store.tenants())[0] == Tenant(name="ada")
    entries = (await store.audited(AuditFilter(tenant="ada"))).entries
    assert [entry.detail for entry in entries] == [
        {"weight": 1.0},
        {"weight": 0.1, "max_queued": 0, "max_payload": 1000},
    ]


async def test_a_weight_counts_from_the_next_claim_on_in_every_process(backend: Backend, worker: Worker) -> None:
    here, there = await stores_on(backend, 2)
    for tenant in ("ada", "bob"):
        await here.submit(some_jobs(200, tenant=tenant))
    await finish(there, worker, await claim(there, worker, 10))
    await here.set_tenant(Tenant(name="ada", weight=4), by=ROOT)
    runs = [run for _ in range(10) for run in await claim(there, worker, 10)]
    assert 75 <= sum(run.tenant == "ada" for run in runs) <= 85


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a b"),
        ("name", ""),
        ("weight", 0.0),
        ("weight", -1.0),
        ("weight", float("nan")),
        ("weight", float("inf")),
        ("max_queued", -1),
        ("max_payload", 1),
        ("max_payload", 10**9),
    ],
)
async def test_a_bad_tenant_is_refused_by_its_field(store: Store, field: str, value: object) -> None:
    with pytest.raises(Invalid) as refused:
        await store.set_tenant(Tenant(**{"name": "ada", field: value}), by=ROOT)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert await store.tenants() == []


async def test_tenants_are_not_for_an_admin_of_one(store: Store) -> None:
    with pytest.raises(Forbidden):
        await store.set_tenant(Tenant(name="ada"), by=ADA)


async def test_unfinished_jobs_of_a_tenant_are_counted_up_to_a_bound(store: Store, worker: Worker) -> None:
    await store.submit([*some_jobs(5, tenant="ada"), *some_jobs(3, tenant="bob")])
    assert await store.count_unfinished("ada", 100) == 5
    assert await store.count_unfinished("ada", 4) == 4
    assert await store.count_unfinished("carl", 100) == 0
    await finish(store, worker, await claim(store, worker, 100))
    assert await store.count_unfinished("ada", 100) == 0
