"""`tide up`: everything that is needed on one machine, in one command."""

import msgspec
import typer

from tidewheel.cli.options import Blobs, Database, SecretsFolder
from tidewheel.cli.serving import AuthMode, Burst, Host, KeyRate, Port, TlsCert, TlsKey, reserved, show_first_key
from tidewheel.cli.worker import App, KeepFor, MaxAge, Slots, plan_of, run_worker
from tidewheel.model.retention import parse_upkeep
from tidewheel.server.access import Auth
from tidewheel.server.serving import DEFAULT_PORT
from tidewheel.wiring import DEFAULT_URL, database_of, without_secrets
from tidewheel.worker.link import ServerSetup

DRAIN = 10.0
"""Seconds that running jobs get to end by themselves after Ctrl-C."""


def up(
    *,
    database: Database = DEFAULT_URL,
    app: App = None,
    blobs: Blobs = None,
    slots: Slots = None,
    secrets: SecretsFolder = None,
    keep: KeepFor = [],  # noqa: B006 - typer copies it
    max_age: MaxAge = "14d",
    host: Host = "127.0.0.1",
    port: Port = DEFAULT_PORT,
    auth: AuthMode = Auth.AUTO,
    key_rate: KeyRate = None,
    key_burst: Burst = None,
    tls_cert: TlsCert = None,
    tls_key: TlsKey = None,
) -> None:
    """Start Tidewheel: server, worker and chores, all on this machine.

    Brings the database up to date, answers HTTP requests, runs jobs and does the chores, until Ctrl-C.
    Runs commands (`tide submit -- echo hello`), HTTP calls and the tasks of an app; takes back the runs of workers that
    died, lets start deadlines expire, and removes finished jobs: successes after 7 days, others after 30, unless told
    otherwise.
    """
    wanted = ServerSetup(
        host=host, port=port, auth=auth, rate=key_rate, burst=key_burst, tls_cert=tls_cert, tls_key=tls_key
    )
    with reserved(wanted) as serve:

        async def prepare() -> None:
            await database_of(database).migrate()
            await show_first_key(database, serve)
            typer.echo(f"Tidewheel keeps {without_secrets(database)}. Try: tide submit --wait -- echo hello")

        plan = plan_of(database, app=app, blobs=blobs, slots=slots, secrets=secrets)
        plan = msgspec.structs.replace(plan, servers=1, serve=serve, upkeep=parse_upkeep(keep, max_age))
        run_worker(plan, DRAIN, prepare)
