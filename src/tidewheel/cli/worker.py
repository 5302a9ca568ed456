"""`tide worker`: run jobs on this machine."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
import uvloop

from tidewheel.blobs import open_blobs
from tidewheel.cli.options import Blobs, Database, SecretsFolder, parse_labels
from tidewheel.clock import SystemClock
from tidewheel.errors import Forbidden, Invalid
from tidewheel.model.resources import Offer, parse_resources
from tidewheel.model.retention import parse_upkeep
from tidewheel.store.base import Store
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.wiring import DEFAULT_URL, blobs_url, is_server, open_store
from tidewheel.worker.declaring import declare
from tidewheel.worker.executors.describing import describe
from tidewheel.worker.plan import Modules, WorkerPlan, members_of
from tidewheel.worker.supervisor import Supervisor

MODULES: Final = Modules(
    runner="tidewheel.cli.children.runner",
    host="tidewheel.cli.children.host",
    keeper="tidewheel.cli.children.keeper",
    server="tidewheel.cli.children.server",
)

App = Annotated[str | None, typer.Option(help="The app whose tasks to run, as package.module:attribute.")]
Queue = Annotated[list[str], typer.Option(help="A queue to serve; may be given several times.")]
Inline = Annotated[int, typer.Option(help="Runners: processes for async functions, each with an event loop.", min=0)]
Concurrency = Annotated[int, typer.Option(help="How many async functions a runner serves at once.", min=1)]
Slots = Annotated[
    int | None, typer.Option(help="How many processes and commands run at once.  [default: cores]", min=0)
]
Resource = Annotated[
    list[str],
    typer.Option(
        "--resource", help="What this machine has, such as gpu=2 or memory=8GiB; cpu and memory are detected."
    ),
]
Label = Annotated[list[str], typer.Option("--label", help="A label that jobs may ask for, such as zone=a.")]
Env = Annotated[
    list[str],
    typer.Option(help="A variable that plain functions and commands may see: NAME to pass it on, or NAME=value."),
]
Lease = Annotated[str, typer.Option(help="How long a silent worker keeps its jobs, from 2s to 1h.")]
Grace = Annotated[str, typer.Option(help="How long a run that must end has to do so by itself.")]
LongestPause = Annotated[str, typer.Option(help="After how long a paused run goes on, whoever else runs.")]
ReserveAfter = Annotated[
    str, typer.Option(help="After how long a job too large for what is free has what becomes free kept for it.")
]
DrainFor = Annotated[
    str, typer.Option("--drain", help="How long to wait for running jobs at the first SIGTERM or Ctrl-C.")
]
Name = Annotated[str | None, typer.Option(help="The worker's name, for people.  [default: the host's name]")]
WithKeeper = Annotated[bool, typer.Option("--keeper/--no-keeper", help="Whether to do a share of the chores.")]

KeepFor = Annotated[
    list[str],
    typer.Option(
        "--keep",
        envvar="TIDE_KEEP",
        help="How long finished jobs are kept: dead=90d, or emails:succeeded=1d for one kind. May be repeated.",
    ),
]
MaxAge = Annotated[
    str, typer.Option(envvar="TIDE_MAX_AGE", help="How long a job may wait since it was last due, or off.")
]


def worker(
    *,
    app: App = None,
    database: Database = DEFAULT_URL,
    blobs: Blobs = None,
    queue: Queue = ["default"],  # noqa: B006 - typer copies it
    inline: Inline = 1,
    concurrency: Concurrency = 100,
    slots: Slots = None,
    resource: Resource = [],  # noqa: B006
    label: Label = [],  # noqa: B006
    env: Env = [],  # noqa: B006
    lease: Lease = "30s",
    grace: Grace = "5s",
    drain: DrainFor = "30s",
    longest_pause: LongestPause = "10m",
    reserve_after: ReserveAfter = "30s",
    name: Name = None,
    keeper: WithKeeper = True,
    secrets: SecretsFolder = None,
    keep: KeepFor = [],  # noqa: B006
    max_age: MaxAge = "14d",
) -> None:
    """Run jobs until SIGTERM or Ctrl-C: then finish what is short, and give the rest back. A second one hurries."""
    plan = msgspec.structs.replace(
        plan_of(database, app=app, blobs=blobs, slots=slots, name=name, secrets=secrets),
        queues=tuple(dict.fromkeys(queue)),
        inline=inline,
        concurrency=concurrency,
        keeper=keeper and not is_server(database),
        environment=_environment(env),
        offer=Offer(resources=_resources(resource), labels=parse_labels(label)),
        ttl=parse_duration(lease, "lease"),
        grace=parse_duration(grace, "grace"),
        longest_pause=parse_duration(longest_pause, "longest-pause"),
        reserve_after=parse_duration(reserve_after, "reserve-after"),
        upkeep=parse_upkeep(keep, max_age),
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
    if secrets is not None and not Path(secrets).is_dir():
        raise Invalid("secrets", f"there is no folder {secrets}")
    return WorkerPlan(
        database=database,
        blobs=blobs_url(database, blobs),
        scratch=tempfile.gettempdir(),
        name=name or f"{socket.gethostname()}:{os.getpid()}",
        app=app,
        secrets=None if secrets is None else str(Path(secrets).absolute()),
        slots=cores() if slots is None else slots,
        offer=Offer(resources=_resources(())),
    )


def run_worker(plan: WorkerPlan, drain: float, first: Callable[[], Awaitable[object]] | None = None) -> None:
    """Do what is to be done first, then run a worker, until a signal ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
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
            typer.echo(f"takes no more; what is under way has {seconds:g} s to end")
            supervising[0].drain(seconds)
        else:
            supervising[0].kill()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heard)
    with contextlib.suppress(asyncio.CancelledError):
        await working
    typer.echo("stopped")


