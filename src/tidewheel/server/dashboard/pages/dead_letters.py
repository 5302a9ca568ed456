"""Dead letters by what they died of."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from tidewheel.server.dashboard.visit import Done, Visit
from tidewheel.server.problems import Refused

CONDITIONS: Final = ("kind", "fingerprint")
MOST: Final = 10_000


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the groups, or the letters of one of them."""
    chosen = {name: visit.query[name] for name in CONDITIONS if name in visit.query}
    groups = (await visit.desk.ask("list_dead_groups", query=chosen)).groups
    letters, cursor = [], None
    if chosen:
        page = await visit.desk.ask("list_dead_letters", query={**chosen, "cursor": visit.query.get("cursor")})
        letters, cursor = page.jobs, page.next_cursor
    return {"groups": groups, "letters": letters, "next_cursor": cursor, "chosen": chosen}


async def weigh(visit: Visit) -> Mapping[str, Any]:
    """Count what a redrive would send round."""
    chosen = {name: visit.query[name] for name in CONDITIONS if name in visit.query}
    counted = await visit.desk.ask("redrive_dead_letters", body={"where": chosen, "dry_run": True})
    return {"matched": counted.matched, "chosen": chosen, "most": MOST}


async def redrive(visit: Visit) -> Done:
    """Send them round again."""
    chosen = {name: visit.field(name) for name in CONDITIONS if visit.field(name)}
    body: dict[str, Any] = {"where": chosen, "limit": MOST}
    if visit.field("rate"):
        try:
            body["rate"] = float(visit.field("rate"))
        except ValueError:
            raise Refused("invalid", f"rate: must be a number, not {visit.field('rate')[:40]!r}") from None
    answer = await visit.desk.ask("redrive_dead_letters", body=body)
    more = " There are more: do it again for the rest." if answer.more else ""
    return Done(f"/ui/dead-letters?{urlencode(chosen)}", f"Sent round again: {answer.done} jobs.{more}")
