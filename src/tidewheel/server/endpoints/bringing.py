"""What runs leave behind, brought by workers that reach nothing but this server: large results, and files.

It is kept under the run that it is of, by job and token, so a run that was lost cannot put its own in the place of
another's. An address is good as long as the run goes on: what has ended does not change any more.
"""

import secrets
import tempfile
from asyncio import to_thread
from collections.abc import Callable
from functools import partial
from typing import Annotated, BinaryIO, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.blobs.exchange import Exchange
from tidewheel.blobs.names import MAX_NAME_BYTES, Left, left_key, location_of, upload_name
from tidewheel.errors import Conflict, Invalid, NotFound
from tidewheel.model.artifact import MAX_ARTIFACT
from tidewheel.model.checks import check_json_bytes
from tidewheel.model.outcome import MAX_LARGE_RESULT
from tidewheel.model.states import State
from tidewheel.model.worker_protocol import Token
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.artifacts import ACCEPTED, CREATED, UPLOAD_WITHIN, UploadDocument
from tidewheel.server.grants import Bringing, expires_at, seal, unseal
from tidewheel.server.incoming import Incoming, receive
from tidewheel.server.names import id_in
from tidewheel.server.problems import Refused
from tidewheel.server.service import Service

_check_result: Final[Callable[[bytes], None]] = partial(check_json_bytes, "result")


class BringingRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run has to leave behind."""

    token: Token
    """Which run of the job."""
    size: Annotated[int, Meta(ge=0, le=MAX_ARTIFACT)]
    """How many bytes; a result has at most 64 MiB."""
    name: Annotated[str, Meta(min_length=1, max_length=MAX_NAME_BYTES)] | None = None
    """The relative path of a file. Null stands for the result of the run: JSON that is too large for `settle`."""


class BringingAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """How to bring it, and how it is named then."""

    location: str
    """For a result: what to say as `result_location` in `settle`."""
    upload: UploadDocument


class BroughtDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a run."""

    token: int
    name: str | None
    size: int
    location: str


async def offer(service: Service, call: Call[BringingRequest, NoQuery]) -> Answer:
    """Tell how to bring what a run leaves behind."""
    job_id, request = id_in(call), call.body
    try:
        location = location_of(left_key(job_id, request.token, request.name))
    except Invalid as error:
        raise Invalid("name", error.why) from None
    if request.name is None and request.size > MAX_LARGE_RESULT:
        raise Invalid("size", f"a result must have at most {MAX_LARGE_RESULT} bytes")
    await _check_running(service, job_id, request.token, call.scope)
    until = int((service.clock.now() + UPLOAD_WITHIN).timestamp())
    exchange = service.blobs.exchange
    place = None if exchange is None else upload_name(until, secrets.token_hex(16))
    grant = Bringing(job_id=job_id, token=request.token, name=request.name, size=request.size, until=until, place=place)
    here = f"/v1/outputs/{seal(grant, await service.signing_key())}"
    document = UploadDocument(
        method="PUT",
        url=here if exchange is None or place is None else await exchange.upload(place, UPLOAD_WITHIN),
        expires_at=expires_at(grant),
        complete=None if exchange is None else f"{here}/complete",
    )
    return Answer(BringingAnswer(location=location, upload=document), ACCEPTED)


async def upload(service: Service, call: Call[Incoming, NoQuery]) -> Answer:
    """Take in what a run leaves behind."""
    grant = await _granted(service, call.path["grant"])
    if grant.place is not None:
        raise Refused("forbidden", "this is brought to another address")
    tenant = await _check_running(service, grant.job_id, grant.token, None)
    async with service.uploads.taken(tenant):
        with tempfile.TemporaryFile() as file:
            await receive(call.body, file, grant.size)
            await _check_file(service, grant, file)
            await _check_running(service, grant.job_id, grant.token, None)  # it may have ended meanwhile
            await service.blobs.store_brought(Left(grant.job_id, grant.token, grant.name), file, grant.size)
    return _brought(grant)


async def complete(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Take over what was brought to an address elsewhere."""
    grant = await _granted(service, call.path["grant"])
    exchange = service.blobs.exchange
    if grant.place is None or exchange is None:
        raise Refused("forbidden", "this is brought to this server")
    await _check_running(service, grant.job_id, grant.token, None)
    try:
        await _take(service, grant, grant.place, exchange)
    except NotFound:
        if await service.blobs.size(_location(grant)) != grant.size:  # it may be there by an answer that was lost
            raise
    except Invalid as error:
        raise _wrong(error) from None
    return _brought(grant)


async def _granted(service: Service, text: str) -> Bringing:
    grant = unseal(text, await service.signing_key(), service.clock.now())
    if not isinstance(grant, Bringing):
        raise Refused("forbidden", "this address is not for what a run leaves behind")
    return grant


async def _check_running(service: Service, job_id: UUID, token: int, scope: str | None) -> str:
    """Return the tenant of a run; what is not of one that goes on is refused."""
    job = await service.store.get(job_id, tenant=scope)
    if job.state is not State.RUNNING or job.token != token:
        raise Conflict(f"job {job_id} is not running with the token {token}")
    return job.tenant


async def _check_file(service: Service, grant: Bringing, file: BinaryIO) -> None:
    """Refuse a result that is not JSON."""
    if grant.name is not None:
        return
    async with service.looks:
        file.seek(0)
        try:
            await to_thread(_check_result, await to_thread(file.read))
        except Invalid as error:
            raise _wrong(error) from None


async def _take(service: Service, grant: Bringing, place: str, exchange: Exchange) -> None:
    left = Left(grant.job_id, grant.token, grant.name)
    if grant.name is not None:
        await exchange.take_left(place, left, grant.size)
        return
    async with service.looks:
        await exchange.take_left(place, left, grant.size, _check_result)


def _wrong(error: Invalid) -> Refused:
    return Refused("wrong-content", str(error))


def _brought(grant: Bringing) -> Answer:
    told = BroughtDocument(token=grant.token, name=grant.name, size=grant.size, location=_location(grant))
    return Answer(told, CREATED)


def _location(grant: Bringing) -> str:
    return location_of(left_key(grant.job_id, grant.token, grant.name))
