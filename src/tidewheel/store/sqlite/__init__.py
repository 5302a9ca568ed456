"""The store in one SQLite file: one host, one or several processes, nothing to set up."""

from tidewheel.store.sqlite.copying import SqliteSource
from tidewheel.store.sqlite.migrate import check, migrate, pending_sql
from tidewheel.store.sqlite.store import SqliteStore, open_store

__all__ = ["SqliteSource", "SqliteStore", "check", "migrate", "open_store", "pending_sql"]
