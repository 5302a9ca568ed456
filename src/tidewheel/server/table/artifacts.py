"""Endpoints of artifacts, and of files that runs left behind."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.model.artifact import MAX_ARTIFACT
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import artifacts, downloads
from tidewheel.server.endpoints.looking import PageQuery

_GROUP: Final = "artifacts"

ARTIFACTS: Final = (
    Endpoint(
        method="POST",
        path="/v1/artifacts",
        name="offer_artifact",
        summary="Ask how to bring an artifact",
        description="A file that is there already need not be sent again (200). Otherwise (202) the answer has an "
        "address that is good for an hour and needs no key: of the bucket, or of this server.",
        group=_GROUP,
        action=Action.ARTIFACTS_WRITE,
        handler=artifacts.offer,
        body=artifacts.ArtifactRequest,
        answers={200: artifacts.UploadAnswer, 202: artifacts.UploadAnswer},
    ),
    Endpoint(
        method="PUT",
        path="/v1/uploads/{grant}",
        name="upload_artifact",
        summary="Bring the bytes of an artifact to an address that `POST /v1/artifacts` gave",
        group=_GROUP,
        action=None,
        handler=artifacts.upload,
        body=bytes,
        raw=True,
        media_types=(downloads.BYTES,),
        answers={201: artifacts.ArtifactDocument},
        errors=("forbidden", "wrong-content"),
        most_body=MAX_ARTIFACT,
        seconds=3600.0,
    ),
    Endpoint(
        method="POST",
        path="/v1/uploads/{grant}/complete",
        name="complete_upload",
        summary="Say that the bytes of an artifact are in the bucket",
        description="They are looked at, and refused if they have another digest or size. May be repeated.",
        group=_GROUP,
        action=None,
        handler=artifacts.complete,
        answers={201: artifacts.ArtifactDocument},
        errors=("forbidden", "wrong-content"),
        seconds=600.0,
    ),
    Endpoint(
        method="GET",
        path="/v1/artifacts",
        name="list_artifacts",
        summary="List artifacts, newest first",
        group=_GROUP,
        action=Action.ARTIFACTS_READ,
        handler=artifacts.find,
        query=PageQuery,
        answers={200: artifacts.ArtifactPage},
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="GET",
        path="/v1/artifacts/{digest}",
        name="get_artifact",
        summary="Look at an artifact",
        group=_GROUP,
        action=Action.ARTIFACTS_READ,
        handler=artifacts.get,
        answers={200: artifacts.ArtifactDocument},
    ),
    Endpoint(
        method="GET",
        path="/v1/artifacts/{digest}/content",
        name="fetch_artifact",
        summary="Fetch the bytes of an artifact",
        description="Leads to an address that is good for a quarter of an hour and needs no key.",
        group=_GROUP,
        action=Action.ARTIFACTS_READ,
        handler=artifacts.content,
        answers={307: None},
    ),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/outputs",
        name="list_outputs",
        summary="List the files that the runs of a job left behind",
        group="jobs",
        action=Action.JOBS_READ,
        handler=downloads.outputs,
        answers={200: downloads.OutputList},
    ),
    Endpoint(
        method="GET",
        path="/v1/jobs/{id}/outputs/{token}/{name:path}",
        name="fetch_output",
        summary="Fetch a file that a run of a job left behind",
        description="Leads to an address that is good for a quarter of an hour and needs no key.",
        group="jobs",
        action=Action.JOBS_READ,
        handler=downloads.output,
        answers={307: None},
    ),
    Endpoint(
        method="GET",
        path="/v1/downloads/{grant}",
        name="download",
        summary="Fetch what an address was signed for",
        group=_GROUP,
        action=None,
        handler=downloads.download,
        answers={200: downloads.BYTES},
        errors=("forbidden", "overloaded"),
        seconds=60.0,
    ),
)
