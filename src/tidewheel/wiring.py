"""Settings become objects here: the only module that names a concrete store."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn, cast
from urllib.parse import SplitResult, urlsplit

from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.submission import check_args_bound
from tidewheel.settings import SETTINGS, read_secret_file
from tidewheel.store.base import Store
from tidewheel.store.copying import CopySource, CopyTarget
from tidewheel.store.sealing import Keyring

if TYPE_CHECKING:
    from tidewheel.blobs import Blobs
    from tidewheel.store.replica import ReplicaStore
    from tidewheel.worker.link import Setup

DEFAULT_URL: str = SETTINGS["database"].default


class Database(NamedTuple):
    """What can be done with the database that a URL names."""

    open: Callable[[], Awaitable[Store]]
    """Open the store; a SQLite file is made and migrated if need be, PostgreSQL must have been migrated."""
    migrate: Callable[[], Awaitable[list[str]]]
    """Apply the pending migrations and return their names."""
    check: Callable[[], Awaitable[int]]
    """Return the schema version, or raise StoreMismatch if this program does not fit it."""
    pending_sql: Callable[[], Awaitable[str]]
    """Return the SQL that a migration would run."""


def database_of(
    url: str, clock: Clock | None = None, key: str | None = None, max_args_bytes: int | None = None
) -> Database:
    """Return the database that a URL names; its driver is loaded only now. A server is asked with a key."""
    if is_server(url):
        return _remote(url, key, clock)
    bound = args_bound(max_args_bytes)
    if _split(url).scheme in ("postgresql", "postgres"):
        return _postgres(url, clock, bound)
    return _sqlite(sqlite_path(url), clock, bound)


async def open_store(
    url: str = DEFAULT_URL, clock: Clock | None = None, key: str | None = None, max_args_bytes: int | None = None
) -> Store:
    """Open the store that a URL names; a clock of one's own is for tests, a key for servers (or TIDE_KEY)."""
    return await database_of(url, clock, key, max_args_bytes).open()


def args_bound(chosen: int | None) -> int:
    """Return how large the arguments of a job may be: as someone chose, or as the environment says. Raises Invalid."""
    setting = SETTINGS["max_args_bytes"]
    said = os.environ.get(setting.variable) or setting.default
    try:
        return check_args_bound(int(said) if chosen is None else chosen)
    except ValueError:
        raise Invalid(setting.variable, f"must be a whole number, not {said!r:.40}") from None


def keyring() -> Keyring:
    """Return the keys for stored secrets, as the environment says, by itself or by a file. Raises Invalid."""
    setting = SETTINGS["secrets_key"]
    return Keyring.read(os.environ.get(setting.variable) or read_secret_file(setting, os.environ))


def is_server(url: str) -> bool:
    """Tell whether a URL names a server, and not a database."""
    return _split(url).scheme in ("http", "https")


def copy_source(url: str, clock: Clock) -> CopySource:
    """Open the store that a copy comes from: a SQLite file."""
    from tidewheel.store import sqlite  # noqa: PLC0415 - `import tidewheel` shall load no driver

    return sqlite.SqliteSource(sqlite_path(url), clock)


async def copy_target(url: str) -> CopyTarget:
    """Open the database that a copy goes to: on PostgreSQL."""
    if _split(url).scheme not in ("postgresql", "postgres"):
        raise Invalid("to", f"must be postgresql://user@host/name, not {without_secrets(url)!r}")
    try:
        from tidewheel.store import postgres  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        raise Invalid("to", "PostgreSQL needs a driver: pip install 'tidewheel[postgres]'") from error
    return await postgres.open_target(url)


def replica_of(url: str) -> "Callable[[], Awaitable[ReplicaStore]]":
    """Return what opens a replica of a PostgreSQL database, to look at."""
    if _split(url).scheme not in ("postgresql", "postgres"):
        raise Invalid("replica", f"must be postgresql://user@host/name, not {without_secrets(url)!r}")
    try:
        from tidewheel.store import postgres  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        raise Invalid("replica", "PostgreSQL needs a driver: pip install 'tidewheel[postgres]'") from error
    return partial(postgres.open_replica, url)


def blobs_url(database: str, chosen: str | None = None) -> str:
    """Return where large things live: where chosen, behind the server, beside the SQLite file, or right here."""
    if chosen is not None or is_server(database):
        return chosen or database
    is_file = _split(database).scheme == "sqlite"
    folder = sqlite_path(database).absolute().parent if is_file else Path.cwd()
    return (folder / "tidewheel-blobs").as_uri()


