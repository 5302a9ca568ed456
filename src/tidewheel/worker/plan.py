"""Which children a worker has, and what each of them serves; pure."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.resources import RESERVE_AFTER, Offer
from tidewheel.model.retention import Upkeep
from tidewheel.model.worker import DEFAULT_TTL, WorkerSpec, check_ttl, check_worker
from tidewheel.observe.own_log import LogSetup
from tidewheel.tasks.definition import COMMAND, HTTP, Isolation
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker.floor import USUAL
from tidewheel.worker.link import ServerSetup, Setup
from tidewheel.worker.members import MemberSpec

MOST_CHILDREN: Final = 256
_NOBODY: Final = UUID(int=0)


class WorkerPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What someone wants a worker to be."""

    database: str
    blobs: str
    scratch: str
    name: str
    app: str | None = None
    queues: tuple[str, ...] = ("default",)
    """None at all for a keeper alone."""
    inline: int = 1
    """How many runners, each a process with an event loop."""
    concurrency: int = 100
    """How many runs a runner serves at once."""
    slots: int = 2
    """How many processes and commands run at once."""
    keeper: bool = True
    """Whether it also does its share of the chores."""
    upkeep: Upkeep = Upkeep()
    """What its keeper goes by."""
    environment: Mapping[str, str] = {}
    """What tasks in processes of their own see of this environment, besides what every program needs."""
    secrets: str | None = None
    """The folder of secrets, with one folder for each tenant."""
    hidden: tuple[str, ...] = ()
    """Files with keys and passwords of its settings, which tasks must not read."""
    least_isolation: Isolation = USUAL
    """What commands have at least, whatever they ask for."""
    offer: Offer = Offer()
    ttl: timedelta = DEFAULT_TTL
    grace: timedelta = timedelta(seconds=5)
    """How long a run that must end has to do so by itself."""
    longest_pause: timedelta = timedelta(minutes=10)
    """After how long a paused run goes on, whoever else runs."""
    reserve_after: timedelta = RESERVE_AFTER
    """How long a job is too large for what is free before that is kept for it."""
    metrics: tuple[str, int] | None = None
    """The address and the port on which its numbers are shown; None for nowhere."""
    log: LogSetup = LogSetup()
    """How its processes write their own logs."""
    otel: str | None = None
    """Where they send spans, by OTLP over HTTP; None for where OpenTelemetry's own variables say."""
    servers: int = 0
    """How many processes answer HTTP requests."""
    serve: ServerSetup | None = None
    """Where they do, and to whom."""
    replica: str | None = None
    """A replica of the database for them to read lists from."""
    max_args_bytes: int | None = None
    """How large the arguments of jobs may be that they take in; None for what the environment says."""


class Modules(msgspec.Struct, frozen=True, kw_only=True):
    """What the children run, as with `python -m`."""

    runner: str
    host: str
    keeper: str
    server: str


def members_of(plan: WorkerPlan, catalogue: Sequence[CatalogueEntry], modules: Modules) -> list[MemberSpec]:
    """Return the children: runners for inline tasks and HTTP calls, a host for all else; servers and a keeper."""
    _check(plan)
    inline = (*(entry.kind for entry in catalogue if entry.mode == "inline"), HTTP)
    hosted = (*(entry.kind for entry in catalogue if entry.mode == "process"), COMMAND)
    labels = Offer(labels=plan.offer.labels)
    members = [
        _member(plan, catalogue, modules.runner, f"{plan.name}/runner-{number}", (inline, plan.concurrency, labels))
        for number in range(plan.inline)
    ]
    if plan.slots:
        members.append(_member(plan, catalogue, modules.host, f"{plan.name}/host", (hosted, plan.slots, plan.offer)))
    if plan.keeper:
        members.append(MemberSpec(modules.keeper, _setup(plan, catalogue, f"{plan.name}/keeper", 0, Offer())))
    members += [
        MemberSpec(modules.server, _setup(plan, catalogue, f"{plan.name}/server-{number}", 0, Offer()), renewable=True)
        for number in range(plan.servers)
    ]
    return members


def _member(
    plan: WorkerPlan,
    catalogue: Sequence[CatalogueEntry],
    module: str,
    name: str,
    serves: tuple[tuple[str, ...], int, Offer],
) -> MemberSpec:
    kinds, slots, offer = serves
    setup = _setup(plan, catalogue, name, slots, offer)
    worker = WorkerSpec(name=name, queues=plan.queues, kinds=kinds, offer=offer, ttl=plan.ttl)
    check_worker(worker)
    return MemberSpec(module, setup, worker)


def _setup(plan: WorkerPlan, catalogue: Sequence[CatalogueEntry], name: str, slots: int, offer: Offer) -> Setup:
    return Setup(
        database=plan.database,
        blobs=plan.blobs,
        app=plan.app,
        worker_id=_NOBODY,
        name=name,
        queues=plan.queues,
        catalogue=tuple(catalogue),
        offer=offer,
        slots=slots,
        ttl=plan.ttl,
        scratch=plan.scratch,
        grace=plan.grace,
        environment=plan.environment,
        longest_pause=plan.longest_pause,
        reserve_after=plan.reserve_after,
        secrets=plan.secrets,
        hidden=plan.hidden,
        least_isolation=plan.least_isolation,
        upkeep=plan.upkeep,
        log=plan.log,
        otel=plan.otel,
        serve=plan.serve,
        replica=plan.replica,
        max_args_bytes=plan.max_args_bytes,
    )


def _check(plan: WorkerPlan) -> None:
    check_ttl(plan.ttl, "lease")
    for field, value, least in (
        ("inline", plan.inline, 0),
        ("workers", plan.servers, 0),
        ("slots", plan.slots, 0),
        ("concurrency", plan.concurrency, 1),
    ):
        if not least <= value <= (MOST_CHILDREN if field in ("inline", "workers") else 10_000):
            raise Invalid(field, f"must be at least {least}, and not {value}")
    if plan.queues and not plan.inline and not plan.slots and not plan.servers:
        raise Invalid("slots", "a worker without runners and without slots runs nothing")
