"""`tide server`: answer HTTP requests."""

from typing import Annotated, Final

import msgspec

from tidewheel.cli.options import Blobs, Database, default, setting
from tidewheel.cli.worker import WithKeeper, plan_of, run_worker
from tidewheel.server.serving import Address, Reservation
from tidewheel.wiring import replica_of

DRAIN: Final = 10.0
"""Seconds that requests under way get to be answered after SIGTERM or Ctrl-C."""

Host = Annotated[str, setting("host")]
Port = Annotated[int, setting("port", min=0, max=65535)]
Replica = Annotated[str | None, setting("replica")]
Workers = Annotated[int, setting("workers", min=1)]


def server(
    *,
    database: Database = default("database"),
    blobs: Blobs = default("blobs"),
    host: Host = default("host"),
    port: Port = default("port"),
    replica: Replica = default("replica"),
    workers: Workers = default("workers"),
    keeper: WithKeeper = default("keeper"),
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C. It runs no jobs: `tide worker` does, and `tide up` does all.

    Any number of servers may share one database, on one machine with SQLite and on many with PostgreSQL.
    """
    reserved = Reservation(Address(host, port))
    try:
        plan = plan_of(database, app=None, blobs=blobs, slots=0)
        plan = msgspec.structs.replace(
            plan, inline=0, servers=workers, listen=reserved.address, keeper=keeper, replica=checked_replica(replica)
        )
        run_worker(plan, DRAIN)
    finally:
        reserved.close()


def checked_replica(url: str | None) -> str | None:
    """Return the replica, or refuse what cannot be one."""
    if url is not None:
        replica_of(url)
    return url
