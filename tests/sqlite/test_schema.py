"""The file: made, recognised, brought up to date, and refused when something is wrong with it."""

import re
from pathlib import Path

import apsw
import pytest

from tests.builders import some_jobs
from tests.sqlite.snapshot import SNAPSHOT, schema_text
from tidewheel.errors import StoreMismatch, Unavailable
from tidewheel.model.priority import Priority
from tidewheel.model.states import ACTIVE, FINAL, State
from tidewheel.store.sqlite import SqliteStore, check, migrate, open_store, pending_sql, place
from tidewheel.store.sqlite.migrate import APPLICATION, MIGRATIONS
from tidewheel.testing import FakeClock


def test_the_snapshot_is_what_the_migrations_make() -> None:
    assert SNAPSHOT.read_text("utf-8") == schema_text(), "run `make schema`"


@pytest.mark.parametrize(("table", "states"), [("job", ACTIVE), ("job_history", FINAL)])
def test_a_table_holds_just_the_states_of_the_model(table: str, states: tuple[State, ...]) -> None:
    found = re.search(rf"CREATE TABLE {table} \(.*?CHECK \(state IN \(([^)]*)\)\)", schema_text(), re.DOTALL)
    assert found
    assert tuple(re.findall(r"'(\w+)'", found[1])) == states


def test_a_pair_has_room_for_every_priority() -> None:
    assert max(Priority) < 4, "statements write a pair as lane * 4 + priority"
    assert "priority BETWEEN 0 AND 2" in schema_text()


async def test_a_new_file_is_made_and_an_old_one_opened_as_it_is(path: Path, clock: FakeClock) -> None:
    first = await open_store(path, clock)
    await first.submit(some_jobs(1))
    await first.close()
    assert check(path) == len(MIGRATIONS)
    assert migrate(path) == []
    assert pending_sql(path) == ""
    second = await open_store(path, clock, create=False)
    assert second.epoch == 1
    await second.close()


def test_migrating_says_what_it_does(path: Path) -> None:
    assert "CREATE TABLE job" in pending_sql(path)
    assert not path.exists()
    assert migrate(path) == ["0001_expand_kernel"]
    assert migrate(path) == []


async def test_a_missing_file_is_not_made_when_it_must_be_there(path: Path, clock: FakeClock) -> None:
    with pytest.raises(Unavailable, match="cannot be opened"):
        await open_store(path, clock, create=False)
    assert folder_of(path) == []


async def test_a_newer_schema_is_refused_with_advice(path: Path, clock: FakeClock) -> None:
    migrate(path)
    _pragma(path, "user_version", len(MIGRATIONS) + 1)
    with pytest.raises(StoreMismatch, match="upgrade Tidewheel"):
        await open_store(path, clock)
    with pytest.raises(StoreMismatch, match="upgrade Tidewheel"):
        check(path)


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path, clock: FakeClock) -> None:
    write(path, before := b"Dear diary,\n" * 1000)
    with pytest.raises(StoreMismatch, match="no SQLite database"):
        await open_store(path, clock)
    assert read(path) == before


async def test_the_database_of_another_program_is_refused_and_left_alone(path: Path, clock: FakeClock) -> None:
    other = apsw.Connection(str(path))
    other.execute("CREATE TABLE bookmarks (url TEXT)")
    other.close()
    before = read(path)
    with pytest.raises(StoreMismatch, match="another program"):
        await open_store(path, clock)
    assert read(path) == before


async def test_a_damaged_file_is_found_after_an_unclean_end(path: Path, clock: FakeClock) -> None:
    store = await open_store(path, clock)
    await store.submit(some_jobs(2_000))
    await store.close()
    content = bytearray(read(path))
    for page in range(4, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    write(path, bytes(content))
    with pytest.raises(StoreMismatch, match="damaged"):
        check(path)
    write(path.with_name(path.name + "-wal"), b"left over")
    with pytest.raises(StoreMismatch, match="damaged"):
        await open_store(path, clock)


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "smb3", "9p", "fuse.sshfs", "fuse.rclone"])
async def test_a_network_file_system_is_refused(
    path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(
        place, "read_mounts", lambda: f"/dev/sda / ext4 rw 0 0\nserver:/x {path.parent} {kind} rw 0 0\n"
    )
    with pytest.raises(StoreMismatch, match="network file system"):
        await open_store(path, clock)
    assert folder_of(path) == []


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/srv/a b/c", "xfs"),
        ("/srv/other", "ext4"),
        ("/srv/a", "ext4"),
        ("/mnt/x/deep/down", "nfs4"),
        ("/mnt/xy", "ext4"),
    ],
)
def test_the_longest_mount_point_decides(folder: str, kind: str) -> None:
    mounts = "dev / ext4 rw 0 0\ndev /srv/a\\040b xfs rw 0 0\nhost:/ /mnt/x nfs4 rw 0 0\nbroken\n"
    assert place.file_system_of(Path(folder), mounts) == kind


def test_a_disk_of_this_host_is_fine(path: Path) -> None:
    place.refuse_network(path)


async def test_the_header_says_whose_file_it_is(store: SqliteStore) -> None:
    assert store._connection.pragma("application_id") == APPLICATION
    assert store._connection.pragma("journal_mode") == "wal"
    assert store._connection.pragma("synchronous") == 2


def read(path: Path) -> bytes:
    return path.read_bytes()


def write(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def folder_of(path: Path) -> list[str]:
    return [entry.name for entry in path.parent.iterdir()]


def _pragma(path: Path, name: str, value: int) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma(name, value)
    connection.close()
