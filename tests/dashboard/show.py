"""A world for pictures: what a small company's jobs may look like."""

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from uuid import UUID

from tests.builders import a_claim, a_job, a_schedule, a_worker, outcome_of
from tests.dashboard.past import Ends
from tests.dashboard.world import write
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Options
from tidewheel.model.note import RunNote
from tidewheel.model.outcome import Failure, Usage
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Offer
from tidewheel.model.states import Cause, State
from tidewheel.store.base import JobFilter, Store
from tidewheel.triggers import Cron, Interval

QUEUES = ("default", "mail", "media")
_FAILED = JobFilter(states=frozenset({State.DEAD}))
RUNNING = (
    ("media.encode", "Encode trailer.mov", 0.62),
    ("report.build", "Monthly report", 0.18),
    ("mail.digest", None, None),
)


def six_hours_until(now: datetime) -> Iterator[Ends]:
    """What ended before: more and more, with a pause, and a while in which much failed."""
    for number in range(71, 0, -1):
        if 40 < number < 46:
            continue
        at = now - number * timedelta(minutes=5)
        wave = 1 + math.sin(number / 7) / 2
        wait, run = timedelta(seconds=0.05 * wave**3), timedelta(seconds=0.4 * wave)
        yield Ends(at, "mail.send", round(14 * wave), int(number % 9 == 0), "mail", wait=wait, run=run)
        failed = 4 if 12 < number < 18 else int(number % 11 == 0)
        yield Ends(at, "media.thumbnail", round(6 * wave), failed, "media", wait=4 * wait, run=8 * run)
        if number % 2:
            yield Ends(at, "report.build", 1, 0, "default", wait=2 * wait, run=60 * run)


async def play(store: Store) -> UUID:
    """Fill the store once, let some more jobs end each time, and return the job to look at."""
    if not await store.workers(alive=True):
        await _fill(store)
    worker = (await store.workers(alive=True))[0]
    await _end(store, worker.id, 40)
    await store.take_census()
    page = await store.find(_FAILED, limit=1)
    return page.jobs[0].id


async def _fill(store: Store) -> None:
    offer = Offer(resources={"cpu": 8000, "memory": 16 << 30}, labels={"zone": "eu-1"})
    worker = await store.register(a_worker("atlas/runner-0", queues=QUEUES, offer=offer))
    await store.register(a_worker("borea/runner-0", queues=QUEUES, offer=offer))
    await _end(store, worker.id, 60)
    for message in (
        "connection refused: s3.example.com",
        "connection refused: s3.example.com",
        "no such file: cat.png",
    ):
        await _die(store, worker.id, message)
    for kind, name, progress in RUNNING:
        await store.submit([a_job(kind, queue="media", options=Options(name=name), labels={"team": "studio"})])
        [run] = (await store.claim(a_claim(worker.id, 1, queues=("media",)))).runs
        if progress is not None:
            await store.note(worker.id, [RunNote(job_id=run.job_id, token=run.token, progress=progress)])
    await store.close_gate(GateSpec(mode=GateMode.HOLD, kind="billing.charge", tenant="default", reason="price change"))
    await store.submit([a_job("billing.charge", priority=Priority.HIGH, labels={"month": "2026-11"}) for _ in range(4)])
    [first] = await store.submit([a_job("etl.extract", delay=timedelta(minutes=40), queue="media")])
    [second] = await store.submit([a_job("etl.transform", after=(first.job_id,), queue="media")])
    await store.submit([a_job("etl.load", after=(second.job_id,), queue="media", priority=Priority.LOW)])
    for name, rule, kind in (
        ("nightly backup", Cron("30 2 * * *", "Europe/Berlin"), "db.backup"),
        ("invoices", Cron("0 8 1 * *", "Europe/London"), "billing.invoices"),
        ("cleanup", Interval(timedelta(hours=1)), "tidy"),
    ):
        await store.create_schedule(a_schedule(name.replace(" ", "-"), rule, kind=kind))


async def _end(store: Store, worker: UUID, number: int) -> None:
    await store.submit([a_job("mail.send", queue="mail", labels={"campaign": "autumn"}) for _ in range(number)])
    runs = (await store.claim(a_claim(worker, number, queues=("mail",)))).runs
    await store.settle(worker, [outcome_of(run, usage=Usage(cpu_seconds=0.2, peak_rss_bytes=40 << 20)) for run in runs])


async def _die(store: Store, worker: UUID, message: str) -> None:
    options = Options(name=f"Thumbnail {message[-7:]}" if "cat" in message else None)
    await store.submit(
        [a_job("media.thumbnail", queue="default", options=options, args={"file": "cat.png", "width": 320})]
    )
    for cause in (Cause.FAILED, Cause.FAILED, Cause.GAVE_UP):
        [run] = (await store.claim(a_claim(worker, 1))).runs
        await write(store, run, "opening the archive", "looking for cat.png", message)
        failure = Failure(reason="error", message=message, detail=f"OSError: {message}")
        usage = Usage(cpu_seconds=0.4, peak_rss_bytes=61 << 20, isolation=("namespaces", "landlock", "seccomp"))
        await store.settle(worker, [outcome_of(run, cause, error=failure, usage=usage)])
