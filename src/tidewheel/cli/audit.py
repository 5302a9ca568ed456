"""`tide audit`: who changed what. It reads the database itself, with a server or without."""

from typing import Annotated
from uuid import UUID

import msgspec
import typer

from tidewheel.cli.options import Database
from tidewheel.cli.showing import Format, Output, show_json, show_table, with_store
from tidewheel.errors import Invalid
from tidewheel.model.audit import AuditEntry, AuditFilter
from tidewheel.store.access import MAX_PAGE
from tidewheel.store.base import Store
from tidewheel.wiring import DEFAULT_URL

TenantName = Annotated[str | None, typer.Option("--tenant", help="Only what concerns this tenant.")]
ActionName = Annotated[str | None, typer.Option("--action", help="Only this action, such as keys.write.")]
Subject = Annotated[str | None, typer.Option("--subject", help="Only what was done to this id or name.")]
Last = Annotated[int, typer.Option("--last", help="How many entries to show at most.")]


def audit(
    *,
    tenant: TenantName = None,
    action: ActionName = None,
    subject: Subject = None,
    last: Last = 50,
    output: Output = Format.TEXT,
    database: Database = DEFAULT_URL,
) -> None:
    """Show who changed what, newest first."""
    if last < 1:
        raise Invalid("last", f"must be at least 1, not {last}")
    where = AuditFilter(tenant=tenant, action=action, subject=subject)
    entries = with_store(database, lambda store: _newest(store, where, last))
    if output is Format.JSON:
        show_json([msgspec.to_builtins(entry) for entry in entries])
        return
    show_table(("at", "actor", "tenant", "action", "subject", "detail"), [_row(entry) for entry in entries])


async def _newest(store: Store, where: AuditFilter, most: int) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    after: UUID | None = None
    while len(entries) < most:
        page = await store.audited(where, limit=min(MAX_PAGE, most - len(entries)), after=after)
        entries += page.entries
        after = page.next
        if after is None:
            break
    return entries


def _row(entry: AuditEntry) -> tuple[object, ...]:
    detail = "" if entry.detail is None else msgspec.json.encode(entry.detail).decode()
    return (entry.at, entry.actor, entry.tenant, entry.action, entry.subject, detail)
