"""`tide worker`: run jobs on this machine."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import uvloop

from tidewheel.cli.options import Blobs, Database, MaxArgsBytes, SecretsFolder, default, parse_labels, setting
from tidewheel.clock import SystemClock
from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.resources import Offer, parse_resources
from tidewheel.model.retention import parse_upkeep
from tidewheel.observe import page
from tidewheel.observe.catalogue import build_info
from tidewheel.observe.own_log import LogSetup, announce, log_setup, write_log
from tidewheel.observe.tracing import check_endpoint
from tidewheel.settings import unknown_variables
from tidewheel.store.base import Store
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.wiring import blobs_url, is_server, open_blobs, open_store, secret_files
from tidewheel.worker.declaring import declare
from tidewheel.worker.executors.describing import describe
from tidewheel.worker.floor import parse_isolation
from tidewheel.worker.metrics_port import MetricsPort
from tidewheel.worker.plan import Modules, WorkerPlan, members_of
from tidewheel.worker.sandbox import allotment
from tidewheel.worker.supervisor import Supervisor

_log = logging.getLogger(__name__)
MODULES: Final = Modules(
    runner="tidewheel.cli.children.runner",
    host="tidewheel.cli.children.host",
    keeper="tidewheel.cli.children.keeper",
    server="tidewheel.cli.children.server",
)

App = Annotated[str | None, setting("app")]
Queue = Annotated[list[str], setting("queue")]
Inline = Annotated[int, setting("inline", min=0)]
Concurrency = Annotated[int, setting("concurrency", min=1)]
Slots = Annotated[int | None, setting("slots", min=0)]
Resource = Annotated[list[str], setting("resource")]
Label = Annotated[list[str], setting("label")]
Env = Annotated[list[str], setting("env")]
LeastIsolation = Annotated[str, setting("least_isolation")]
Lease = Annotated[str, setting("lease")]
Grace = Annotated[str, setting("grace")]
LongestPause = Annotated[str, setting("longest_pause")]
ReserveAfter = Annotated[str, setting("reserve_after")]
DrainFor = Annotated[str, setting("drain")]
Name = Annotated[str | None, setting("name")]
LogFormat = Annotated[str, setting("log_format")]
LogLevel = Annotated[str, setting("log_level")]
OtelEndpoint = Annotated[str | None, setting("otel_endpoint")]
MetricsPortNumber = Annotated[int | None, setting("metrics_port", min=0, max=65535)]
MetricsHost = Annotated[str, setting("metrics_host")]
WithKeeper = Annotated[bool, setting("keeper", "--keeper/--no-keeper")]
KeepFor = Annotated[list[str], setting("keep")]
MaxAge = Annotated[str, setting("max_age")]
NotifyPrivate = Annotated[list[str], setting("notify_private")]
AlertBounds = Annotated[list[str], setting("alert")]


def worker(
    *,
    app: App = default("app"),
    database: Database = default("database"),
    blobs: Blobs = default("blobs"),
    queue: Queue = default("queue"),
    inline: Inline = default("inline"),
    concurrency: Concurrency = default("concurrency"),
    slots: Slots = default("slots"),
    resource: Resource = default("resource"),
    label: Label = default("label"),
    env: Env = default("env"),
    least_isolation: LeastIsolation = default("least_isolation"),
    lease: Lease = default("lease"),
    grace: Grace = default("grace"),
    drain: DrainFor = default("drain"),
    longest_pause: LongestPause = default("longest_pause"),
    reserve_after: ReserveAfter = default("reserve_after"),
    name: Name = default("name"),
    log_format: LogFormat = default("log_format"),
    log_level: LogLevel = default("log_level"),
    otel_endpoint: OtelEndpoint = default("otel_endpoint"),
    metrics_port: MetricsPortNumber = default("metrics_port"),
    metrics_host: MetricsHost = default("metrics_host"),
    keeper: WithKeeper = default("keeper"),
    secrets: SecretsFolder = default("secrets"),
    keep: KeepFor = default("keep"),
    max_age: MaxAge = default("max_age"),
    notify_private: NotifyPrivate = default("notify_private"),
    alert: AlertBounds = default("alert"),
    max_args_bytes: MaxArgsBytes = default("max_args_bytes"),
) -> None:
    """Run jobs until SIGTERM or Ctrl-C: then finish what is short, and give the rest back. A second one hurries."""
    plan = msgspec.structs.replace(
        plan_of(database, app=app, blobs=blobs, slots=slots, name=name, secrets=secrets),
        queues=tuple(dict.fromkeys(queue)),
        inline=inline,
        concurrency=concurrency,
        keeper=keeper and not is_server(database),
        environment=_environment(env),
        least_isolation=parse_isolation(least_isolation, "least-isolation"),
        offer=Offer(resources=_resources(resource), labels=parse_labels(label)),
        ttl=parse_duration(lease, "lease"),
        grace=parse_duration(grace, "grace"),
        longest_pause=parse_duration(longest_pause, "longest-pause"),
        reserve_after=parse_duration(reserve_after, "reserve-after"),
        log=log_setup(log_format, log_level),
        otel=check_endpoint(otel_endpoint),
        metrics=None if metrics_port is None else (metrics_host, metrics_port),
        upkeep=parse_upkeep(keep, max_age, notify_private, alert),
        max_args_bytes=max_args_bytes,
    )
    run_worker(plan, parse_duration(drain, "drain").total_seconds())


def plan_of(
    database: str,
    *,
    app: str | None,
    blobs: str | None,
    slots: int | None,
    name: str | None = None,
    secrets: str | None = None,
) -> WorkerPlan:
    """Return a worker with the defaults of this machine."""
    if secrets is not None and not os.path.isdir(secrets):  # noqa: PTH112 - of a path, it raises for what can be no name
        raise Invalid("secrets", f"there is no folder {secrets[:200]}")
    return WorkerPlan(
        database=database,
        blobs=blobs_url(database, blobs),
        scratch=tempfile.gettempdir(),
        name=name or f"{socket.gethostname()}:{os.getpid()}",
        app=app,
        secrets=None if secrets is None else str(Path(secrets).absolute()),
        hidden=secret_files(),
        slots=allotment.cores() if slots is None else slots,
        offer=Offer(resources=_resources(())),
    )


def run_worker(plan: WorkerPlan, drain: float, first: Callable[[], Awaitable[object]] | None = None) -> None:
    """Do what is to be done first, then run a worker, until a signal ends it."""
    write_log(plan.log, process="supervisor", worker=plan.name)
    for name in unknown_variables(os.environ):
        _log.warning("%s is no setting, and is not heeded", name)
    uvloop.run(_until_told(plan, drain, first))


async def _until_told(plan: WorkerPlan, drain: float, first: Callable[[], Awaitable[object]] | None) -> None:
    """Listen to signals from the very beginning: drain at the first, hurry at the second, end all at the third."""
    supervising: list[Supervisor] = []
    working = asyncio.ensure_future(_work(plan, supervising, first))
    steps = iter((drain, 0.0))

    def heard() -> None:
        if not supervising:
            working.cancel()
        elif (seconds := next(steps, None)) is not None:
            announce(plan.log, f"takes no more; what is under way has {seconds:g} s to end")
            supervising[0].drain(seconds)
        else:
            supervising[0].kill()

    renewals: set[asyncio.Task[None]] = set()

    def renew() -> None:
        if supervising:
            renewals.add(task := asyncio.ensure_future(_renew(supervising[0], drain, plan.log)))
            task.add_done_callback(renewals.discard)

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heard)
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, renew)
    with contextlib.suppress(asyncio.CancelledError):
        await working
    announce(plan.log, "stopped")


async def _renew(supervisor: Supervisor, drain: float, log: LogSetup) -> None:
    """Put new servers in the place of the old ones; a worker has none, and goes on as it is."""
    number = await supervisor.renew(drain)
    announce(log, f"new servers: {number}")


async def _work(plan: WorkerPlan, supervising: list[Supervisor], first: Callable[[], Awaitable[object]] | None) -> None:
    if first is not None:
        await first()
    catalogue = [] if plan.app is None else await describe(plan.app, plan.environment)
    store = await open_store(plan.database, max_args_bytes=plan.max_args_bytes)
    try:
        open_blobs(plan.blobs)  # refuses what names no place, before anything runs
        await _declare(store, plan, catalogue)
        supervisor = Supervisor(store, members_of(plan, catalogue, MODULES), SystemClock(), ttl=plan.ttl)
        supervising.append(supervisor)
        async with _showing(supervisor, plan):
            if plan.inline or plan.slots:
                announce(plan.log, f"{plan.name} takes jobs of {', '.join(plan.queues)}. Ctrl-C stops it.")
            elif not plan.servers:
                announce(plan.log, f"{plan.name} does the chores. Ctrl-C stops it.")
            await supervisor.run()
    finally:
        await store.close()


@contextlib.asynccontextmanager
async def _showing(supervisor: Supervisor, plan: WorkerPlan) -> AsyncIterator[None]:
    """Show the numbers of a worker on a port, if one was named."""

    async def shown() -> bytes:
        return page([build_info(), *await supervisor.numbers.all()])

    if plan.metrics is None:
        yield
        return
    port = MetricsPort(shown, lambda: supervisor.ready)
    announce(plan.log, f"numbers at {await port.start(*plan.metrics)}/metrics")
    try:
        yield
    finally:
        port.close()


async def _declare(store: Store, plan: WorkerPlan, catalogue: Sequence[CatalogueEntry]) -> None:
    """Tell the store what the code of an app declares, unless this worker is one of a single tenant."""
    try:
        changed = await store.declare_rules([rule for entry in catalogue for rule in entry.rules])
        if changed:
            announce(plan.log, f"limits of tasks that are new or changed: {changed}")
        if plan.app is not None:
            await declare(store, plan.app, catalogue)
    except Forbidden as error:
        left = f"limits and schedules of {plan.app} are left to workers with a key of all tenants: {error}"
        announce(plan.log, left)


def _resources(given: Sequence[str]) -> dict[str, int]:
    return {"cpu": allotment.cpu(), "memory": allotment.memory()} | parse_resources(",".join(given), "resource")


def _environment(given: Sequence[str]) -> dict[str, str]:
    """Return the variables to pass on; one that is not set is left out, as a shell does."""
    pairs = [text.partition("=") for text in given]
    if any(not name or "\0" in name for name, _, _ in pairs):
        raise Invalid("env", "must be NAME or NAME=value")
    found = {name: value if equals else os.environ.get(name) for name, equals, value in pairs}
    return {name: value for name, value in found.items() if value is not None}
