"""`tide server`: answer HTTP requests."""

from functools import partial
from typing import Annotated, Final

import msgspec
import typer

from tidewheel.cli.options import Blobs, Database
from tidewheel.cli.serving import AuthMode, Burst, Host, KeyRate, Port, TlsCert, TlsKey, reserved, show_first_key
from tidewheel.cli.worker import WithKeeper, plan_of, run_worker
from tidewheel.server.access import Auth
from tidewheel.server.serving import DEFAULT_PORT
from tidewheel.wiring import DEFAULT_URL
from tidewheel.worker.link import ServerSetup

DRAIN: Final = 10.0
"""Seconds that requests under way get to be answered after SIGTERM or Ctrl-C."""

Workers = Annotated[int, typer.Option(help="How many processes share the requests.", min=1)]


def server(
    *,
    database: Database = DEFAULT_URL,
    blobs: Blobs = None,
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    auth: AuthMode = Auth.AUTO,
    key_rate: KeyRate = None,
    key_burst: Burst = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
    workers: Workers = 1,
    keeper: WithKeeper = True,
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C. It runs no jobs: `tide worker` does, and `tide up` does all.

    Any number of servers may share one database, on one machine with SQLite and on many with PostgreSQL.
    """
    wanted = ServerSetup(
        host=host, port=port, auth=auth, rate=key_rate, burst=key_burst, tls_cert=tls_cert, tls_key=tls_key
    )
    with reserved(wanted) as serve:
        plan = plan_of(database, app=None, blobs=blobs, slots=0)
        plan = msgspec.structs.replace(plan, inline=0, servers=workers, serve=serve, keeper=keeper)
        run_worker(plan, DRAIN, partial(show_first_key, database, serve))
