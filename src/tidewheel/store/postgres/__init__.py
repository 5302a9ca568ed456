"""The store on PostgreSQL: many servers and workers on one database."""

from tidewheel.store.postgres.copying import open_target
from tidewheel.store.postgres.migrate import check, migrate, pending_sql
from tidewheel.store.postgres.store import PostgresReplica, PostgresStore, open_replica, open_store

__all__ = [
    "PostgresReplica",
    "PostgresStore",
    "check",
    "migrate",
    "open_replica",
    "open_store",
    "open_target",
    "pending_sql",
]
