"""Hints between processes on one file: at once where the system tells of writes, and soon where it does not."""

import asyncio
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.sqlite.test_processes import SUBMIT, start
from tidewheel.clock import SystemClock
from tidewheel.store.bell import Bell
from tidewheel.store.sqlite import SqliteStore, open_store, watching
from tidewheel.store.sqlite.inotify import FileWatch
from tidewheel.store.sqlite.watching import Ticks, Watcher

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


def test_a_file_is_watched_before_it_exists_and_after_it_was_replaced_cut_off_or_removed(
    watch: FileWatch, tmp_path: Path
) -> None:
    log, other = tmp_path / "log", tmp_path / "other"
    other.write_bytes(b"f")

    def replace(last: Callable[[], object]) -> None:
        log.unlink()
        last()

    steps: dict[str, Callable[[], object]] = {
        "created": lambda: log.write_bytes(b"a"),
        "written": lambda: log.write_bytes(b"b"),
        "cut off": lambda: os.truncate(log, 0),
        "written after that": lambda: log.write_bytes(b"c"),
        "removed and made again": lambda: replace(lambda: log.write_bytes(b"d")),
        "written as another file": lambda: log.write_bytes(b"e"),
        "replaced": lambda: other.rename(log),
        "written as the one that replaced it": lambda: log.write_bytes(b"g"),
    }
    for what, step in steps.items():
        step()
        assert hears(watch), what
        assert not hears(watch), "once"


def test_writes_to_other_files_wake_nobody(watch: FileWatch, tmp_path: Path) -> None:
    for _ in range(10):
        (tmp_path / "log-book").write_bytes(b"a")
        (tmp_path / "lo").write_bytes(b"a")
    assert not hears(watch)


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


async def test_a_listener_looks_only_after_writes(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is done while nothing happens: half a second passes without a look."""
    looks: list[int] = []
    look = Watcher._data_version

    def counted(watcher: Watcher) -> int:
        looks.append(version := look(watcher))
        return version

    store = await open_store(path)
    monkeypatch.setattr(Watcher, "_data_version", counted)
    async with store.listen() as bell:
        await quiet(bell)
        looks.clear()
        assert not await bell.wait(0.5)
        assert looks == []
    await store.close()


async def test_own_commits_ring_only_for_what_is_due(path: Path) -> None:
    """The watcher sees them, too, and must not take them for those of another process."""
    store = await open_store(path)
    async with store.listen() as bell:
        await quiet(bell)
        for _ in range(20):
            await store.take_census()
            await _looked(store)
        assert not await bell.wait(0)
    await store.close()


async def _looked(store: SqliteStore) -> None:
    """Return when the watcher has seen the last commit and the writer has answered it."""
    watcher = store._listeners._watcher
    assert watcher is not None
    clock = SystemClock()
    latest = watcher.connection.execute("PRAGMA data_version").get
    end = clock.monotonic() + PATIENCE
    while watcher._version != latest:
        assert clock.monotonic() < end
        await clock.sleep(0.001)
    await store.gates()
    await store.beat([])  # behind the look in the writer's queue


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
            await store.take_census()
            assert await rings(bell)
            assert not healthy(bell)
        await store.take_census()
        while not healthy(bell):
            assert await rings(bell)
    await store.close()
