"""The worker protocol: how a worker in any language takes jobs and says what became of them.

A worker is known by the id that it was given; one of a tenant is nobody for the keys of others. What a run may do is
guarded by job, token and worker, as for workers that speak to the store themselves.
"""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid, LeaseLost, NotFound
from tidewheel.model.access import Action
from tidewheel.model.job import Claimed
from tidewheel.model.outcome import Outcome
from tidewheel.model.schedule import Declared, ScheduleSpec
from tidewheel.model.states import Cause
from tidewheel.model.worker import Worker, WorkerSpec
from tidewheel.model.worker_protocol import (
    CheckpointDocument,
    Claim,
    ClaimAnswer,
    Declaration,
    DeclarationAnswer,
    EndAnswer,
    Ends,
    EndsAnswer,
    GivenBack,
    Heartbeat,
    HeartbeatRequest,
    Lines,
    LinesAnswer,
    Me,
    Notes,
    NotesAnswer,
    Registration,
    RunKey,
    RunList,
    RunSecrets,
    SecretsQuestion,
    StopList,
    UnfitAnswer,
    UnfitQuestion,
)
from tidewheel.server.endpoint import EVENTS, Answer, Call, NoQuery
from tidewheel.server.names import id_in
from tidewheel.server.reading import read_wait
from tidewheel.server.recording import record
from tidewheel.server.run_document import (
    by_policy,
    claim_request,
    notes_of,
    outcome_of,
    raw,
    registered,
    run_document,
)
from tidewheel.server.run_lines import line_of
from tidewheel.server.service import Service
from tidewheel.store.base import ClaimRequest
from tidewheel.store.bell import SOON, Bell
from tidewheel.tasks.durations import parse_duration

CREATED: Final = 201
KEEP_ALIVE: Final = 15.0
LONGEST_LISTENING: Final = 3600
_schedule: Final = msgspec.json.Decoder(ScheduleSpec).decode
POLL: Final = SOON.total_seconds()
POLL_IN_DOUBT: Final = 1.0


