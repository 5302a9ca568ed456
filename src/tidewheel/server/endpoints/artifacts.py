"""Artifacts: files that jobs need, named by their content. They are brought once and never change."""

import secrets
import tempfile
from datetime import timedelta
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.blobs.names import artifact_location, upload_name
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.access import Action
from tidewheel.model.artifact import MAX_ARTIFACT, MAX_ARTIFACT_NAME, Artifact, ArtifactSpec, check_artifact
from tidewheel.server.cursors import seal_id, unseal_id
from tidewheel.server.endpoint import Answer, Call, NoQuery
from tidewheel.server.endpoints.downloads import redirect
from tidewheel.server.endpoints.looking import PageQuery
from tidewheel.server.grants import Upload, expires_at, seal, unseal
from tidewheel.server.incoming import Incoming, receive
from tidewheel.server.job_request import Instant
from tidewheel.server.problems import Refused
from tidewheel.server.service import Service

CREATED: Final = 201
ACCEPTED: Final = 202
UPLOAD_WITHIN: Final = timedelta(hours=1)
DigestText = Annotated[str, Meta(pattern="^[0-9a-f]{64}$", description="A SHA-256 in 64 hexadecimal digits.")]


class ArtifactRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What someone wants to bring."""

    digest: DigestText
    size: Annotated[int, Meta(ge=0, le=MAX_ARTIFACT)]
    name: Annotated[str, Meta(max_length=MAX_ARTIFACT_NAME)] = ""
    """For people."""


class ArtifactDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is there. Jobs name it by its digest."""

    id: UUID
    digest: str
    size: int
    name: str
    created_at: Instant
    created_by: str
    used_at: Instant
    """When it was last brought or named by a job."""


class UploadDocument(msgspec.Struct, frozen=True, kw_only=True):
    """How to bring it: send the bytes with this method to this address, and without a key."""

    method: str
    url: str
    expires_at: Instant
    complete: str | None
    """Where to POST to afterwards; null if the address takes care of that."""


class UploadAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The artifact if it is there, or else how to bring it."""

    artifact: ArtifactDocument | None
    upload: UploadDocument | None


class ArtifactPage(msgspec.Struct, frozen=True, kw_only=True):
    """Artifacts, newest first."""

    artifacts: list[ArtifactDocument]
    next_cursor: str | None


async def offer(service: Service, call: Call[ArtifactRequest, NoQuery]) -> Answer:
    """Tell how to bring an artifact, or that it is there."""
    request, tenant = call.body, call.tenant
    spec = check_artifact(_spec(request, call.actor.name, tenant))
    if await service.store.use_artifacts([spec.digest], tenant=tenant):
        known = await service.store.get_artifact(spec.digest, tenant=tenant)
        return Answer(UploadAnswer(artifact=_document(known), upload=None))
    until = int((service.clock.now() + UPLOAD_WITHIN).timestamp())
    exchange = service.blobs.exchange
    place = None if exchange is None else upload_name(until, secrets.token_hex(16))
    grant = Upload(
        tenant=tenant, digest=spec.digest, size=spec.size, name=spec.name, by=spec.created_by, until=until, place=place
    )
    sealed = seal(grant, await service.signing_key())
    here = f"/v1/uploads/{sealed}"
    document = UploadDocument(
        method="PUT",
        url=here if exchange is None or place is None else await exchange.upload(place, UPLOAD_WITHIN),
        expires_at=expires_at(grant),
        complete=None if exchange is None else f"{here}/complete",
    )
    told = {"size": spec.size, "name": spec.name or None}
    service.audit.note(call.actor, Action.ARTIFACTS_WRITE, spec.digest, tenant=tenant, **told)
    return Answer(UploadAnswer(artifact=None, upload=document), ACCEPTED)


async def upload(service: Service, call: Call[Incoming, NoQuery]) -> Answer:
    """Take the bytes of an artifact in."""
    grant = await _granted(service, call.path["grant"])
    if grant.place is not None:
        raise Refused("forbidden", "this artifact is brought to another address")
    async with service.uploads.taken(grant.tenant):
        with tempfile.TemporaryFile() as file:
            if await receive(call.body, file, grant.size) != grant.digest:
                raise _wrong("what came is not what has this digest")
            await service.blobs.put_known(file, grant.digest, grant.size)
            artifact = await service.store.add_artifact(_granted_spec(grant))
            # Until it was noted, an earlier one with this digest may have been on its way out.
            if not await service.blobs.has(grant.digest):
                await service.blobs.put_known(file, grant.digest, grant.size)
    return Answer(_document(artifact), CREATED)


async def complete(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Make an artifact of what was brought to an address elsewhere."""
    grant = await _granted(service, call.path["grant"])
    exchange = service.blobs.exchange
    if grant.place is None or exchange is None:
        raise Refused("forbidden", "this artifact is brought to this server")
    try:
        await exchange.take(grant.place, grant.digest, grant.size)
    except NotFound:
        if not await service.store.use_artifacts([grant.digest], tenant=grant.tenant):
            raise
        return Answer(_document(await service.store.get_artifact(grant.digest, tenant=grant.tenant)), CREATED)
    except Invalid as error:
        raise _wrong(error.why) from None
    artifact = await service.store.add_artifact(_granted_spec(grant))
    if not await service.blobs.has(grant.digest):
        raise Refused("unavailable", "it was removed meanwhile: bring it again", headers=[("retry-after", "1")])
    return Answer(_document(artifact), CREATED)


