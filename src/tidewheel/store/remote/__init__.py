"""A store behind a server: the same face as a database's, over HTTP.

What only the server itself does (schema, duties, reaping, retention) is not offered, and neither is what it has no
endpoint for; asking for it raises Invalid.

    store ── jobs, runs, flow, schedules, dead_letters, looking ── transport (requests, retries, errors) ── httpx
"""

from tidewheel.store.remote.store import RemoteStore, open_store

__all__ = ["RemoteStore", "open_store"]
