"""`tide up`: everything that is needed on one machine, in one command."""

import msgspec

from tidewheel.cli.options import Blobs, Database, MaxArgsBytes, SecretsFolder, default
from tidewheel.cli.serving import (
    AuthMode,
    BehindTls,
    Burst,
    Host,
    KeyRate,
    Port,
    Replica,
    TlsCert,
    TlsKey,
    checked_replica,
    reserved,
    show_first_key,
)
from tidewheel.cli.worker import (
    AlertBounds,
    App,
    KeepFor,
    LeastIsolation,
    LogFormat,
    LogLevel,
    MaxAge,
    NotifyPrivate,
    OtelEndpoint,
    Slots,
    plan_of,
    run_worker,
)
from tidewheel.model.retention import parse_upkeep
from tidewheel.observe.own_log import announce, log_setup, write_log
from tidewheel.observe.tracing import check_endpoint
from tidewheel.wiring import database_of, without_secrets
from tidewheel.worker.floor import parse_isolation
from tidewheel.worker.link import ServerSetup

DRAIN = 10.0
"""Seconds that running jobs get to end by themselves after Ctrl-C."""


def up(
    *,
    database: Database = default("database"),
    app: App = default("app"),
    blobs: Blobs = default("blobs"),
    slots: Slots = default("slots"),
    secrets: SecretsFolder = default("secrets"),
    least_isolation: LeastIsolation = default("least_isolation"),
    keep: KeepFor = default("keep"),
    max_age: MaxAge = default("max_age"),
    notify_private: NotifyPrivate = default("notify_private"),
    alert: AlertBounds = default("alert"),
    host: Host = default("host"),
    port: Port = default("port"),
    auth: AuthMode = default("auth"),
    key_rate: KeyRate = default("key_rate"),
    key_burst: Burst = default("key_burst"),
    tls_cert: TlsCert = default("tls_cert"),
    tls_key: TlsKey = default("tls_key"),
    behind_tls: BehindTls = default("behind_tls"),
    replica: Replica = default("replica"),
    log_format: LogFormat = default("log_format"),
    log_level: LogLevel = default("log_level"),
    otel_endpoint: OtelEndpoint = default("otel_endpoint"),
    max_args_bytes: MaxArgsBytes = default("max_args_bytes"),
) -> None:
    """Start Tidewheel: server, worker and chores, all on this machine.

    Brings the database up to date, answers HTTP requests, runs jobs and does the chores, until Ctrl-C.
    Runs commands (`tide submit -- echo hello`), HTTP calls and the tasks of an app; takes back the runs of workers that
    died, lets start deadlines expire, and removes finished jobs: successes after 7 days, others after 30, unless told
    otherwise.
    """
    log = log_setup(log_format, log_level)
    write_log(log, process="supervisor")
    wanted = ServerSetup(
        host=host,
        port=port,
        auth=auth,
        rate=key_rate,
        burst=key_burst,
        tls_cert=tls_cert,
        tls_key=tls_key,
        behind_tls=behind_tls,
    )
    with reserved(wanted) as serve:

        async def prepare() -> None:
            await database_of(database).migrate()
            await show_first_key(database, serve)
            announce(log, f"Tidewheel keeps {without_secrets(database)}. Try: tide submit --wait -- echo hello")

        plan = plan_of(database, app=app, blobs=blobs, slots=slots, secrets=secrets)
        plan = msgspec.structs.replace(
            plan,
            least_isolation=parse_isolation(least_isolation, "least-isolation"),
            servers=1,
            serve=serve,
            log=log,
            otel=check_endpoint(otel_endpoint),
            upkeep=parse_upkeep(keep, max_age, notify_private, alert),
            replica=checked_replica(replica),
            max_args_bytes=max_args_bytes,
        )
        run_worker(plan, DRAIN, prepare)
