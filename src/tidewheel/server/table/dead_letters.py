"""Endpoints of dead letters."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.endpoints import dead_letters
from tidewheel.server.job_document import JobDocument

DEAD_LETTERS: Final = (
    Endpoint(
        method="GET",
        path="/v1/dead-letters/groups",
        name="list_dead_groups",
        summary="List what died of what, the largest group first",
        group="dead letters",
        action=Action.JOBS_READ,
        handler=dead_letters.groups,
        query=dead_letters.GroupQuery,
        answers={200: dead_letters.GroupList},
    ),
    Endpoint(
        method="GET",
        path="/v1/dead-letters",
        name="list_dead_letters",
        summary="List dead letters, newest first",
        group="dead letters",
        action=Action.JOBS_READ,
        handler=dead_letters.find,
        query=dead_letters.DeadQuery,
        answers={200: dead_letters.DeadPage},
        errors=("bad-cursor",),
    ),
    Endpoint(
        method="POST",
        path="/v1/dead-letters/redrive",
        name="redrive_dead_letters",
        summary="Send dead letters round again, all that meet some conditions",
        description="At a rate, if one is given. With `dry_run` they are only counted. Those that cannot go, for "
        "another job has their unique key, are passed over. Asking again goes on with the rest.",
        group="dead letters",
        action=Action.JOBS_RETRY,
        handler=dead_letters.redrive,
        body=dead_letters.RedriveRequest,
        answers={200: dead_letters.RedriveAnswer},
        seconds=60.0,
    ),
    Endpoint(
        method="POST",
        path="/v1/dead-letters/{id}/retry",
        name="retry_dead_letter",
        summary="Send one dead letter round again, with other arguments if some are given",
        group="dead letters",
        action=Action.JOBS_RETRY,
        handler=dead_letters.retry,
        body=dead_letters.EditRequest,
        body_optional=True,
        answers={202: JobDocument},
        errors=("conflict",),
    ),
)
