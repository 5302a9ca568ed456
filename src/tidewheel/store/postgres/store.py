"""The whole store, put together from its parts."""

from tidewheel.clock import Clock
from tidewheel.model.submission import MAX_ARGS_BYTES
from tidewheel.store.migrations import check_version
from tidewheel.store.postgres.alerting import Alerting
from tidewheel.store.postgres.artifacts import Artifacts
from tidewheel.store.postgres.capping import Capping
from tidewheel.store.postgres.connection import SQL, Database, connect, one
from tidewheel.store.postgres.dead_letters import DeadLetters
from tidewheel.store.postgres.depending import Depending
from tidewheel.store.postgres.duties import Duties
from tidewheel.store.postgres.explaining import Explaining
from tidewheel.store.postgres.gating import Gating
from tidewheel.store.postgres.keeping import Keeping
from tidewheel.store.postgres.keys import Keys
from tidewheel.store.postgres.limiting import Limiting
from tidewheel.store.postgres.listening import Listening
from tidewheel.store.postgres.log_lines import LogLines
from tidewheel.store.postgres.migrate import MIGRATIONS, version_of
from tidewheel.store.postgres.notifying import Notifying
from tidewheel.store.postgres.noting import Noting
from tidewheel.store.postgres.occurring import Occurring
from tidewheel.store.postgres.parts import LaneBook, id_maker
from tidewheel.store.postgres.scheduling import Scheduling
from tidewheel.store.postgres.searching import Searching
from tidewheel.store.postgres.secrets import Secrets
from tidewheel.store.postgres.settling import Settling
from tidewheel.store.postgres.sharing import Sharing
from tidewheel.store.postgres.statistics import Statistics
from tidewheel.store.postgres.submitting import Submitting
from tidewheel.store.postgres.working import Working
from tidewheel.store.sealing import NO_KEYS, Keyring


class PostgresStore(
    Submitting,
    DeadLetters,
    Working,
    Settling,
    Listening,
    Noting,
    LogLines,
    Gating,
    Limiting,
    Capping,
    Sharing,
    Scheduling,
    Occurring,
    Searching,
    Keys,
    Secrets,
    Artifacts,
    Notifying,
    Alerting,
    Depending,
    Explaining,
    Duties,
    Statistics,
    Keeping,
):
    """See `store.base.Store`."""

    def __init__(self, database: Database, epoch: int, max_args_bytes: int, keyring: Keyring = NO_KEYS) -> None:
        super().__init__(database, LaneBook(), id_maker(database))
        self._epoch = epoch
        self.max_args_bytes = max_args_bytes
        self.keyring = keyring

    @property
    def epoch(self) -> int:
        return self._epoch

    async def close(self) -> None:
        await self._hints.close()
        await self._db.close()


class PostgresReplica(PostgresStore):
    """A standby of a database: it is only read."""

    async def lag(self) -> float:
        """Return for how many seconds it has heard nothing new, 0 if there was nothing new to hear."""
        seconds: float = await self._db.read(lambda connection: connection.fetchval(SQL["replica_lag"]))
        return seconds


async def open_replica(url: str, *, pool_size: int = 10) -> PostgresReplica:
    """Open a standby, or say what is wrong with it."""
    database = await connect(url, pool_size=pool_size)
    try:
        check_version(await database.read(version_of), len(MIGRATIONS))
        row = await database.read(lambda connection: one(connection, SQL["meta"]))
        database.learn_time(row["now"])
        return PostgresReplica(database, row["epoch"], MAX_ARGS_BYTES)
    except BaseException:
        await database.close()
        raise


async def open_store(
    url: str,
    *,
    pool_size: int = 10,
    clock: Clock | None = None,
    max_args_bytes: int = MAX_ARGS_BYTES,
    keyring: Keyring = NO_KEYS,
) -> PostgresStore:
    """Open a migrated database, or say what is wrong with it."""
    database = await connect(url, pool_size=pool_size, clock=clock)
    try:
        check_version(await database.read(version_of), len(MIGRATIONS))
        row = await database.read(lambda connection: one(connection, SQL["meta"]))
        database.learn_time(row["now"])
        store = PostgresStore(database, row["epoch"], max_args_bytes, keyring)
        await store.prepare_days()
    except BaseException:
        await database.close()
        raise
    return store