async def _work(plan: WorkerPlan, supervising: list[Supervisor], first: Callable[[], Awaitable[object]] | None) -> None:
    if first is not None:
        await first()
    catalogue = [] if plan.app is None else await describe(plan.app, plan.environment)
    store = await open_store(plan.database)
    try:
        open_blobs(plan.blobs)  # refuses what names no place, before anything runs
        await _declare(store, plan.app, catalogue)
        supervisor = Supervisor(store, members_of(plan, catalogue, MODULES), SystemClock(), ttl=plan.ttl)
        supervising.append(supervisor)
        if plan.inline or plan.slots:
            typer.echo(f"{plan.name} takes jobs of {', '.join(plan.queues)}. Ctrl-C stops it.")
        await supervisor.run()
    finally:
        await store.close()


async def _declare(store: Store, app: str | None, catalogue: Sequence[CatalogueEntry]) -> None:
    """Tell the store what the code of an app declares, unless this worker is one of a single tenant."""
    try:
        changed = await store.declare_rules([rule for entry in catalogue for rule in entry.rules])
        if changed:
            typer.echo(f"limits of tasks that are new or changed: {changed}")
        if app is not None:
            await declare(store, app, catalogue)
    except Forbidden as error:
        typer.echo(f"limits and schedules of {app} are left to workers with a key of all tenants: {error}")


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _resources(given: Sequence[str]) -> dict[str, int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": 1000 * cores(), "memory": memory} | parse_resources(",".join(given), "resource")


def _environment(given: Sequence[str]) -> dict[str, str]:
    """Return the variables to pass on; one that is not set is left out, as a shell does."""
    pairs = [text.partition("=") for text in given]
    if any(not name or "\0" in name for name, _, _ in pairs):
        raise Invalid("env", "must be NAME or NAME=value")
    found = {name: value if equals else os.environ.get(name) for name, equals, value in pairs}
    return {name: value for name, value in found.items() if value is not None}
