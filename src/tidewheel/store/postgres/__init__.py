"""The store on PostgreSQL: many servers and workers on one database."""

from tidewheel.store.postgres.migrate import check, migrate, pending_sql
from tidewheel.store.postgres.store import PostgresStore, open_store

__all__ = ["PostgresStore", "check", "migrate", "open_store", "pending_sql"]