async def who(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Tell someone who they are here."""
    actor = call.actor
    return Answer(Me(role=actor.role, tenant=actor.tenant, name=actor.name, epoch=service.store.epoch))


async def register(service: Service, call: Call[Registration, NoQuery]) -> Answer:
    """Add a worker."""
    told = call.body
    spec = WorkerSpec(
        name=told.name,
        queues=told.queues,
        kinds=None if told.kinds is None else tuple(told.kinds),
        offer=told.offer,
        ttl=parse_duration(told.ttl, "ttl"),
        tenant=call.actor.scope(told.tenant),
    )
    worker = await service.store.register(spec)
    return Answer(registered(worker), CREATED, (("location", f"/v1/workers/{worker.id}"),))


async def show(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return a worker as it is now."""
    worker = await service.store.worker((await _own(service, call)).id)
    return Answer(registered(worker))


async def declare(service: Service, call: Call[Declaration, NoQuery]) -> Answer:
    """Let limits and schedules be as the code of an app declares them; they are not of one tenant."""
    told = call.body
    specs = []
    for position, text in enumerate(told.schedules):
        try:
            specs.append(_schedule(text))
        except (msgspec.MsgspecError, UnicodeError) as error:
            raise Invalid(f"schedules[{position}]", str(error)) from None
    changed = await service.store.declare_rules(told.rules)
    declared = Declared() if told.app is None else await service.store.declare_schedules(told.app, specs)
    said: dict[str, Any] = {name: getattr(declared, name) for name in ("created", "changed", "orphaned")}
    said["rules"] = changed
    if any(said.values()):  # a worker declares at every start what is so already
        await record(service, call, Action.WORKERS_CLAIM, told.app or "", everywhere=True, did="declare", **said)
    return Answer(DeclarationAnswer(rules_changed=changed, schedules=declared))


async def claim(service: Service, call: Call[Claim, NoQuery]) -> Answer:
    """Take due jobs; wait for some if that is wished."""
    request = claim_request(call.body, await _own(service, call))
    wait = read_wait(call.headers)
    if not wait:
        return _claimed(await service.store.claim(request))
    async with service.doorbell.listen() as bell:
        claimed = await _claim_within(service, call, request, bell)
    if claimed.runs and call.gone is not None and call.gone.done():
        given_back = [Outcome(run.job_id, run.token, Cause.RELEASED) for run in claimed.runs]
        await service.store.settle(request.worker_id, given_back)
        claimed = Claimed([], claimed.next_due, claimed.now)
    return _claimed(claimed)


async def _claim_within(service: Service, call: Call[Claim, NoQuery], request: ClaimRequest, bell: Bell) -> Claimed:
    latest = service.clock.monotonic() + read_wait(call.headers)
    while True:
        claimed = await service.store.claim(request)
        left = latest - service.clock.monotonic()
        if claimed.runs or left <= 0 or service.stopping.is_set():
            return claimed
        pause = min(left, POLL if bell.healthy else POLL_IN_DOUBT)
        if claimed.next_due is not None and claimed.now is not None:
            pause = min(pause, max(0.0, (claimed.next_due - claimed.now).total_seconds()))
        if await _is_gone(call, bell, pause):
            return Claimed([], claimed.next_due, claimed.now)


async def _is_gone(call: Call[Any, Any], bell: Bell, seconds: float) -> bool:
    """Wait for a hint, and tell whether the client has gone meanwhile."""
    hint = asyncio.ensure_future(bell.wait(seconds))
    try:
        waiting: list[asyncio.Future[Any]] = [hint] if call.gone is None else [hint, call.gone]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        hint.cancel()
    return call.gone is not None and call.gone.done()


async def runs(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return what a worker has, for one that is in doubt."""
    owned = await service.store.owned((await _own(service, call)).id)
    return Answer(RunList(runs=[run_document(run) for run in owned]))


async def beat(service: Service, call: Call[HeartbeatRequest, NoQuery]) -> Answer:
    """Renew a lease, and tell which runs were asked to stop."""
    worker = await _own(service, call)
    beats = await service.store.beat([worker.id], clock=call.body.clock)
    if not beats:
        raise LeaseLost(worker.id)
    stop = [RunKey(job_id=job_id, token=token) for job_id, token in beats[0].cancelling]
    return Answer(Heartbeat(beat=beats[0].beat, lease_until=beats[0].lease_until, stop=stop))


async def stopping(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Tell which runs were asked to stop, without a beat."""
    found = await service.store.stopping([(await _own(service, call)).id])
    return Answer(StopList(stop=[RunKey(job_id=job_id, token=token) for _, job_id, token in found]))


async def settle(service: Service, call: Call[Ends, NoQuery]) -> Answer:
    """Store how runs ended."""
    worker = await _own(service, call)
    outcomes = []
    for position, end in enumerate(call.body.ends):
        outcome = outcome_of(end, f"ends[{position}]")
        if end.delay is None and outcome.cause in (Cause.FAILED, Cause.CRASHED):
            outcome = await _by_policy(service, outcome)
        outcomes.append(outcome)
    verdicts = await service.store.settle(worker.id, outcomes)
    answers = [
        EndAnswer(job_id=outcome.job_id, token=outcome.token, verdict=verdict)
        for outcome, verdict in zip(outcomes, verdicts, strict=True)
    ]
    return Answer(EndsAnswer(ends=answers))


async def _by_policy(service: Service, outcome: Outcome) -> Outcome:
    """Let the job decide about its next try. If it has passed to someone else the token tells the store so."""
    try:
        return by_policy(outcome, await service.store.get(outcome.job_id))
    except NotFound:
        return outcome


async def note(service: Service, call: Call[Notes, NoQuery]) -> Answer:
    """Keep what runs say of themselves."""
    worker = await _own(service, call)
    notes = notes_of(call.body.notes)
    await service.store.note(worker.id, notes)
    owned = {(run.job_id, run.token) for run in await service.store.owned(worker.id)}
    strange = dict.fromkeys((told.job_id, told.token) for told in notes if (told.job_id, told.token) not in owned)
    return Answer(NotesAnswer(stale=[RunKey(job_id=job_id, token=token) for job_id, token in strange]))


async def log(service: Service, call: Call[Lines, NoQuery]) -> Answer:
    """Store lines of runs; for a key of one tenant the jobs of others do not exist."""
    if call.actor.tenant is not None:
        for job_id in dict.fromkeys(line.job_id for line in call.body.lines):
            await service.store.get(job_id, tenant=call.actor.tenant)
    now = service.clock.now()
    lines = service.run_lines.fit([line_of(line, now) for line in call.body.lines])
    await service.store.append_logs(lines)
    return Answer(LinesAnswer(stored=len(lines)))


async def secrets(service: Service, call: Call[SecretsQuestion, NoQuery]) -> Answer:
    """Return the texts of secrets that the job of a run names, to the worker that has the run."""
    worker, asked = await _own(service, call), call.body
    found = await service.store.secrets_of_run(worker.id, asked.job_id, asked.token, asked.names)
    return Answer(RunSecrets(secrets=found), headers=(("cache-control", "no-store"),))


async def deregister(service: Service, call: Call[None, NoQuery]) -> Answer:
    """End a worker; what it still has goes back to the queue."""
    reaped = await service.store.deregister((await _own(service, call)).id)
    return Answer(GivenBack(requeued=reaped.requeued, cancelled=reaped.cancelled))


async def unfit(service: Service, call: Call[UnfitQuestion, NoQuery]) -> Answer:
    """Tell what a worker should keep free for a job that is too large for what is."""
    request = claim_request(call.body, await _own(service, call))
    found = await service.store.oldest_unfit(request, call.body.total)
    needs, waited = found or (None, parse_duration(0, "waited"))
    return Answer(UnfitAnswer(needs=needs, waited=waited.total_seconds()))


async def checkpoint(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return the last checkpoint of a job."""
    job = await service.store.get(id_in(call), tenant=call.scope)
    return Answer(CheckpointDocument(checkpoint=raw(await service.store.checkpoint_of(job.id))))


class HintQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long to listen."""

    seconds: Annotated[int, Meta(ge=1, le=LONGEST_LISTENING)] = LONGEST_LISTENING
    """After this time the stream ends, and whoever wants more comes again."""


async def hints(service: Service, call: Call[None, HintQuery]) -> Answer:
    """Tell when it may be worth while to look for jobs, or for runs that shall stop."""
    headers = (("cache-control", "no-store"), ("x-accel-buffering", "no"))
    return Answer(headers=headers, media_type=EVENTS, stream=_hints(service, call.query.seconds))


async def _hints(service: Service, seconds: int) -> AsyncGenerator[bytes, None]:
    latest = service.clock.monotonic() + seconds
    async with service.doorbell.listen() as bell:
        yield b"event: hint\ndata: {}\n\n"
        while not service.stopping.is_set() and (left := latest - service.clock.monotonic()) > 0:
            rung = await bell.wait(min(KEEP_ALIVE, left))
            if not bell.healthy:
                yield b"event: doubt\ndata: {}\n\n"
            yield b"event: hint\ndata: {}\n\n" if rung else b": still here\n\n"


async def _own(service: Service, call: Call[Any, Any]) -> Worker:
    """Return the worker of the path as it registered; one of another tenant is nobody."""
    return await service.roster.find(id_in(call, "worker"), call.actor.tenant)


def _claimed(claimed: Claimed) -> Answer:
    found = [run_document(run) for run in claimed.runs]
    return Answer(ClaimAnswer(runs=found, next_due=claimed.next_due, now=claimed.now))
