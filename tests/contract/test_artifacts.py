"""Artifacts: who has which, which are used no more, and that nobody gets one whose bytes are just being deleted."""

import asyncio
from hashlib import sha256
from typing import Any
from uuid import UUID

import pytest

from tests.builders import DAY, HOUR, a_job, a_schedule
from tests.contract.backends import START, Backend
from tests.contract.steps import settle, start, stores_on
from tidewheel.blobs import open_blobs
from tidewheel.errors import Invalid, NotFound, Unavailable
from tidewheel.keeper.outputs import Collector
from tidewheel.model.artifact import KEEP_UNUSED, MAX_ARTIFACT, ArtifactSpec
from tidewheel.model.ids import time_of
from tidewheel.model.states import FINAL, Cause
from tidewheel.model.worker import Worker
from tidewheel.store.base import Store


def digest_of(text: str) -> str:
    return sha256(text.encode()).hexdigest()


ONE, TWO = digest_of("one"), digest_of("two")


def an_artifact(digest: str = ONE, tenant: str = "default", **fields: Any) -> ArtifactSpec:
    usual: dict[str, Any] = {"tenant": tenant, "digest": digest, "size": 3, "name": "one.sh", "created_by": "ci"}
    return ArtifactSpec(**usual | fields)


async def test_an_artifact_comes_back_as_it_was_added_and_belongs_to_its_tenant(store: Store) -> None:
    added = await store.add_artifact(an_artifact())

    assert (added.digest, added.size, added.name, added.created_by) == (ONE, 3, "one.sh", "ci")
    assert (added.created_at, added.used_at) == (START, START)
    assert await store.get_artifact(ONE, tenant="default") == added
    with pytest.raises(NotFound):
        await store.get_artifact(ONE, tenant="other")
    assert await store.use_artifacts([ONE, TWO], tenant="default") == {ONE}
    assert await store.use_artifacts([ONE], tenant="other") == set()
    assert await store.artifacts(tenant="other") == []


async def test_an_artifact_that_is_added_again_stays_and_counts_as_used(backend: Backend, store: Store) -> None:
    first = await store.add_artifact(an_artifact())
    await backend.clock.advance(HOUR)
    again = await store.add_artifact(an_artifact(name="other.sh"))

    assert (again.id, again.name, again.created_at) == (first.id, "one.sh", START)
    assert again.used_at == START + HOUR
    assert await store.artifacts(tenant="default") == [again]


async def test_artifacts_are_listed_newest_first(store: Store) -> None:
    added = [await store.add_artifact(an_artifact(digest_of(str(number)))) for number in range(5)]

    first = await store.artifacts(tenant="default", limit=3)
    rest = await store.artifacts(tenant="default", limit=3, after=first[-1].id)
    assert [one.id for one in first + rest] == [one.id for one in reversed(added)]


async def test_what_nobody_uses_is_buried_and_its_bytes_are_named_until_they_are_gone(
    backend: Backend, store: Store
) -> None:
    await store.add_artifact(an_artifact())
    await backend.clock.advance(KEEP_UNUSED - HOUR)
    await store.add_artifact(an_artifact(TWO))
    assert await store.bury_artifacts() == []
    await backend.clock.advance(HOUR)

    assert await store.bury_artifacts() == [ONE]
    assert await store.bury_artifacts() == [ONE]
    assert [one.digest for one in await store.artifacts(tenant="default")] == [TWO]
    with pytest.raises(Unavailable):
        await store.add_artifact(an_artifact())
    await store.close_graves([ONE])
    assert await store.bury_artifacts() == []
    assert (await store.add_artifact(an_artifact())).digest == ONE


async def test_what_a_job_or_a_schedule_names_stays_and_counts_as_used(backend: Backend, store: Store) -> None:
    await store.add_artifact(an_artifact())
    await store.add_artifact(an_artifact(TWO))
    await store.add_artifact(an_artifact(digest_of("three")))
    [submitted] = await store.submit([a_job(kind="command", args={"artifact": ONE}, delay=90 * DAY)])
    schedule = await store.create_schedule(a_schedule(kind="command", args={"artifact": TWO}))
    await backend.clock.advance(KEEP_UNUSED)

    assert await store.bury_artifacts() == [digest_of("three")]
    await store.close_graves([digest_of("three")])
    await store.cancel(submitted.job_id)
    await store.delete_schedule(schedule.id)
    assert await store.bury_artifacts() == []  # they were in use until now
    await backend.clock.advance(KEEP_UNUSED)
    assert set(await store.bury_artifacts()) == {ONE, TWO}


