"""The list of jobs: filters that live in the address, and actions on many."""

import contextlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from tidewheel.errors import Conflict, NotFound
from tidewheel.model.ids import time_of
from tidewheel.model.states import ACTIVE, REDRIVABLE, State
from tidewheel.server.dashboard.visit import Done, Shown, Visit
from tidewheel.server.problems import Refused

FILTERS: Final = ("q", "state", "kind", "queue", "label", "error", "schedule_id", "created_after", "created_before")
UNSEEN: Final = ("kind", "label", "schedule_id", "created_after", "created_before")
"""Filters that have no field of their own in the form."""
PAGE: Final = 50
MOST_LOOKS: Final = 4
"""How many short pages are put together to one."""
MOST_LOOKS_FOR_WORDS: Final = 2
MOST_SELECTED: Final = 200
MOST_AT_ONCE: Final = 10_000
GROUPS: Final[Mapping[str, str]] = {
    "all": "",
    "waiting": "queued,blocked,limited",
    "running": "running",
    "succeeded": "succeeded",
    "failed": "dead,expired",
    "ended otherwise": "cancelled,dropped,skipped",
}
ACTIONS: Final[Mapping[str, tuple[str, str, Sequence[State]]]] = {
    "cancel": ("cancel_job", "cancel_jobs", ACTIVE),
    "retry": ("retry_job", "retry_jobs", REDRIVABLE),
}
_ID: Final = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}").fullmatch


class Found(NamedTuple):
    """A page of jobs."""

    jobs: list[Any]
    cursor: str | None
    looked_back_to: datetime | None
    """When the last of the jobs was made that were looked at, if the page is short and there are older ones."""


async def load(visit: Visit) -> Mapping[str, Any] | Done:
    """Return a page of jobs, or go to the one whose id was searched for."""
    searched = visit.query.get("q", "").strip()
    if _ID(searched):
        return Done(f"/ui/jobs/{searched.lower()}", "")
    chosen = _chosen(visit.query)
    found, wrong = Found([], None, None), ""
    try:
        found = await _find(visit, chosen)
    except Refused as refused:
        wrong = refused.detail
    return {
        "jobs": found.jobs,
        "next_cursor": found.cursor,
        "looked_back_to": found.looked_back_to,
        "wrong": wrong,
        "chosen": chosen,
        "unseen": UNSEEN,
        "groups": GROUPS,
        "states": list(State),
        "queues": [queue.queue for queue in (await visit.desk.ask("list_queues")).queues],
        "deep": "cursor" in visit.query,
    }


def _chosen(query: Mapping[str, str]) -> dict[str, str]:
    return {name: query[name].strip() for name in FILTERS if query.get(name, "").strip()}


async def _find(visit: Visit, chosen: Mapping[str, str]) -> Found:
    """Put short pages together, but do not look for ever: what is rare may come pages later."""
    jobs, cursor, looked_to = list[Any](), visit.query.get("cursor"), None
    for _ in range(MOST_LOOKS_FOR_WORDS if "q" in chosen else MOST_LOOKS):
        asked = {**chosen, "limit": PAGE, "cursor": cursor}
        page = await visit.desk.ask("list_jobs", query=asked)
        jobs, cursor, looked_to = [*jobs, *page.jobs], page.next_cursor, page.next_after
        if cursor is None or len(jobs) >= PAGE // 2:
            break
    return Found(jobs, cursor, None if looked_to is None or len(jobs) >= PAGE else time_of(looked_to))


# Actions on many


async def weigh(visit: Visit) -> Mapping[str, Any]:
    """Count the jobs that an action is for, before anything happens."""
    action = _action(visit.query.get("action", ""))
    chosen = _chosen(visit.query)
    counted = await visit.desk.ask(ACTIONS[action][1], body={"where": chosen, "dry_run": True})
    return {
        "title": f"{action.capitalize()} jobs",
        "action": action,
        "chosen": chosen,
        "matched": counted.matched,
        "more": counted.more,
        "most": MOST_AT_ONCE,
        "ids": [],
        "back": f"/ui/jobs?{urlencode(chosen)}",
    }


async def act_on_matching(visit: Visit) -> Done:
    """Do it with all jobs that meet the conditions."""
    action = _action(visit.field("action"))
    chosen = {name: visit.field(name) for name in FILTERS if visit.field(name)}
    asked = {"where": chosen, "limit": MOST_AT_ONCE, "reason": visit.field("reason")}
    answer = await visit.desk.ask(ACTIONS[action][1], body=asked)
    more = " There are more: do it again for the rest." if answer.more else ""
    return Done(f"/ui/jobs?{urlencode(chosen)}", f"{_past(action)}: {answer.done} of {answer.matched} jobs.{more}")


async def act_on_selected(visit: Visit) -> Done | Shown:
    """Ask once more, with the number, and then do it with the jobs that were ticked."""
    action, ids = _action(visit.field("action")), list(visit.form.get("id", ()))
    back = visit.field("back") if visit.field("back").startswith("/ui/jobs") else "/ui/jobs"
    if not ids:
        return Done(back, "No job was ticked.", kind="bad")
    if len(ids) > MOST_SELECTED:
        raise Refused("invalid", f"at most {MOST_SELECTED} jobs can be ticked at once")
    if not visit.field("sure"):
        context = {"action": action, "chosen": {}, "matched": len(ids), "more": False, "ids": ids, "back": back}
        return Shown("bulk.html", {**context, "most": MOST_SELECTED}, f"{action.capitalize()} jobs")
    done = 0
    for job_id in ids:
        with contextlib.suppress(NotFound, Conflict):  # it went on meanwhile
            await visit.desk.ask(ACTIONS[action][0], id=job_id)
            done += 1
    return Done(back, f"{_past(action)}: {done} of {len(ids)} jobs.")


def _action(text: str) -> str:
    if text not in ACTIONS:
        raise Refused("bad-parameter", f"action: must be one of {', '.join(ACTIONS)}")
    return text


def _past(action: str) -> str:
    return {"cancel": "Cancelled, or asked to stop", "retry": "Sent round again"}[action]
