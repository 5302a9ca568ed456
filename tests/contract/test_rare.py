"""What few jobs have is found by the first page, however many others came after them."""

from collections.abc import Callable
from datetime import timedelta
from random import Random
from typing import Any
from uuid import UUID

import pytest

from tests.builders import DAY, HOUR, MINUTE, SECOND, a_job, a_schedule, some_jobs
from tests.contract.backends import Backend
from tests.contract.planning import record_ahead
from tests.contract.steps import claim, everything, finish, settle, start, stores_on, submit
from tidewheel.model import job_phrases
from tidewheel.model.access import Actor, Role
from tidewheel.model.job import Job, Options
from tidewheel.model.outcome import Failure
from tidewheel.model.states import FINAL, Cause, State
from tidewheel.model.worker import Worker
from tidewheel.store.base import JobFilter, Store
from tidewheel.store.pages import Page

DEAD = frozenset({State.DEAD})


@pytest.fixture(autouse=True)
def _pages_look_at_little(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.searching.SCAN", 10)


async def later(backend: Backend, by: timedelta) -> Store:
    """Let time pass, and return a store that knows: one that is open learns it when it has to do with it."""
    await backend.clock.advance(by)
    return await backend.open()


async def bury(backend: Backend, store: Store, worker: Worker | None = None) -> None:
    """Let many jobs come after those that are there, some of which have failed."""
    for _ in range(3):
        await (await later(backend, MINUTE)).submit(some_jobs(30, labels={"team": "blue"}))
    if worker is not None:
        await finish(store, worker, await claim(store, worker, 60), Cause.GAVE_UP)


async def die(store: Store, worker: Worker, message: str, **fields: Any) -> UUID:
    run = await start(store, worker, **fields)
    await settle(store, worker, run, Cause.GAVE_UP, error=Failure(reason="error", message=message))
    return run.job_id


async def noted(backend: Backend) -> tuple[int, int]:
    """Return how many phrases and moments there are, whatever else a store keeps beside them."""
    return await backend.count("phrase"), await backend.count("phrase_moment")


def beyond(now: tuple[int, int], before: tuple[int, int]) -> tuple[int, int]:
    return now[0] - before[0], now[1] - before[1]


def ids(page: Page) -> list[UUID]:
    assert page.next is None
    return [job.id for job in page.jobs]


@pytest.mark.parametrize("tenant", [None, "default"])
async def test_a_label_of_one_job_leads_straight_to_it(
    backend: Backend, store: Store, worker: Worker, tenant: str | None
) -> None:
    rare = await submit(store, labels={"order": "Ord-7", "team": "blue"}, delay=HOUR)
    await bury(backend, store, worker)
    for more in ({}, {"kind": "echo"}, {"states": frozenset({State.QUEUED})}, {"text": "ord-7"}, {"text": "blue"}):
        assert ids(await store.find(JobFilter(label=("order", "Ord-7"), tenant=tenant, **more))) == [rare], more
    for label in (("order", "ord-7"), ("order", "Ord-"), ("order", "Ord-8"), ("Order", "Ord-7"), ("order=", "Ord-7")):
        if "=" not in label[0]:
            assert await store.find(JobFilter(label=label, tenant=tenant)) == Page([]), label
    assert ids(await store.find(JobFilter(label=("order", "Ord-7"), tenant=tenant, states=DEAD))) == []


@pytest.mark.parametrize("tenant", [None, "default"])
async def test_a_word_of_the_error_of_one_job_leads_straight_to_it(
    backend: Backend, store: Store, worker: Worker, tenant: str | None
) -> None:
    rare = await die(store, worker, 'Disk "vol-7731" is 100% full')
    cancelled = await submit(store)
    await store.cancel(cancelled, reason="no more of vol-88")
    await bury(backend, store, worker)
    for asked in ("vol-7731", "l-77", "100%", '"7731"', "DISK full", "disk echo", '"is 100% f"'):
        assert ids(await store.find(JobFilter(text=asked, tenant=tenant))) == [rare], asked
    assert ids(await store.find(JobFilter(text="vol-7731", tenant=tenant, states=DEAD, kind="echo"))) == [rare]
    assert ids(await store.find(JobFilter(error="-7731", tenant=tenant))) == [rare]
    assert ids(await store.find(JobFilter(text="vol-", tenant=tenant))) == [cancelled, rare]
    for where in (JobFilter(text="vol-7732"), JobFilter(text="vol_7731"), JobFilter(error="VOL-7731")):
        assert await store.find(where) == Page([]), where


async def test_words_of_names_and_descriptions_and_parts_of_labels_lead_straight_to_a_job(
    backend: Backend, store: Store
) -> None:
    options = Options(name="Monthly Report", description="für den Vorstand")
    rare = await submit(store, options=options, labels={"city": "Köln", "path": "a=b"})
    await bury(backend, store)
    for asked in ("monthly", "y rep", "vorstand", "für", "köln", "city=k", "path=a=b", "report vorstand city="):
        assert ids(await store.find(JobFilter(text=f'"{asked}"' if " r" in asked else asked))) == [rare], asked
    assert await store.find(JobFilter(text='"report city"')) == Page([])
    assert await store.find(JobFilter(text="monthly blue")) == Page([])


async def test_a_word_in_a_text_that_is_too_long_to_be_noted_leads_to_its_job(
    backend: Backend, store: Store, worker: Worker
) -> None:
    wide = await submit(store, labels={f"label-{n}": f"{n}-" + "w" * 190 for n in range(5)}, delay=HOUR)
    told = await submit(store, options=Options(description="d" * 5_000 + " kettle"), delay=HOUR)
    dead = await die(store, worker, "m" * 1_500 + " anchor")
    await bury(backend, store)
    for text, job in (("kettle", told), ("anchor", dead), ("d" * 390, told), ("label-4=4-w", wide)):
        assert ids(await store.find(JobFilter(text=f'"{text}"'))) == [job], text[:20]
    assert ids(await store.find(JobFilter(error="anchor"))) == [dead]
    assert ids(await store.find(JobFilter(label=("label-4", "4-" + "w" * 190), tenant="default"))) == [wide]


async def test_words_that_no_index_has_are_found_by_walking_on(backend: Backend, store: Store) -> None:
    short = await submit(store, labels={"q": "ü"})
    await bury(backend, store)
    for asked in ("=ü", "ü"):
        page = await store.find(JobFilter(text=asked))
        assert (page.jobs, page.next is not None) == ([], True), asked
        assert [job.id for job in await everything(store, JobFilter(text=asked))] == [short], asked


@pytest.mark.parametrize("tenant", [None, "default"])
async def test_a_rare_kind_and_a_word_of_it_lead_straight_to_its_job(
    backend: Backend, store: Store, worker: Worker, tenant: str | None
) -> None:
    rare = await submit(store, "Mail.Needle", labels={"team": "blue"}, delay=HOUR)
    await bury(backend, store, worker)
    for more in ({}, {"label": ("team", "blue")}, {"states": frozenset({State.QUEUED})}, {"text": "needle blue"}):
        assert ids(await store.find(JobFilter(kind="Mail.Needle", tenant=tenant, **more))) == [rare], more
    for asked in ("needle", "il.nee", "MAIL", "needle team="):
        assert ids(await store.find(JobFilter(text=asked, tenant=tenant))) == [rare], asked
    assert ids(await store.find(JobFilter(kind="Mail.Needle", tenant=tenant, states=DEAD))) == []
    for where in (JobFilter(kind="mail.needle"), JobFilter(kind="Mail.Needl"), JobFilter(text="mail echo")):
        assert await store.find(where) == Page([]), where


async def test_jobs_that_come_in_other_ways_are_found_by_their_kinds(backend: Backend, store: Store) -> None:
    parent = await submit(store, idempotency_key="first")
    chained = await submit(store, "in.chain", after=(parent,))
    unique = await submit(store, "with.key", unique_key="one")
    triggered = await store.trigger_schedule((await store.create_schedule(a_schedule(kind="by.hand"))).id)
    await store.create_schedule(a_schedule("planned", kind="by.plan"))
    await record_ahead(store, MINUTE)
    (planned,) = (await store.find(JobFilter(kind="by.plan"))).jobs
    await bury(backend, store)
    wanted = {"in.chain": chained, "with.key": unique, "by.hand": triggered.occurrence.job_id, "by.plan": planned.id}
    for kind, found in wanted.items():
        assert found in ids(await store.find(JobFilter(kind=kind))), kind


async def test_every_job_of_a_second_is_found_by_its_kind_whichever_process_took_it_in(backend: Backend) -> None:
    stores = await stores_on(backend, 3)
    made = [await submit(stores[n % 3], "needle") for n in range(9)]
    await bury(backend, stores[0])
    for store in stores:
        assert ids(await store.find(JobFilter(kind="needle"))) == sorted(made, reverse=True)


@pytest.mark.native("what ails its database a server tells nobody")
async def test_a_submit_that_was_undone_hides_none_that_comes_after_it_in_the_same_second(
    backend: Backend, store: Store
) -> None:
    await store.make_lanes([a_job("needle"), a_job("pin"), a_job()])  # so that a submit is one statement
    await backend.refuse_jobs_with_label("unwanted")
    for kind, key in (("needle", None), ("pin", "k")):  # one with a key may first write what came before it
        with pytest.raises(Exception, match=r"refused by the test|full|room"):
            await store.submit([a_job(kind), a_job(labels={"is": "unwanted"}, unique_key=key)])
    made = {kind: await submit(store, kind) for kind in ("needle", "pin")}
    await bury(backend, store)
    for kind, job_id in made.items():
        assert ids(await store.find(JobFilter(kind=kind))) == [job_id]


@pytest.mark.native("erasing is tested where it is done")
async def test_an_erased_job_hides_none_that_comes_after_it_in_the_same_second(
    backend: Backend, store: Store, worker: Worker
) -> None:
    """Its name is its kind, of which the process remembers that it is noted."""
    await store.make_lanes([a_job("Needle")])
    gone = await die(store, worker, "sad", kind="Needle", options=Options(name="needle"))
    await store.erase(gone, by=Actor(role=Role.ADMIN, name="root"))
    after = await submit(store, "Needle")
    await bury(backend, store)
    assert ids(await store.find(JobFilter(kind="Needle"))) == [after, gone]


async def test_what_one_tenant_says_leads_nobody_else_anywhere(backend: Backend, store: Store, worker: Worker) -> None:
    mine = await submit(store, tenant="mine", labels={"order": "7"}, delay=HOUR)
    theirs = await submit(store, tenant="theirs", labels={"order": "7"}, delay=HOUR)
    died = await die(store, worker, "vol-7731 is gone", tenant="theirs")
    await bury(backend, store)
    assert ids(await store.find(JobFilter(label=("order", "7"), tenant="mine"))) == [mine]
    assert ids(await store.find(JobFilter(text="order=7", tenant="theirs"))) == [theirs]
    assert ids(await store.find(JobFilter(label=("order", "7")))) == [theirs, mine]
    assert await store.find(JobFilter(text="vol-7731", tenant="mine")) == Page([])
    assert ids(await store.find(JobFilter(text="vol-7731", tenant="theirs"))) == [died]


async def test_a_kind_of_one_tenant_leads_nobody_else_anywhere(backend: Backend, store: Store) -> None:
    names = ("mine", "theirs", "others")
    await store.make_lanes([a_job("needle", tenant=name) for name in names])
    mine, theirs = [await submit(store, "needle", tenant=name) for name in names[:2]]
    for name in names:
        await (await later(backend, MINUTE)).submit(some_jobs(30, tenant=name))
    both: tuple[dict[str, Any], ...] = ({"kind": "needle"}, {"text": "needle"})
    for asked in both:
        assert ids(await store.find(JobFilter(tenant="mine", **asked))) == [mine]
        assert ids(await store.find(JobFilter(tenant="theirs", **asked))) == [theirs]
        assert await store.find(JobFilter(tenant="others", **asked)) == Page([])
        assert ids(await store.find(JobFilter(**asked))) == [theirs, mine]


async def test_a_job_that_went_round_again_is_found_by_what_it_says_now(
    backend: Backend, store: Store, worker: Worker
) -> None:
    died = await die(store, worker, "first trouble", labels={"order": "7"})
    assert await store.redrive([died]) == [died]
    assert await store.find(JobFilter(text="first")) == Page([])
    (run,) = await claim(store, worker, 1)
    await settle(store, worker, run, Cause.GAVE_UP, error=Failure(reason="error", message="second trouble"))
    await bury(backend, store)
    assert await store.find(JobFilter(text="first")) == Page([])
    for where in (JobFilter(text="second"), JobFilter(label=("order", "7")), JobFilter(text="trouble", states=DEAD)):
        assert ids(await store.find(where)) == [died], where


@pytest.mark.parametrize(("page", "stretches"), [(1, 100), (3, 2), (50, 100)])
async def test_every_way_finds_the_same_jobs_in_the_same_order(
    backend: Backend, worker: Worker, monkeypatch: pytest.MonkeyPatch, page: int, stretches: int
) -> None:
    """Few moments are read at a time, and perhaps few stretches, so that all ways of going on are gone."""
    for name, value in (("MOST_STRETCHES", stretches), ("MOST_MOMENTS", 6), ("_NEAR", 0)):
        monkeypatch.setattr(job_phrases, name, value)
    for name in ("postgres", "sqlite"):
        monkeypatch.setattr(f"tidewheel.store.{name}.tracking.MOST_PHRASES", 4)
    random = Random(7)
    store = latest = await backend.open()
    made: list[UUID] = []
    for number in range(60):
        labels = {"zone": random.choice("abc"), "order": str(number)} if random.random() < 0.6 else {}
        kind = random.choice(["echo", "echo", "Ship.box"])
        made.append(await submit(latest, kind, labels=labels, tenant=random.choice(["one", "two"])))
        if number % 4 == 0:
            latest = await later(backend, random.choice([1, 2, 30]) * SECOND)
    for run in (await claim(store, worker, 60))[::2]:
        error = Failure(reason="error", message=f"shelf {random.choice('xyz')}{random.choice('12')} broke")
        await settle(store, worker, run, Cause.GAVE_UP, error=error)
    jobs = [await store.get(job_id) for job_id in reversed(made)]
    checks: list[tuple[dict[str, Any], Callable[[Job], bool]]] = [
        ({"label": ("zone", "a")}, lambda job: job.labels.get("zone") == "a"),
        ({"label": ("zone", "a"), "text": "shelf"}, lambda job: job.labels.get("zone") == "a" and bool(job.error)),
        ({"text": "shelf x1"}, lambda job: job.error is not None and "x1" in job.error.message),
        ({"text": "z2"}, lambda job: job.error is not None and "z2" in job.error.message),
        ({"text": '"z2 broke"'}, lambda job: job.error is not None and "z2" in job.error.message),
        ({"text": "order=1"}, lambda job: job.labels.get("order", "").startswith("1")),
        ({"error": "shelf y"}, lambda job: job.error is not None and "shelf y" in job.error.message),
        ({"kind": "Ship.box"}, lambda job: job.kind == "Ship.box"),
        ({"kind": "Ship.box", "text": "shelf"}, lambda job: job.kind == "Ship.box" and bool(job.error)),
        ({"text": "ship"}, lambda job: job.kind == "Ship.box"),
        ({"text": "zone=b", "states": DEAD}, lambda job: job.labels.get("zone") == "b" and job.state is State.DEAD),
    ]
    for fields, fits in checks:
        for tenant in (None, "two"):
            found = await everything(store, JobFilter(tenant=tenant, **fields), page=page)
            wanted = [job.id for job in jobs if fits(job) and tenant in (None, job.tenant)]
            assert [job.id for job in found] == wanted, (fields, tenant)


@pytest.mark.native("erasing is tested where it is done")
async def test_an_erased_job_leaves_none_of_its_words_but_those_that_others_have(
    backend: Backend, store: Store, worker: Worker
) -> None:
    empty = await noted(backend)
    fields: dict[str, Any] = {"labels": {"team": "sharedlabel"}}
    other = await die(store, worker, "sharedmessage", **fields)
    gone = await die(store, worker, "sharedmessage", labels={"team": "sharedlabel", "who": "privatelabel"})
    last = await die(store, worker, "privatemessage", options=Options(name="privatename"))
    await store.redrive([last])
    (run,) = await claim(store, worker, 1)
    await settle(store, worker, run, Cause.GAVE_UP, error=Failure(reason="error", message="privateagain"))
    assert beyond(await noted(backend), empty) == (7, 7)
    for job_id in (gone, last):
        await store.erase(job_id, by=Actor(role=Role.ADMIN, name="root"))
    assert beyond(await noted(backend), empty) == (3, 3)
    await bury(backend, store)
    for text in ("sharedlabel", "sharedmessage"):
        assert ids(await store.find(JobFilter(text=text))) == [other], text
    assert await store.find(JobFilter(text="private")) == Page([])


@pytest.mark.native("retention is of the store")
async def test_words_go_with_the_last_job_of_their_time_and_no_sooner(
    backend: Backend, store: Store, worker: Worker
) -> None:
    empty = await noted(backend)
    keep: dict[State, timedelta] = dict.fromkeys(FINAL, 5 * DAY)
    await die(store, worker, "long ago", labels={"order": "1"})
    far = await submit(store, labels={"order": "2"}, delay=20 * DAY)
    store = await later(backend, 9 * DAY)
    young = await submit(store, labels={"order": "3"}, delay=HOUR)
    await store.retire(keep)
    assert await store.find(JobFilter(text="ago")) == Page([])
    assert ids(await store.find(JobFilter(label=("order", "2")))) == [far]
    assert beyond(await noted(backend), empty) == (6, 6)

    await store.cancel(far)
    store = await later(backend, 9 * DAY)
    await store.retire(keep)
    assert beyond(await noted(backend), empty) == (2, 2)
    assert ids(await store.find(JobFilter(text="order"))) == [young]


@pytest.mark.native("retention is of the store")
async def test_times_of_which_a_job_is_left_keep_no_others_from_being_forgotten(backend: Backend, store: Store) -> None:
    empty = await noted(backend)
    for number in range(22):
        await submit(store, labels={"order": f"{number}"}, delay=300 * DAY)
        store = await later(backend, DAY)
    last = await submit(store, labels={"order": "last"}, delay=HOUR)
    await store.cancel(last)
    store = await later(backend, 9 * DAY)
    for _ in range(2):
        await store.retire(dict.fromkeys(FINAL, 5 * DAY))

    assert beyond(await noted(backend), empty) == (44, 44)  # a label and a kind each


async def test_jobs_of_one_second_note_what_they_have_in_common_once(backend: Backend, store: Store) -> None:
    empty = await noted(backend)
    for _ in range(3):
        await store.submit(some_jobs(20, labels={"team": "blue", "zone": "eu"}))
    await submit(store)
    assert beyond(await noted(backend), empty) == (3, 3)
    store = await later(backend, 2 * SECOND)
    await store.submit([a_job(labels={"team": "Blue"}), a_job(tenant="other", labels={"team": "blue"})])
    assert beyond(await noted(backend), empty) == (5, 7)
