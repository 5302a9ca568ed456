"""Clients make and steer schedules, ask for reasons, and look after dead letters."""

import asyncio
from datetime import timedelta
from itertools import pairwise
from uuid import uuid4

import pytest

from tests.api.conftest import Api
from tests.client.test_client import all_of
from tidewheel.client import AsyncClient, Client
from tidewheel.errors import Invalid, NameTaken, NotFound, StaleVersion
from tidewheel.model.schedule import Fate
from tidewheel.model.states import Cause, State
from tidewheel.model.why import Ended, NoWorker

HOUR = timedelta(hours=1)


async def test_a_schedule_is_made_changed_by_version_and_deleted(client: AsyncClient) -> None:
    made = await client.create_schedule("nightly", "report", cron="0 2 * * *", timezone="Europe/Berlin", args={"n": 1})
    assert (made.name, made.kind, made.args, made.version) == ("nightly", "report", {"n": 1}, 1)
    assert await client.schedule(made.id) == made
    with pytest.raises(NameTaken, match="nightly"):
        await client.create_schedule("nightly", "report", every="1h")
    with pytest.raises(Invalid, match="cron"):
        await client.create_schedule("other", "report", cron="half past two")

    changed = await client.change_schedule(made.id, version=1, queue="night", timeout=timedelta(minutes=2))
    assert (changed.queue, changed.timeout, changed.version) == ("night", timedelta(minutes=2), 2)
    assert changed.trigger == made.trigger
    with pytest.raises(StaleVersion) as stale:
        await client.change_schedule(made.id, version=1, queue="day")
    assert (stale.value.given, stale.value.current) == (1, 2)
    assert [each.name for each in await all_of(client.schedules())] == ["nightly"]
    assert await all_of(client.schedules(name="nothing")) == []

    with pytest.raises(StaleVersion):
        await client.delete_schedule(made.id, version=1)
    await client.delete_schedule(made.id, version=2)
    with pytest.raises(NotFound):
        await client.schedule(made.id)


async def test_a_schedule_is_paused_resumed_triggered_shown_and_backfilled(client: AsyncClient) -> None:
    made = await client.create_schedule("hourly", "report", every=HOUR)
    assert (await client.pause_schedule(made.id)).paused
    assert not (await client.resume_schedule(made.id)).paused
    fired = await client.trigger_schedule(made.id)
    assert fired.source == "manual"
    assert fired.job_id is not None
    assert (await client.get(fired.job_id)).schedule_id == made.id
    keyed = [(await client.trigger_schedule(made.id, key="k")).job_id for _ in range(2)]
    assert keyed[0] == keyed[1] != fired.job_id
    coming = await client.preview_schedule(made.id, 3)
    assert [later.fire_at - first.fire_at for first, later in pairwise(coming)] == [HOUR, HOUR]

    since, until = made.created_at - 4 * HOUR, made.created_at - HOUR
    told = await client.backfill_schedule(made.id, since, until, dry_run=True)
    assert len(told) == 3
    ran = await client.backfill_schedule(made.id, since, until, every="10s", priority="low")
    assert [(each.fire_at, each.outcome) for each in ran] == [(each.fire_at, Fate.MADE) for each in told]
    assert await client.backfill_schedule(made.id, since, until) == []


async def test_a_job_says_why_it_does_not_run(client: AsyncClient) -> None:
    made = await client.submit("mail")
    (reason,) = await client.why(made.job_id)
    assert isinstance(reason, NoWorker)
    await client.cancel(made.job_id)
    (reason,) = await client.why(made.job_id)
    assert isinstance(reason, Ended)
    with pytest.raises(NotFound):
        await client.why(uuid4())


async def test_dead_letters_are_grouped_listed_counted_and_sent_round(api: Api, client: AsyncClient) -> None:
    dead = []
    for number in range(3):
        dead.append((await client.submit("mail", {"n": number})).job_id)
        await api.run(Cause.GAVE_UP)
    (group,) = await client.dead_groups()
    assert (group.kind, group.jobs, group.tenant) == ("mail", 3, "default")
    assert [job.id for job in await all_of(client.dead_letters(fingerprint=group.fingerprint))] == dead[::-1]
    assert [job.args for job in await all_of(client.dead_letters(full=True))] == [{"n": 2}, {"n": 1}, {"n": 0}]
    assert await client.redrive(kind="mail", dry_run=True) == 3
    assert await client.redrive(kind="other") == 0
    assert (await client.get(dead[0])).state is State.DEAD
    assert await client.redrive(kind="mail", rate=0.5) == 3
    runs = [(await client.get(job_id)).run_at for job_id in dead]
    assert runs[2] - runs[0] == timedelta(seconds=4)
    with pytest.raises(Invalid, match="fingerprint"):
        await client.dead_groups(fingerprint="no such thing")


async def test_a_redrive_of_many_goes_on_until_all_went(
    api: Api, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidewheel.client.dead_letters.PIECE", 2)
    for _ in range(5):
        await client.submit("mail")
        await api.run(Cause.GAVE_UP)
    assert await client.redrive() == 5
    assert await client.redrive(dry_run=True) == 0


async def test_without_an_event_loop_it_is_the_same(api: Api) -> None:
    url = api.address.url

    def work() -> None:
        with Client(url) as tide:
            made = tide.create_schedule("hourly", "report", every="1h")
            assert [each.id for each in tide.schedules()] == [made.id]
            assert tide.change_schedule(made.id, version=made.version, priority="low").version == 2
            assert tide.pause_schedule(made.id).paused
            assert not tide.resume_schedule(made.id).paused
            assert len(tide.preview_schedule(made.id, 2)) == 2
            job = tide.trigger_schedule(made.id).job_id
            assert job is not None
            assert tide.why(job)[0].sentence
            begin = made.created_at - 2 * HOUR
            assert len(tide.backfill_schedule(made.id, begin, made.created_at - HOUR, dry_run=True)) == 1
            assert tide.dead_groups() == []
            assert list(tide.dead_letters()) == []
            assert tide.redrive(dry_run=True) == 0
            tide.delete_schedule(made.id)
            with pytest.raises(NotFound):
                tide.schedule(made.id)

    await asyncio.to_thread(work)
