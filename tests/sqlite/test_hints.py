"""Hints between processes on one file: at once where the system tells of writes, and soon where it does not."""

import asyncio
import errno
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import HOUR, a_job
from tests.sqlite.conftest import Grip
from tests.sqlite.test_processes import SUBMIT, start
from tidewheel.store.bell import Bell
from tidewheel.store.sqlite import SqliteStore, open_store, watching, writer
from tidewheel.store.sqlite.inotify import FileWatch, touch
from tidewheel.store.sqlite.watching import Ticks, Watcher
from tidewheel.testing import FakeClock

PATIENCE = 20.0


@pytest.fixture
def watch(tmp_path: Path) -> Iterator[FileWatch]:
    watch = FileWatch(tmp_path / "log")
    yield watch
    watch.close()


def hears(watch: FileWatch) -> bool:
    """Tell whether a watch has something to tell, without waiting for it."""
    return watch.wait(0)


async def rings(bell: Bell) -> bool:
    return await asyncio.wait_for(bell.wait(PATIENCE), PATIENCE)


def healthy(bell: Bell) -> bool:
    """Ask anew each time, which a type checker does not expect of an attribute."""
    return bell.healthy


async def quiet(bell: Bell) -> None:
    while await bell.wait(0):
        pass


def test_a_file_is_watched_before_it_exists_and_after_it_was_replaced_or_removed(
    watch: FileWatch, tmp_path: Path
) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_bytes(b"f")

    def replace(last: Callable[[], object]) -> None:
        log.unlink()
        last()

    steps: dict[str, Callable[[], object]] = {
        "created": lambda: log.write_bytes(b"a"),
        "touched": lambda: touch(log),
        "removed and made again": lambda: replace(lambda: log.write_bytes(b"d")),
        "touched as another file": lambda: touch(log),
        "replaced": lambda: other.rename(log),
        "touched as the one that replaced it": lambda: touch(log),
    }
    for what, step in steps.items():
        step()
        assert hears(watch), what
        assert not hears(watch), "once"


async def test_what_others_did_is_heard_also_if_the_writer_begins_something_before_it_looks(
    store: SqliteStore, path: Path
) -> None:
    other = await open_store(path, FakeClock())
    await other.submit([a_job()])
    await other.close()
    heard = threading.Event()
    store._writer.on_hint = heard.set
    async with Grip(store):  # whose transaction begins with noticing what others wrote, and takes the looks along
        store._writer.look()
        store._writer.look()
    assert await asyncio.to_thread(heard.wait, PATIENCE)


def test_writes_and_other_files_wake_nobody(watch: FileWatch, tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"a")
    assert hears(watch)
    for _ in range(10):
        (tmp_path / "log").write_bytes(b"b")
        (tmp_path / "log-book").write_bytes(b"a")
        touch(tmp_path / "log-book")
        (tmp_path / "lo").write_bytes(b"a")
    assert not hears(watch)


def test_a_file_that_is_not_there_cannot_be_touched_and_that_is_all(tmp_path: Path) -> None:
    touch(tmp_path / "log")
    assert list(tmp_path.iterdir()) == []


def test_a_wait_ends_when_it_is_stopped(watch: FileWatch) -> None:
    told: list[bool] = []
    thread = threading.Thread(target=lambda: told.append(watch.wait(None)))
    thread.start()
    watch.stop()
    thread.join(PATIENCE)
    assert told == [False]


@pytest.mark.parametrize("watched", [True, False], ids=["inotify", "ticks"])
async def test_what_another_process_submits_is_heard(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, watched: bool
) -> None:
    if not watched:
        monkeypatch.setattr(watching, "FileWatch", _no_watches_left)
    store = await open_store(path)
    async with store.listen() as bell:
        watcher = store._listeners._watcher
        assert watcher is not None
        assert isinstance(watcher._watch, Ticks) is not watched
        await quiet(bell)
        process = start(SUBMIT, path, 1)
        assert await rings(bell)
        process.communicate(timeout=60)
        assert process.returncode == 0
    await store.close()


def _no_watches_left(_: Path) -> FileWatch:
    raise OSError(errno.EMFILE, "no watches left")


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The versions that all watchers have seen, one for each look."""
    seen: list[int] = []
    look = Watcher._data_version

    def counted(watcher: Watcher) -> int:
        seen.append(version := look(watcher))
        return version

    monkeypatch.setattr(Watcher, "_data_version", counted)
    return seen


async def test_commits_that_concern_no_listener_wake_none(path: Path, looks: list[int]) -> None:
    """Those of a keeper that finds nothing to do, above all; half a second passes without a look."""
    store, other = await open_store(path), await open_store(path)
    async with store.listen() as bell:
        for each in (store, other):
            await each.take_census()  # SQLite itself touches the log when a connection writes for the first time
        while await bell.wait(0.1):
            pass
        looks.clear()
        for _ in range(20):
            await store.take_census()
            await other.take_census()
            await other.submit([a_job(delay=HOUR)])
        assert not await bell.wait(0.5)
        assert looks == []
    await other.close()
    await store.close()


async def test_a_hint_is_heard_by_all_and_passed_on_by_none(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touches: list[Path] = []

    def counted(log: Path) -> None:
        touches.append(log)
        touch(log)

    monkeypatch.setattr(writer, "touch", counted)
    store, other = await open_store(path), await open_store(path)
    async with store.listen() as bell, other.listen() as second:
        await quiet(bell)
        await quiet(second)
        await other.submit([a_job()])
        assert await rings(bell)
        assert await rings(second)
        assert not await bell.wait(0.5), "it rings once"
        assert len(touches) == 1, "who heard it does not tell it again"
    await other.close()
    await store.close()


async def test_a_file_behind_a_link_is_heard_of(path: Path, tmp_path: Path) -> None:
    store = await open_store(path)
    (tmp_path / "links").mkdir()
    (link := tmp_path / "links" / "tide.db").symlink_to(path)
    linked = await open_store(link)
    async with linked.listen() as bell:
        await quiet(bell)
        await store.submit([a_job()])
        assert await rings(bell)
    await linked.close()
    await store.close()


async def test_errors_of_the_watcher_show_as_an_ailing_bell_and_pass(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import apsw  # noqa: PLC0415 - only for the error

    monkeypatch.setattr(watching, "AFTER_AN_ERROR", 0.001)
    store = await open_store(path)
    async with store.listen() as bell:
        await quiet(bell)
        with monkeypatch.context() as patch:

            def fail(_: Watcher) -> int:
                raise apsw.IOError("the disk failed")

            patch.setattr(Watcher, "_data_version", fail)
            await store.submit([a_job()])
            while healthy(bell):
                assert await rings(bell)
        await store.submit([a_job()])
        while not healthy(bell):
            assert await rings(bell)
    await store.close()
