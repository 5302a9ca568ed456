"""`tide server`: answer HTTP requests."""

from functools import partial
from typing import Annotated, Final

import msgspec

from tidewheel.cli.options import Blobs, Database, MaxArgsBytes, default, setting
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
    KeepFor,
    LogFormat,
    LogLevel,
    MaxAge,
    NotifyPrivate,
    OtelEndpoint,
    WithKeeper,
    plan_of,
    run_worker,
)
from tidewheel.model.retention import parse_upkeep
from tidewheel.observe.own_log import log_setup, write_log
from tidewheel.observe.tracing import check_endpoint
from tidewheel.worker.link import ServerSetup

DRAIN: Final = 10.0
"""Seconds that requests under way get to be answered after SIGTERM or Ctrl-C."""

Workers = Annotated[int, setting("workers", min=1)]


def server(
    *,
    database: Database = default("database"),
    blobs: Blobs = default("blobs"),
    host: Host = default("host"),
    port: Port = default("port"),
    auth: AuthMode = default("auth"),
    key_rate: KeyRate = default("key_rate"),
    key_burst: Burst = default("key_burst"),
    tls_cert: TlsCert = default("tls_cert"),
    tls_key: TlsKey = default("tls_key"),
    behind_tls: BehindTls = default("behind_tls"),
    replica: Replica = default("replica"),
    workers: Workers = default("workers"),
    keeper: WithKeeper = default("keeper"),
    keep: KeepFor = default("keep"),
    max_age: MaxAge = default("max_age"),
    notify_private: NotifyPrivate = default("notify_private"),
    log_format: LogFormat = default("log_format"),
    log_level: LogLevel = default("log_level"),
    otel_endpoint: OtelEndpoint = default("otel_endpoint"),
    alert: AlertBounds = default("alert"),
    max_args_bytes: MaxArgsBytes = default("max_args_bytes"),
) -> None:
    """Answer HTTP requests until SIGTERM or Ctrl-C. It runs no jobs: `tide worker` does, and `tide up` does all.

    Any number of servers may share one database, on one machine with SQLite and on many with PostgreSQL.
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
        plan = plan_of(database, app=None, blobs=blobs, slots=0)
        plan = msgspec.structs.replace(
            plan,
            inline=0,
            servers=workers,
            serve=serve,
            keeper=keeper,
            replica=checked_replica(replica),
            max_args_bytes=max_args_bytes,
            log=log,
            otel=check_endpoint(otel_endpoint),
            upkeep=parse_upkeep(keep, max_age, notify_private, alert),
        )
        run_worker(plan, DRAIN, partial(show_first_key, database, serve))
