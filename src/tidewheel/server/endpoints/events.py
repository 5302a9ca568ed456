"""Events: what happens to a job, as it happens, over one long answer (server-sent events).

An event has one of three names: `state` with the job, `log` with a line, and `end`, after which nothing comes. Its id
says how much was sent before: whoever comes back with the last one goes on from there, and whoever has seen the end is
told with 204 not to come back.
"""

import hashlib
import re
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

import msgspec

from tidewheel.model.job import Job
from tidewheel.model.states import FINAL
from tidewheel.server.endpoint import EVENTS, Answer, Call, NoQuery
from tidewheel.server.endpoints.results import line_document
from tidewheel.server.job_document import job_document
from tidewheel.server.names import id_in
from tidewheel.server.problems import Flaw, Refused
from tidewheel.server.service import Service
from tidewheel.store.pages import fills_page

NO_CONTENT: Final = 204
LONGEST_PAUSE: Final = 1.0
FIRST_PAUSE: Final = 0.05
"""As a share of the longest."""
LOOKS: Final = 200
"""How often in a second all who follow jobs look at them together, at most: a crowd hears of news later."""
_GROWTH: Final = 1.5
KEEP_ALIVE: Final = 15.0
"""Seconds of silence after which a comment tells proxies and clients that someone is still there."""
PAGE: Final = 500
_ID: Final = re.compile(r"(-?[0-9]{1,18})\.(-?[0-9]{1,18})\.([0-9a-f]{16}|)(\.end|)").fullmatch


class Place(NamedTuple):
    """How much of a job was told."""

    token: int = -1
    number: int = -1
    seen: str = ""
    """A digest of the job as it was last told."""
    ended: bool = False

    def __str__(self) -> str:
        return f"{self.token}.{self.number}.{self.seen}{'.end' if self.ended else ''}"


async def follow(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Tell what happens to a job from now on, or from where the client was."""
    job_id, place = id_in(call), _place_of(call)
    job = await service.store.get(job_id, tenant=call.scope)
    if place.ended and place.seen == _digest(job):
        return Answer(None, NO_CONTENT)
    headers = (("cache-control", "no-store"), ("x-accel-buffering", "no"))
    stream = _events(service, call, job, place._replace(ended=False))
    return Answer(headers=headers, media_type=EVENTS, stream=stream)


async def _events(service: Service, call: Call[Any, Any], job: Job, place: Place) -> AsyncGenerator[bytes, None]:
    service.followers += 1
    try:
        async for piece in _pieces(service, call, job, place):
            yield piece
    finally:
        service.followers -= 1


async def _pieces(service: Service, call: Call[Any, Any], job: Job, place: Place) -> AsyncGenerator[bytes, None]:
    pause, quiet = 0.0, 0.0
    yield b": hello\n\n"
    while not service.stopping.is_set():
        # The job was read before its lines: what a run said is stored before its end.
        told, place = await _news(service, job, place)
        for event in told:
            yield event
        if job.state in FINAL and not told:
            yield _event("end", place._replace(ended=True), {"state": job.state})
            return
        longest = max(LONGEST_PAUSE, service.followers / LOOKS)
        pause = 0.0 if told else min(max(pause * _GROWTH, longest * FIRST_PAUSE), longest)
        quiet = 0.0 if told else quiet + pause
        if quiet >= KEEP_ALIVE:
            yield b": still here\n\n"
            quiet = 0.0
        if not told:
            await service.pause(pause)
        job = await service.store.get(job.id, tenant=call.scope)


async def _news(service: Service, job: Job, place: Place) -> tuple[list[bytes], Place]:
    """Return what is new about a job as events, and the place after them; lines come before the end that followed."""
    events = []
    if job.token or job.state in FINAL:
        lines = await service.store.logs(job.id, tenant=job.tenant, after=(place.token, place.number), limit=PAGE)
        for line in lines:
            place = place._replace(token=line.token, number=line.number)
            events.append(_event("log", place, line_document(line)))
        if fills_page(lines, PAGE):
            return events, place
    if (digest := _digest(job)) != place.seen:
        place = place._replace(seen=digest)
        events.append(_event("state", place, job_document(job, service.clock.now(), full=False)))
    return events, place


def _event(name: str, place: Place, data: Any) -> bytes:
    return b"event: %b\nid: %b\ndata: %b\n\n" % (name.encode(), str(place).encode(), msgspec.json.encode(data))


def _digest(job: Job) -> str:
    """Return what changes when something about a job does that a reader should hear of."""
    standing = (job.state, job.token, job.cancelling, job.paused, job.gate, job.progress, job.progress_message)
    told = msgspec.json.encode((standing, job.updated_at, job.run_at, job.failures, job.losses))
    return hashlib.blake2b(told, digest_size=8).hexdigest()


def _place_of(call: Call[Any, Any]) -> Place:
    sent = call.headers.get("last-event-id")
    if sent is None:
        return Place()
    if (found := _ID(sent)) is None:
        flaw = Flaw(detail="is none that this stream gave out", header="Last-Event-ID")
        raise Refused("bad-header", f"Last-Event-ID {flaw.detail}", flaws=[flaw])
    return Place(int(found[1]), int(found[2]), found[3], bool(found[4]))
