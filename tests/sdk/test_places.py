"""Where an app keeps its jobs: the same place wherever its code runs, or nowhere."""

from pathlib import Path

import pytest

from tidewheel import App, Invalid, Unavailable
from tidewheel.tasks.context import JOB_ID_VARIABLE


def database_of(app: App) -> str:
    return app.stores.place.database


def test_a_relative_file_stays_the_same_whoever_changes_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    app = App("sqlite:///jobs.db")
    monkeypatch.chdir("/")

    assert database_of(app) == f"sqlite:///{tmp_path}/jobs.db"


@pytest.mark.parametrize(
    "url", ["postgresql://host/name", "https://tide.example", "sqlite:////var/jobs.db", "nonsense"]
)
def test_other_addresses_are_left_as_they_are(url: str) -> None:
    assert database_of(App(url)) == url


def test_an_app_without_an_address_hands_in_where_its_worker_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_DATABASE", "sqlite:////elsewhere.db")
    silent, named = App(), App("sqlite:////named.db")

    for app in (silent, named):
        app.work_for("sqlite:////worker.db", "file:///blobs")

    assert [database_of(app) for app in (silent, named)] == ["sqlite:////worker.db", "sqlite:////named.db"]
    assert silent.stores.place.blobs == "file:///blobs"


def test_a_task_that_was_told_of_no_database_is_refused_one_in_its_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TIDE_DATABASE", raising=False)
    monkeypatch.setenv(JOB_ID_VARIABLE, "1")
    monkeypatch.chdir(tmp_path)
    app = App()

    @app.task
    def again() -> None: ...

    with pytest.raises(Invalid, match=r"database: this task was not told of one: .*tide worker --env"):
        again.enqueue()
    assert list(tmp_path.iterdir()) == []


def test_a_task_whose_walls_keep_it_from_the_database_is_told_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "jobs.db").mkdir()  # cannot be opened, as behind a wall
    app = App(f"sqlite:///{tmp_path}/jobs.db")

    @app.task
    def again() -> None: ...

    with pytest.raises(Unavailable) as outside:
        again.enqueue()
    monkeypatch.setenv(JOB_ID_VARIABLE, "1")
    with pytest.raises(Unavailable, match="a task in a process of its own may not reach it: enqueue in an async"):
        again.enqueue()
    assert "process of its own" not in str(outside.value)