async def find(service: Service, call: Call[None, PageQuery]) -> Answer:
    """Return a page of artifacts."""
    query = call.query
    after = unseal_id("artifacts", query.cursor) or query.after
    found = await service.store.artifacts(tenant=call.tenant, limit=query.limit, after=after)
    last = found[-1].id if len(found) == query.limit else None
    documents = [_document(artifact) for artifact in found]
    return Answer(ArtifactPage(artifacts=documents, next_cursor=seal_id("artifacts", last)))


async def get(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Return what is known of an artifact."""
    return Answer(_document(await service.store.get_artifact(call.path["digest"], tenant=call.tenant)))


async def content(service: Service, call: Call[None, NoQuery]) -> Answer:
    """Lead to the bytes of an artifact; whoever works for all tenants need not know whose it is."""
    digest = call.path["digest"]
    if call.scope is None and await _is_there(service, digest):
        return await redirect(service, artifact_location(digest), digest, call.tenant)
    known = await service.store.get_artifact(digest, tenant=call.tenant)
    return await redirect(service, artifact_location(known.digest), known.name or known.digest, known.tenant)


async def _is_there(service: Service, digest: str) -> bool:
    try:
        return await service.blobs.has(digest)
    except Invalid:
        return False


async def _granted(service: Service, text: str) -> Upload:
    grant = unseal(text, await service.signing_key(), service.clock.now())
    if not isinstance(grant, Upload):
        raise Refused("forbidden", "this address is not for an artifact")
    return grant


def _wrong(why: str) -> Refused:
    return Refused("wrong-content", why)


def _spec(request: ArtifactRequest, by: str, tenant: str) -> ArtifactSpec:
    return ArtifactSpec(tenant=tenant, digest=request.digest, size=request.size, name=request.name, created_by=by[:200])


def _granted_spec(grant: Upload) -> ArtifactSpec:
    return ArtifactSpec(tenant=grant.tenant, digest=grant.digest, size=grant.size, name=grant.name, created_by=grant.by)


def _document(artifact: Artifact) -> ArtifactDocument:
    return ArtifactDocument(
        id=artifact.id,
        digest=artifact.digest,
        size=artifact.size,
        name=artifact.name,
        created_at=artifact.created_at,
        created_by=artifact.created_by,
        used_at=artifact.used_at,
    )
