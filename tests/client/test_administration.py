"""The client steers many jobs, finds lines, fetches files, and looks after keys and tenants."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.api.conftest import Api
from tests.client.test_client import all_of
from tidewheel.client import AsyncClient, Client, NewJob
from tidewheel.errors import Invalid, NotFinished, NotFound
from tidewheel.model.access import Role
from tidewheel.model.states import Cause, State


async def test_many_jobs_are_counted_cancelled_and_sent_round_again(client: AsyncClient) -> None:
    await client.submit_many([NewJob("mail", {}, {"queue": "bulk"}) for _ in range(5)])
    await client.submit("mail")

    counted = await client.cancel_many(queue="bulk", dry_run=True)
    assert (counted.matched, counted.done, counted.dry_run) == (5, 0, True)
    some = await client.cancel_many(queue="bulk", limit=3, reason="not wanted")
    assert (some.done, some.more) == (3, True)
    assert (await client.cancel_many(queue="bulk")).done == 2
    assert (await client.retry_many(queue="bulk")).done == 5
    assert len(await all_of(client.jobs(state="queued"))) == 6
    with pytest.raises(Invalid, match="at least one condition"):
        await client.retry_many()


async def test_a_job_is_erased_once_it_has_ended(api: Api, client: AsyncClient) -> None:
    made = await client.submit("mail", {"to": "ann"})
    with pytest.raises(NotFinished):
        await client.erase(made.job_id)
    await api.run()
    left = await client.erase(made.job_id)
    assert (left.args, left.state, left.erased_at is not None) == ({}, State.SUCCEEDED, True)


async def test_lines_are_found_by_their_words(api: Api, client: AsyncClient) -> None:
    await client.submit("mail")
    job_id = await api.run(lines=["disk is full", "all is well"])
    await api.store.index_logs()

    [found] = await all_of(client.search_logs("full", kind="mail"))
    assert (found.line.text, found.line.job_id, found.kind) == ("disk is full", job_id, "mail")
    assert len(await all_of(client.search_logs(oldest_first=True))) == 2
    assert await all_of(client.search_logs("full", stream="stderr")) == []


async def test_files_that_runs_left_behind_are_fetched(api: Api, client: AsyncClient, tmp_path: Path) -> None:
    made = await client.submit("mail")
    await api.run(Cause.RETURNED)
    (tmp_path / "report").write_bytes(b"all is well")
    await api.blobs.store_output(made.job_id, 1, "sub/report é.txt", tmp_path / "report")

    [output] = await client.outputs(made.job_id)
    assert (output.token, output.name, output.size) == (1, "sub/report é.txt", 11)
    await client.fetch_output(output, tmp_path / "fetched")
    assert (tmp_path / "fetched").read_bytes() == b"all is well"
    await api.blobs.delete_outputs(made.job_id)
    with pytest.raises(NotFound):
        await client.fetch_output(output, tmp_path / "fetched")


async def test_keys_and_tenants_are_looked_after_and_that_is_written_down(api: Api) -> None:
    def use() -> None:
        with Client(api.address.url) as first:
            root = first.create_key("root", Role.ADMIN, all_tenants=True)
        with Client(api.address.url, key=root.key) as client:
            made = client.create_key("grafana", "viewer", expires_in=timedelta(days=1), rate=5)
            assert (made.role, made.tenant, made.rate, made.key in repr(made)) == (Role.VIEWER, "default", 5, False)
            assert [key.id for key in client.keys(all_tenants=True)] == [made.id, root.id]
            with Client(api.address.url, key=made.key) as viewer:
                assert viewer.gates() == []
            assert client.revoke_key(made.id).revoked_at is not None
            tenant = client.set_tenant("acme", weight=2.0, max_queued=7, keep_logs="3d")
            assert (tenant.keep_logs, tenant in client.tenants()) == (timedelta(days=3), True)
            entries = list(client.audit(all_tenants=True))
            assert [entry.action for entry in entries] == ["tenants.write", "keys.write", "keys.write", "keys.write"]
            assert [entry.subject for entry in client.audit(all_tenants=True, action="tenants.write")] == ["acme"]

    await asyncio.to_thread(use)
