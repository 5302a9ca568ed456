"""`tide worker`: run jobs on this machine."""

import asyncio
import logging
import os
import signal
import socket
import tempfile
from collections.abc import Sequence
from typing import Annotated, Final

import typer
import uvloop

from tidewheel.cli.options import Blobs, Database
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.resources import Offer, parse_resources
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.wiring import DEFAULT_URL, blobs_url, open_store
from tidewheel.worker.executors.describing import describe
from tidewheel.worker.plan import Modules, WorkerPlan, members_of
from tidewheel.worker.supervisor import Supervisor

MODULES: Final = Modules(
    runner="tidewheel.cli.children.runner", host="tidewheel.cli.children.host", keeper="tidewheel.cli.children.keeper"
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
Lease = Annotated[str, typer.Option(help="How long a silent worker keeps its jobs, from 2s to 1h.")]
Grace = Annotated[str, typer.Option(help="How long a run that must end has to do so by itself.")]
DrainFor = Annotated[
    str, typer.Option("--drain", help="How long to wait for running jobs at the first SIGTERM or Ctrl-C.")
]
Name = Annotated[str | None, typer.Option(help="The worker's name, for people.  [default: the host's name]")]
WithKeeper = Annotated[bool, typer.Option("--keeper/--no-keeper", help="Whether to do a share of the chores.")]


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
    lease: Lease = "30s",
    grace: Grace = "5s",
    drain: DrainFor = "30s",
    name: Name = None,
    keeper: WithKeeper = True,
) -> None:
    """Run jobs until SIGTERM or Ctrl-C: then finish what is short, and give the rest back. A second one hurries."""
    plan = WorkerPlan(
        database=database,
        blobs=blobs_url(database, blobs),
        scratch=tempfile.gettempdir(),
        name=name or f"{socket.gethostname()}:{os.getpid()}",
        app=app,
        queues=tuple(dict.fromkeys(queue)),
        inline=inline,
        concurrency=concurrency,
        slots=cores() if slots is None else slots,
        keeper=keeper,
        offer=Offer(resources=_resources(resource), labels=_labels(label)),
        ttl=parse_duration(lease, "lease"),
        grace=parse_duration(grace, "grace"),
    )
    run_worker(plan, parse_duration(drain, "drain").total_seconds())


def run_worker(plan: WorkerPlan, drain: float) -> None:
    """Run a worker until a signal ends it."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(process)d %(message)s")
    catalogue = [] if plan.app is None else describe(plan.app)
    uvloop.run(_supervise(plan, catalogue, drain))


async def _supervise(plan: WorkerPlan, catalogue: Sequence[CatalogueEntry], drain: float) -> None:
    store = await open_store(plan.database)
    try:
        for entry in catalogue:
            if entry.concurrency is not None:
                await store.set_limit(f"task:{entry.kind}", entry.concurrency)
        members = members_of(plan, catalogue, MODULES)
        supervisor = Supervisor(store, members, SystemClock(), ttl=plan.ttl)
        _on_signals(supervisor, drain)
        typer.echo(f"{plan.name} takes jobs of {', '.join(plan.queues)}. Ctrl-C stops it.")
        await supervisor.run()
    finally:
        await store.close()
    typer.echo("stopped")


def _on_signals(supervisor: Supervisor, drain: float) -> None:
    """Drain at the first signal, hurry at the second, end everything at the third."""
    left = [lambda: supervisor.drain(drain), lambda: supervisor.drain(0), supervisor.kill]

    def heard() -> None:
        (left.pop(0) if len(left) > 1 else left[0])()

    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, heard)


def cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))


def _resources(given: Sequence[str]) -> dict[str, int]:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"cpu": 1000 * cores(), "memory": memory} | parse_resources(",".join(given), "resource")


def _labels(given: Sequence[str]) -> dict[str, str]:
    labels = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise Invalid("label", f"must be name=value, not {text[:40]!r}")
        labels[name] = value
    return labels