def files_of(database: str) -> tuple[str, ...]:
    """Return the files of a database on this machine, which no task has any business with."""
    if _split(database).scheme != "sqlite":
        return ()
    path = sqlite_path(database).absolute()
    return tuple(f"{path}{end}" for end in ("", "-wal", "-shm"))


def secret_files() -> tuple[str, ...]:
    """Return the files that settings with passwords and keys were read from, which are no business of tasks either."""
    named = [os.environ.get(f"{setting.variable}_FILE") for setting in SETTINGS.values() if setting.secret]
    return tuple(str(Path(name).absolute()) for name in named if name)


async def open_all(setup: "Setup") -> tuple[Store, "Blobs"]:
    """Open the store and the blobs that a child of a worker was told of."""
    return await open_store(setup.database, max_args_bytes=setup.max_args_bytes), open_blobs(setup.blobs)


def open_blobs(url: str, key: str | None = None, clock: Clock | None = None) -> "Blobs":
    """Open the place for large things that a URL names; one behind a server is asked with a key (or TIDE_KEY)."""
    from tidewheel import blobs  # noqa: PLC0415 - whoever only asks the store does without

    if not is_server(url):
        return blobs.open_blobs(url)
    from tidewheel.client.server_blobs import ServerBackend  # noqa: PLC0415 - its client is not loaded for nothing
    from tidewheel.store.remote.transport import Place  # noqa: PLC0415 - as above

    place = Place(url, key or os.environ.get("TIDE_KEY") or None)
    return blobs.Blobs(ServerBackend(place, clock or SystemClock()))


def _postgres(url: str, clock: Clock | None, max_args_bytes: int) -> Database:
    try:
        from tidewheel.store import postgres  # noqa: PLC0415 - its driver is an extra
    except ModuleNotFoundError as error:
        raise Invalid("database", "PostgreSQL needs a driver: pip install 'tidewheel[postgres]'") from error
    return Database(
        partial(postgres.open_store, url, clock=clock, max_args_bytes=max_args_bytes, keyring=keyring()),
        partial(postgres.migrate, url),
        partial(postgres.check, url),
        partial(postgres.pending_sql, url),
    )


def _remote(url: str, key: str | None, clock: Clock | None) -> Database:
    from tidewheel.store import remote  # noqa: PLC0415 - its client is not loaded for nothing

    async def open_remote() -> Store:
        return cast("Store", await remote.open_store(url, key or os.environ.get("TIDE_KEY") or None, clock))

    async def refuse() -> NoReturn:
        raise Invalid("database", "the schema behind a server is looked after where its database is")

    return Database(open_remote, refuse, refuse, refuse)


def _sqlite(path: Path, clock: Clock | None, max_args_bytes: int) -> Database:
    from tidewheel.store import sqlite  # noqa: PLC0415 - `import tidewheel` shall load no driver

    return Database(
        partial(sqlite.open_store, path, clock, max_args_bytes=max_args_bytes, keyring=keyring()),
        partial(asyncio.to_thread, sqlite.migrate, path),
        partial(asyncio.to_thread, sqlite.check, path),
        partial(asyncio.to_thread, sqlite.pending_sql, path),
    )


def sqlite_path(url: str) -> Path:
    """Return the file that a `sqlite:` URL names: three slashes for a relative path, four for an absolute one."""
    path = url.removeprefix("sqlite:///")
    if path in (url, ""):
        wanted = "sqlite:///path/to/file, postgresql://user@host/name or https://server"
        raise Invalid("database", f"must be {wanted}, not {without_secrets(url)!r}")
    if "?" in path or "#" in path:
        raise Invalid("database", f"SQLite takes no options; leave out what follows the file in {url!r}")
    if path == ":memory:":
        raise Invalid("database", "a store in memory would be lost with the process; name a file")
    return Path(path)


def anchored(url: str) -> str:
    """Return the same URL; a relative path of a SQLite file becomes absolute, so that it stays the same file."""
    path = url.removeprefix("sqlite:///")
    if path in (url, "", ":memory:"):
        return url
    return f"sqlite:///{Path(path).absolute()}"


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:
        raise Invalid("database", f"is no URL: {error}") from error


def without_secrets(url: str) -> str:
    """Return a URL that may be shown: without user and password."""
    parts = _split(url)
    if "@" not in parts.netloc and not parts.query:
        return url
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
