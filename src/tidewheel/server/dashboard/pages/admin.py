"""Keys, the names of stored secrets, and the log of who changed what."""

from collections.abc import Mapping
from typing import Any, Final

from tidewheel.model.access import Role
from tidewheel.server.dashboard.visit import Done, Shown, Visit

FILTERS: Final = ("action", "subject", "key_id")


async def load_keys(visit: Visit) -> Mapping[str, Any]:
    """Return the keys; whoever looks after all tenants sees those of all."""
    everywhere = visit.desk.visitor.actor.everywhere
    asked = {"cursor": visit.query.get("cursor"), "all_tenants": "true" if everywhere else None}
    page = await visit.desk.ask("list_keys", query=asked)
    return {"keys": page.keys, "next_cursor": page.next_cursor, "roles": list(Role), "everywhere": everywhere}


async def create_key(visit: Visit) -> Shown:
    """Make a key, and show it this once."""
    body: dict[str, Any] = {"name": visit.field("name"), "role": visit.field("role")}
    if visit.field("all_tenants"):
        body["all_tenants"] = True
    if visit.field("expires_in"):
        body["expires_in"] = visit.field("expires_in")
    made = await visit.desk.ask("create_key", body=body)
    return Shown("new_key.html", {"key": made}, "A new key")


async def revoke_key(visit: Visit) -> Done:
    """Make a key open nothing any more."""
    key = await visit.desk.ask("revoke_key", id=visit.path["id"])
    return Done("/ui/keys", f"The key {key.name} opens nothing any more.")


async def load_secrets(visit: Visit) -> Mapping[str, Any]:
    """Return what can be told of stored secrets."""
    return {"secrets": (await visit.desk.ask("list_secrets")).secrets}


async def load_audit(visit: Visit) -> Mapping[str, Any]:
    """Return a page of the log."""
    chosen = {name: visit.query[name] for name in FILTERS if name in visit.query}
    everywhere = visit.desk.visitor.actor.everywhere
    asked = {**chosen, "cursor": visit.query.get("cursor"), "all_tenants": "true" if everywhere else None}
    page = await visit.desk.ask("list_audit", query=asked)
    return {"entries": page.entries, "next_cursor": page.next_cursor, "chosen": chosen}
