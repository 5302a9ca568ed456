"""Artifacts that jobs need, and files that runs left behind."""

from collections.abc import Mapping
from typing import Any

from tidewheel.server.dashboard.visit import Visit
from tidewheel.server.endpoint import Answer


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return a page of artifacts."""
    page = await visit.desk.ask("list_artifacts", query={"cursor": visit.query.get("cursor")})
    return {"artifacts": page.artifacts, "next_cursor": page.next_cursor}


async def artifact(visit: Visit) -> Answer:
    """Lead to the bytes of an artifact."""
    return await visit.desk.answer("fetch_artifact", digest=visit.path["digest"])


async def output(visit: Visit) -> Answer:
    """Lead to the bytes of a file that a run left behind."""
    path = visit.path
    return await visit.desk.answer("fetch_output", id=path["id"], token=path["token"], name=path["name"])
