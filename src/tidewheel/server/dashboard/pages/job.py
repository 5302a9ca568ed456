"""The page of one job: what it is, what became of it, and why it does not run."""

from collections.abc import Mapping
from typing import Any, Final

from tidewheel.errors import NotFound
from tidewheel.model.states import ACTIVE, FINAL, REDRIVABLE
from tidewheel.server.dashboard.timeline import timeline_of
from tidewheel.server.dashboard.visit import Done, Visit
from tidewheel.server.endpoint import Answer
from tidewheel.server.endpoints.events import Place
from tidewheel.server.problems import Refused
from tidewheel.store.pages import fills_page

LINES: Final = 500
FOUND: Final = 200
MOST_LOOKS: Final = 5
"""How many pages of lines are looked through at once."""
RELATIVES: Final = 12
"""How many jobs are drawn on each side of a graph."""
LISTED: Final = 50
"""How many stand on a page of them."""
SIDES: Final[Mapping[str, str]] = {"parents": "Jobs before", "children": "Jobs after"}


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return all there is to see of a job."""
    job_id, ask = visit.path["id"], visit.desk.ask
    job = await ask("get_job", id=job_id)
    attempts = (await ask("list_attempts", id=job_id)).attempts
    parents = await ask("list_parents", id=job_id, query={"limit": RELATIVES})
    children = await ask("list_children", id=job_id, query={"limit": RELATIVES})
    return {
        "title": job.name or job.kind,
        "job": job,
        "attempts": {attempt.token: attempt for attempt in attempts},
        "timeline": timeline_of(job, attempts, visit.now),
        "reasons": [] if job.state in FINAL else (await ask("explain_job", id=job_id)).reasons,
        "parents": parents.jobs,
        "children": children.jobs,
        "more_parents": parents.next_cursor is not None,
        "more_children": children.next_cursor is not None,
        "can_cancel": job.state in ACTIVE and not job.cancelling and visit.desk.may("cancel_job"),
        "can_retry": job.state in REDRIVABLE and visit.desk.may("retry_job"),
        **({} if visit.follows else await _left_behind(visit, job_id)),
    }


async def load_relatives(visit: Visit) -> Mapping[str, Any]:
    """Return a page of the jobs that a job waits for, or of those that wait for it."""
    job_id, side = visit.path["id"], visit.path["side"]
    if side not in SIDES:
        raise NotFound("page", side)
    job = await visit.desk.ask("get_job", id=job_id)
    page = await visit.desk.ask(f"list_{side}", id=job_id, query={"limit": LISTED, "cursor": visit.query.get("cursor")})
    title = f"{SIDES[side]} {job.name or job.kind}"
    return {"title": title, "job": job, "side": side, "jobs": page.jobs, "next_cursor": page.next_cursor}


async def _left_behind(visit: Visit, job_id: str) -> dict[str, Any]:
    """Return lines and files: the page follows its log by a stream of its own, and files may be far away."""
    searched, before = visit.query.get("find", "").strip(), visit.query.get("before")
    last = (await visit.desk.ask("list_logs", id=job_id, query={"last": "true", "limit": LINES})).lines
    shown = await _found(visit, job_id, searched) if searched else await _lines(visit, job_id, before, last)
    return {
        **shown,
        "find": searched,
        "is_end": before is None,
        "from_place": str(Place(last[-1].token, last[-1].number) if last else Place()),
        "outputs": (await visit.desk.ask("list_outputs", id=job_id)).outputs,
    }


async def _lines(visit: Visit, job_id: str, before: str | None, last: list[Any]) -> dict[str, Any]:
    """Return the last lines, or those before a line."""
    lines = last
    if before is not None:
        asked = {"last": "true", "before": before, "limit": LINES}
        lines = (await visit.desk.ask("list_logs", id=job_id, query=asked)).lines
    earlier = {"before": f"{lines[0].token}.{lines[0].number}"} if fills_page(lines, LINES) else None
    return {"lines": lines, "earlier": earlier, "wrong_search": ""}


async def _found(visit: Visit, job_id: str, searched: str) -> dict[str, Any]:
    """Return the newest lines of the job that have what is searched for, oldest first; it looks through them all."""
    found, cursor = list[Any](), visit.query.get("log")
    try:
        for _ in range(MOST_LOOKS):
            asked = {"q": searched, "job_id": job_id, "limit": FOUND, "cursor": cursor}
            page = await visit.desk.ask("search_logs", query=asked)
            found, cursor = [*found, *page.lines], page.next_cursor
            if cursor is None or len(found) >= FOUND:
                break
    except Refused as refused:
        return {"lines": [], "earlier": None, "wrong_search": refused.detail}
    earlier = None if cursor is None else {"find": searched, "log": cursor}
    in_order = sorted(found, key=lambda line: (line.token, line.number))
    return {"lines": in_order, "earlier": earlier, "wrong_search": ""}


async def follow(visit: Visit) -> Answer:
    """Tell what happens to a job from now on, as the API does."""
    place = visit.headers.get("last-event-id") or visit.query.get("from")
    headers = {} if place is None else {"last-event-id": place}
    return await visit.desk.answer("follow_job", id=visit.path["id"], headers=headers)


async def cancel(visit: Visit) -> Done:
    """Cancel it."""
    job = await visit.desk.ask("cancel_job", id=visit.path["id"], body={"reason": visit.field("reason")})
    return Done(f"/ui/jobs/{job.id}", "It was asked to stop." if job.cancelling else f"The job is {job.state}.")


async def retry(visit: Visit) -> Done:
    """Send it round again."""
    job = await visit.desk.ask("retry_job", id=visit.path["id"])
    return Done(f"/ui/jobs/{job.id}", "The job was sent round again.")


async def result(visit: Visit) -> Answer:
    """Return the result of a job as a file, so that no browser takes it for a page."""
    answer = await visit.desk.answer("get_result", id=visit.path["id"])
    headers = (*answer.headers, ("content-disposition", "attachment; filename=result.json"))
    return Answer(answer.body, answer.status, headers, answer.media_type, answer.stream)
