"""How large the arguments of a job may be is a setting: of an app, of a command, of a server."""

import json
from pathlib import Path

import pytest

from tests.api.conftest import serving
from tests.cli.terminal import tide
from tests.worker.test_keeper_of_a_worker import MODULES
from tidewheel import App, Invalid
from tidewheel.client import AsyncClient
from tidewheel.model.submission import LEAST_ARGS_BYTES, MOST_ARGS_BYTES
from tidewheel.wiring import open_all
from tidewheel.worker.plan import WorkerPlan, members_of

KIB = 1024


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    url: str = request.getfixturevalue("postgres_database") if request.param == "postgres" else ""
    return url or f"sqlite:///{tmp_path}/jobs.db"


def submit(app: App, size: int) -> None:
    @app.task(name=f"keep.{size}")
    def keep(text: str) -> None: ...

    keep.enqueue("x" * (size - len(json.dumps({"text": ""}, separators=(",", ":")))))


def test_an_app_takes_what_it_was_told_and_no_more(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in (4 * KIB, 300 * KIB):
        with App(database, max_args_bytes=bound) as app:
            submit(app, bound)
            with pytest.raises(Invalid, match=f"args: must have at most {bound} bytes"):
                submit(app, bound + 1)
    monkeypatch.setenv("TIDE_MAX_ARGS_BYTES", "2048")
    with App(database) as app, pytest.raises(Invalid, match="at most 2048 bytes"):
        submit(app, 2049)
    monkeypatch.setenv("TIDE_MAX_ARGS_BYTES", "lots")
    with App(database) as app, pytest.raises(Invalid, match="TIDE_MAX_ARGS_BYTES: must be a whole number, not 'lots'"):
        submit(app, 1)


@pytest.mark.parametrize("bound", [0, LEAST_ARGS_BYTES - 1, MOST_ARGS_BYTES + 1, 2048.0, True])
def test_a_bound_that_is_none_is_refused(bound: int) -> None:
    with pytest.raises(Invalid, match="max_args_bytes: must be a whole number between 1024 and 983040"):
        App(max_args_bytes=bound)


def test_a_command_goes_by_the_variable_and_by_the_file(tmp_path: Path) -> None:
    words = ("submit", "--task", "keep", "--args", json.dumps({"text": "x" * 3000}))
    assert "at most 2048 bytes" in tide(tmp_path, *words, TIDE_MAX_ARGS_BYTES="2048").stderr
    (tmp_path / "tidewheel.toml").write_text("max_args_bytes = 2048\n")
    assert "at most 2048 bytes" in tide(tmp_path, *words).stderr
    assert tide(tmp_path, *words, TIDE_MAX_ARGS_BYTES="4096").returncode == 0


async def test_the_children_of_a_worker_are_told(tmp_path: Path) -> None:
    plan = WorkerPlan(
        database=f"sqlite:///{tmp_path}/jobs.db", blobs="file:///x", scratch="/tmp", name="w", max_args_bytes=4096
    )
    for member in members_of(plan, [], MODULES):
        store, _ = await open_all(member.setup)
        assert store.max_args_bytes == 4096  # type: ignore[attr-defined] # of the stores on a database
        await store.close()


async def test_through_a_server_its_own_setting_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_MAX_ARGS_BYTES", str(MOST_ARGS_BYTES))
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path) as api:
        monkeypatch.delenv("TIDE_MAX_ARGS_BYTES")
        large = {"text": "x" * (MOST_ARGS_BYTES - 11)}
        async with AsyncClient(api.address.url) as client:
            await client.submit("keep", large)
        async with App(api.address.url) as app:

            @app.task(name="keep")
            def keep(text: str) -> None: ...

            assert len((await (await keep.aenqueue(large["text"])).ainfo()).args["text"]) == MOST_ARGS_BYTES - 11
            with pytest.raises(Invalid, match="args: must have at most 983040 bytes"):
                await keep.aenqueue(large["text"] + "x")
