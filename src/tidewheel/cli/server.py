"""`tide server`: answer HTTP requests."""

from typing import Annotated, Final

import msgspec
import typer

from tidewheel.cli.options import Blobs, Database
from tidewheel.cli.worker import WithKeeper, plan_of, run_worker
from tidewheel.server.serving import DEFAULT_PORT, Address, Reservation
from tidewheel.wiring import DEFAULT_URL

DRAIN: Final = 10.0
"""Seconds that requests under way get to be answered after SIGTERM or Ctrl-C."""

Host = Annotated[str, typer.Option(envvar="TIDE_HOST", help="The address to listen on.")]
Port = Annotated[
    int, typer.Option(envvar="TIDE_PORT", help="The port to listen on; 0 takes any that is free.", min=0, max=65535)
]
Workers = Annotated[int, typer.Option(help="How many processes share the requests.", min=1)]


def server(
    *,
    database: Database = DEFAULT_URL,
    blobs: Blobs = None,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    workers: Workers = 1,
    keeper: WithKeeper = True,
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C. It runs no jobs: `tide worker` does, and `tide up` does all.

    Any number of servers may share one database, on one machine with SQLite and on many with PostgreSQL.
    """
    reserved = Reservation(Address(host, port))
    try:
        plan = plan_of(database, app=None, blobs=blobs, slots=0)
        plan = msgspec.structs.replace(plan, inline=0, servers=workers, listen=reserved.address, keeper=keeper)
        run_worker(plan, DRAIN)
    finally:
        reserved.close()
