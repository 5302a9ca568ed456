"""A small world with a bit of everything, and with markup in every text that a user may choose."""

import hashlib
import json
import secrets
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import UUID

from tests.builders import a_claim, a_job, a_schedule, a_worker, outcome_of
from tests.dashboard.site import CLOCK
from tidewheel.blobs import Blobs
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.alert import Finding, Rule, WindowSpec
from tidewheel.model.api_key import ENTROPY, KeySpec, make_key
from tidewheel.model.artifact import ArtifactSpec
from tidewheel.model.audit import change_by
from tidewheel.model.channel import ChannelSpec
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Options, Run
from tidewheel.model.log import LogLine
from tidewheel.model.note import RunNote
from tidewheel.model.notification import Answer, Event, SubscriptionSpec
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Offer
from tidewheel.model.states import Cause
from tidewheel.store.base import Store
from tidewheel.triggers import Cron

EVIL = '<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>\'">{{7*7}}'
EVIL_FILE = "<img src=x onerror=window.hacked=1>.txt"
OUTPUT = b"left behind"
ARTIFACT = b"brought along"
SHORT_EVIL = "<script>window.hacked=1</script>\"'"


@dataclass
class World:
    """The ids of what the tests look for."""

    worker: UUID
    running: UUID
    done: UUID
    dead: UUID
    held: UUID
    parent: UUID
    child: UUID
    evil: UUID
    schedule: UUID
    paused: UUID
    evil_schedule: UUID
    spring: UUID
    evil_running: UUID
    evil_result: UUID
    artifact: str


async def fill(store: Store, blobs: Blobs, folder: Path) -> World:
    """Fill a store, and the place of what is too large for it."""
    worker = await store.register(
        a_worker("atlas/runner-0", queues=("default", "mail"), offer=Offer(resources={"cpu": 4000, "memory": 8 << 30}))
    )
    done = await _ended(store, worker.id, "report.daily", "Nightly report")
    dead = await _dead(store, worker.id)
    evil = await _evil(store, worker.id)
    running = await _running(store, worker.id)
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="mail.send", tenant="default", reason=EVIL, author=EVIL))
    held = await _submit(store, "mail.send", queue="mail", labels={"campaign": "autumn"})
    parent = await _submit(store, "etl.extract", delay=timedelta(hours=2), priority=Priority.HIGH)
    child = await _submit(store, "etl.load", after=(parent,))
    await store.submit([a_job("etl.index", after=(child,)), a_job("etl.notify", after=(child,), priority=Priority.LOW)])
    await store.set_limit("api.example", 2)
    await store.set_limit(SHORT_EVIL, 1)
    schedules = [
        await store.create_schedule(
            a_schedule("backup", Cron("30 2 * * *", "Europe/Berlin"), description="Copies all", args={"target": "s3"})
        ),
        await store.create_schedule(a_schedule("cleanup")),
        await store.create_schedule(a_schedule("evil", description=EVIL, args={EVIL: EVIL}, labels={"x": EVIL})),
        await store.create_schedule(a_schedule("spring", Cron("30 2 * 3 0", "Europe/Berlin"))),
    ]
    await _occurred(store, worker.id, schedules[0].id)
    await store.pause_schedule(schedules[1].id)
    for name in ("model.bin", "", SHORT_EVIL):
        digest = hashlib.sha256(name.encode()).hexdigest()
        await store.add_artifact(
            ArtifactSpec(tenant="default", digest=digest, size=12, name=name, created_by=SHORT_EVIL)
        )
    await _tell(store)
    await _worry(store)
    await _hold_up(store)
    await _write_down(store)
    evil_running, evil_result = await _evil_runs(store)
    await _leave(blobs, folder, evil_result)
    digest = await blobs.put_bytes(ARTIFACT)
    await store.add_artifact(
        ArtifactSpec(tenant="default", digest=digest, size=len(ARTIFACT), name="real.bin", created_by="me")
    )
    backup, cleanup, evil_schedule, spring = [schedule.id for schedule in schedules]
    return World(
        worker=worker.id,
        running=running,
        done=done,
        dead=dead,
        held=held,
        parent=parent,
        child=child,
        evil=evil,
        schedule=backup,
        paused=cleanup,
        evil_schedule=evil_schedule,
        spring=spring,
        evil_running=evil_running,
        evil_result=evil_result,
        artifact=digest,
    )


async def _occurred(store: Store, worker: UUID, schedule: UUID) -> None:
    """An occurrence whose job failed first and was done then."""
    made = (await store.trigger_schedule(schedule)).occurrence.job_id
    assert made is not None
    run = await _start(store, worker, made)
    await store.settle(worker, [outcome_of(run, Cause.FAILED)])
    run = await _start(store, worker, made)
    await store.settle(worker, [outcome_of(run)])


async def _hold_up(store: Store) -> None:
    """Gates of the other kinds, and a limit that someone holds and others wait for."""
    await store.close_gate(GateSpec(mode=GateMode.SLOW, kind="slowed", tenant="default", rate=2.5))
    await store.close_gate(GateSpec(mode=GateMode.DROP, kind="dropped", tenant="default"))
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="held.for.all", reason="of everyone"))
    await store.submit([a_job("held.for.all", tenant="acme", queue="nobody") for _ in range(3)])
    await store.set_limit("printer", 1)
    await store.submit([a_job("print", queue="printers", limit_keys=("printer",)) for _ in range(3)])
    worker = await store.register(a_worker("printing/runner-0", queues=("printers",)))
    while (await store.claim(a_claim(worker.id, 5, queues=("printers",)))).runs:
        pass


