"""The eraser: store and blobs."""

from pathlib import Path

import pytest

from tests.access.conftest import ROOT
from tests.builders import a_worker
from tests.contract.steps import settle, start
from tidewheel.blobs import Blobs, open_blobs
from tidewheel.errors import Forbidden, NotFinished, NotFound, Unavailable
from tidewheel.model.access import Actor, Role
from tidewheel.server.access import Eraser
from tidewheel.store.sqlite import SqliteStore


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    return open_blobs((tmp_path / "blobs").as_uri())


async def test_results_and_files_of_all_runs_go_and_those_of_others_stay(
    store: SqliteStore, blobs: Blobs, tmp_path: Path
) -> None:
    worker = await store.register(a_worker())
    run, other = await start(store, worker), await start(store, worker)
    (tmp_path / "file").write_text("private")
    for one in (run, other):
        for token in (1, 2):
            await blobs.store_output(one.job_id, token, "a/b.txt", tmp_path / "file")
    location = await blobs.store_result(run.job_id, run.token, '"private"')
    eraser = Eraser(store, blobs)
    with pytest.raises(NotFinished):
        await eraser.erase(run.job_id, ROOT)
    assert len(await blobs.list_outputs(run.job_id)) == 2
    await settle(store, worker, run, result=None, result_location=location)

    left = await eraser.erase(run.job_id, ROOT)

    assert (left.result_location, left.erased_at is not None) == (None, True)
    assert await blobs.list_outputs(run.job_id) == []
    with pytest.raises(NotFound):
        await blobs.read(location, 100)
    assert len(await blobs.list_outputs(other.job_id)) == 2


async def test_what_the_blobs_refused_goes_the_next_time(
    store: SqliteStore, blobs: Blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = await store.register(a_worker())
    run = await start(store, worker)
    await blobs.store_result(run.job_id, 1, "1")
    await settle(store, worker, run)

    async def refuse(_: object) -> int:
        raise Unavailable("no")

    with monkeypatch.context() as broken:
        broken.setattr(blobs, "delete_outputs", refuse)
        with pytest.raises(Unavailable):
            await Eraser(store, blobs).erase(run.job_id, ROOT)
    await Eraser(store, blobs).erase(run.job_id, ROOT)
    assert await blobs.delete_outputs(run.job_id) == 0


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ADMIN])
async def test_erasing_is_for_admins(store: SqliteStore, blobs: Blobs, role: Role) -> None:
    worker = await store.register(a_worker())
    run = await start(store, worker)
    await settle(store, worker, run)
    with pytest.raises(Forbidden):
        await Eraser(store, blobs).erase(run.job_id, Actor(role=role))
    assert (await store.get(run.job_id)).erased_at is None