async def test_jobs_of_other_tenants_and_kinds_do_not_keep_an_artifact(backend: Backend, store: Store) -> None:
    await store.add_artifact(an_artifact())
    await store.submit([a_job(kind="command", args={"artifact": ONE}, tenant="other", delay=90 * DAY)])
    await store.submit([a_job(kind="note", args={"artifact": ONE}, delay=90 * DAY)])
    await backend.clock.advance(KEEP_UNUSED)

    assert await store.bury_artifacts() == [ONE]


async def test_bytes_that_another_tenant_has_too_are_not_named(backend: Backend, store: Store) -> None:
    await store.add_artifact(an_artifact())
    await backend.clock.advance(KEEP_UNUSED)
    await store.add_artifact(an_artifact(tenant="other"))

    assert await store.bury_artifacts() == []
    with pytest.raises(NotFound):
        await store.get_artifact(ONE, tenant="default")
    assert (await store.get_artifact(ONE, tenant="other")).digest == ONE


async def test_of_those_who_add_and_those_who_bury_at_once_both_never_win(backend: Backend) -> None:
    one, two = await stores_on(backend, 2)
    for turn in range(20):
        digest = digest_of(f"turn {turn}")
        await one.add_artifact(an_artifact(digest))
        await backend.clock.advance(KEEP_UNUSED)
        buried, added, used = await asyncio.gather(
            one.bury_artifacts(),
            two.add_artifact(an_artifact(digest, tenant="other")),
            two.use_artifacts([digest], tenant="default"),
            return_exceptions=True,
        )
        assert not isinstance(buried, BaseException), buried
        has_bytes = digest not in await one.bury_artifacts()
        assert isinstance(added, Unavailable) or has_bytes
        mine = await one.use_artifacts([digest], tenant="default")
        assert has_bytes or not mine
        assert bool(used) == bool(mine)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"digest": "../../etc/passwd"}, "digest"),
        ({"digest": ONE.upper()}, "digest"),
        ({"size": -1}, "size"),
        ({"size": MAX_ARTIFACT + 1}, "size"),
        ({"name": "a\0b"}, "name"),
        ({"name": "x" * 201}, "name"),
    ],
)
async def test_what_is_no_artifact_is_refused(store: Store, fields: dict[str, Any], field: str) -> None:
    with pytest.raises(Invalid) as refused:
        await store.add_artifact(an_artifact(**fields))
    assert refused.value.field == field


async def test_all_servers_of_a_store_sign_with_the_same_secret(backend: Backend) -> None:
    one, two = await stores_on(backend, 2)
    keys = {await one.signing_key(), await two.signing_key()}
    assert [len(key) for key in keys] == [32]


async def test_what_runs_left_behind_goes_with_their_jobs_and_stays_with_all_others(
    backend: Backend, store: Store, worker: Worker
) -> None:
    blobs = open_blobs("memory://")
    gone, kept, again = [await start(store, worker) for _ in range(3)]
    [waiting] = await store.submit([a_job("later", delay=400 * DAY)])
    await settle(store, worker, gone)
    await settle(store, worker, again, Cause.GAVE_UP)
    jobs = [gone.job_id, kept.job_id, again.job_id, waiting.job_id]
    for job_id in (*jobs, stranger := UUID("01a1e32c-9236-70a0-8007-cb2475315829")):
        await blobs.store_result(job_id, 1, "1")
    collector = Collector(store, blobs, backend.clock)  # type: ignore[arg-type] # it only asks for the time

    assert await store.known_jobs([*jobs, stranger]) == set(jobs)
    assert await collector.run_once() == int(time_of(stranger) < backend.clock.now() - DAY)
    await backend.clock.advance(10 * DAY)
    assert await store.redrive([again.job_id]) == [again.job_id]
    await store.retire(dict.fromkeys(FINAL, DAY))

    assert await store.known_jobs(jobs) == set(jobs) - {gone.job_id}
    await collector.run_once()
    left, _ = await blobs.jobs_with_outputs("", 10)
    assert set(left) - {stranger} == set(jobs) - {gone.job_id}
    assert await collector.run_once() == 0
