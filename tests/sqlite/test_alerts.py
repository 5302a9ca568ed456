"""How much room there is where the file lies is looked at, and told when it is little."""

import os
from pathlib import Path

from tidewheel.keeper.alerts import Watch
from tidewheel.model.alert import AlertState, Rule
from tidewheel.model.alert_bounds import Bounds
from tidewheel.store.sqlite import open_store


def size_of(path: Path) -> int:
    return path.stat().st_size


async def test_a_disk_that_is_nearly_full_is_told_until_there_is_room(path: Path) -> None:
    store = await open_store(path)
    try:
        (disk,) = (await store.alert_facts()).disks
        room = os.statvfs(path.parent)
        assert disk.place == "tide.db"
        assert abs(disk.free - room.f_bavail * room.f_frsize) < room.f_blocks * room.f_frsize // 10
        assert await Watch(store, Bounds(free_disk=1 << 60)).run_once() == 1
        (alert,) = await store.alerts(state=AlertState.FIRING)
        assert (alert.rule, alert.subject) == (Rule.DISK_SPACE, "tide.db")
        assert await Watch(store, Bounds(free_disk=1)).run_once() == 1
        assert await store.alerts(state=AlertState.FIRING) == []
    finally:
        await store.close()


async def test_a_file_that_has_grown_to_its_bound_is_told_with_figures(path: Path) -> None:
    store = await open_store(path)
    try:
        (fact,) = (await store.alert_facts()).sizes
        assert fact.database == "tide.db"
        assert await Watch(store, Bounds(database_size=fact.size + (1 << 20))).run_once() == 0
        assert await Watch(store, Bounds(database_size=1 << 18)).run_once() == 1
        (alert,) = await store.alerts(state=AlertState.FIRING)
        assert (alert.rule, alert.subject) == (Rule.DATABASE_SIZE, "tide.db")
    finally:
        await store.close()
    assert fact.size == size_of(path)