async def _write_down(store: Store) -> None:
    """A key and an entry of the audit log by someone with a strange name."""
    actor = Actor(role=Role.ADMIN, name=SHORT_EVIL)
    made = make_key(secrets.token_bytes(ENTROPY))
    await store.create_key(KeySpec(name=SHORT_EVIL, role=Role.VIEWER, tenant="default"), made.proof, by=actor)
    await store.set_secret("stripe_key", "sk_live_1234", by=actor)
    await store.audit([change_by(actor, Action.GATES_WRITE, EVIL, tenant="default", reason=EVIL, **{EVIL: EVIL})])


async def _evil_runs(store: Store) -> tuple[UUID, UUID]:
    """A job that runs on a worker with a strange name, and one that has a strange result."""
    offer = Offer(labels={"zone": SHORT_EVIL})
    worker = await store.register(a_worker(SHORT_EVIL, queues=("evil",), offer=offer))
    options = Options(name="strange run", description=EVIL)
    await store.submit([a_job("evil.run", queue="evil", options=options) for _ in range(2)])
    first, second = (await store.claim(a_claim(worker.id, 2, queues=("evil",)))).runs
    note = RunNote(job_id=first.job_id, token=first.token, progress=0.5, message=EVIL)
    await store.note(worker.id, [note])
    await store.settle(worker.id, [outcome_of(second, result=json.dumps({EVIL: EVIL}))])
    return first.job_id, second.job_id


async def _leave(blobs: Blobs, folder: Path, job: UUID) -> None:
    """Files that a run left behind."""
    left = folder / "left"
    left.write_bytes(OUTPUT)
    for name in ("plots/a.txt", EVIL_FILE):
        await blobs.store_output(job, 1, name, left)


async def _tell(store: Store) -> None:
    """Two channels, of which one hears of a kind that nobody else uses, and a message whose receiver is gone."""
    await store.add_channel(ChannelSpec(name="ops", address="https://hooks.example.org/s3cret", tenant="default"))
    await store.add_channel(ChannelSpec(name="pager", address="https://pager.example.org/s3cret"))
    spec = SubscriptionSpec(channel="ops", events=frozenset([Event.CANCELLED]), kind="noticed", text=EVIL)
    await store.subscribe(spec, tenant="default")
    job = await _submit(store, "noticed", labels={"x": EVIL}, queue="nobody")
    await store.cancel(job)
    await store.spread_happenings()
    [parcel] = await store.take_deliveries()
    await store.close_delivery(parcel, Answer(accepted=False, told=f"answered 410: {EVIL}", gone=True))


async def _worry(store: Store) -> None:
    """An alert that is over, two that fire, and a maintenance window to come."""
    over = Finding(Rule.DEAD_LETTERS, "thumbnail", "100 thumbnails died", "default")
    await store.keep_alerts([over])
    firing = [Finding(Rule.QUEUE_AGE, "mail", "queue mail waits"), Finding(Rule.FAILURE_RATE, EVIL, EVIL, "default")]
    await store.keep_alerts(firing)
    start = CLOCK.now() + timedelta(days=1)
    await store.add_window(WindowSpec(start=start, end=start + timedelta(hours=2), reason=EVIL, author=EVIL))


async def _submit(store: Store, kind: str, name: str | None = None, **fields: object) -> UUID:
    [made] = await store.submit([a_job(kind, options=Options(name=name), **fields)])
    return made.job_id


async def _start(store: Store, worker: UUID, job: UUID) -> Run:
    [run] = (await store.claim(a_claim(worker, 1, queues=("default", "mail")))).runs
    assert run.job_id == job
    return run


async def write(store: Store, run: Run, *texts: str, first: int = 0) -> None:
    """Let a run write lines."""
    now = CLOCK.now()
    await store.append_logs(
        [LogLine(run.job_id, run.token, first + n, now, "stdout", None, text) for n, text in enumerate(texts)]
    )


async def _ended(store: Store, worker: UUID, kind: str, name: str) -> UUID:
    job = await _submit(store, kind, name, args={"day": "2026-11-16"}, labels={"team": "blue"})
    run = await _start(store, worker, job)
    await write(store, run, "reading 12 tables", "wrote report.pdf")
    usage = Usage(cpu_seconds=1.5, peak_rss_bytes=50 << 20, isolation=("namespaces", "seccomp"))
    await store.settle(worker, [outcome_of(run, result='{"pages":12}', usage=usage)])
    return job


async def _dead(store: Store, worker: UUID) -> UUID:
    job = await _submit(store, "thumbnail", labels={"team": "red"})
    run = await _start(store, worker, job)
    await store.settle(worker, [outcome_of(run, Cause.FAILED, error=Failure(reason="timeout", message="too slow"))])
    run = await _start(store, worker, job)
    failure = Failure(reason="error", message="no such file: cat.png", detail="Traceback: …")
    await store.settle(worker, [outcome_of(run, Cause.GAVE_UP, error=failure)])
    return job


async def _evil(store: Store, worker: UUID) -> UUID:
    job = await _submit(
        store,
        "evil",
        EVIL,
        args={EVIL: EVIL},
        labels={"x": EVIL},
        unique_key=SHORT_EVIL,
        limit_keys=(SHORT_EVIL,),
    )
    run = await _start(store, worker, job)
    await write(store, run, EVIL)
    failure = Failure(reason=SHORT_EVIL, message=EVIL, detail=EVIL)
    await store.settle(worker, [outcome_of(run, Cause.GAVE_UP, error=failure)])
    return job


async def _running(store: Store, worker: UUID) -> UUID:
    job = await _submit(store, "video.encode", "Encode the trailer")
    run = await _start(store, worker, job)
    await write(store, run, "frame 1", "frame 2")
    await store.note(worker, [RunNote(job_id=run.job_id, token=run.token, progress=0.4, message="frame 2 of 5")])
    return job
