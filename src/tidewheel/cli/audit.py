"""`tide audit`: who changed what. It reads the database itself, with a server or without."""

from typing import Annotated, Final
from uuid import UUID

import msgspec
import typer

from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, with_session
from tidewheel.errors import Invalid
from tidewheel.model.audit import AuditEntry, AuditFilter
from tidewheel.store.access import MAX_PAGE
from tidewheel.store.base import Store

TenantName = Annotated[str | None, typer.Option("--tenant", help="Only what concerns this tenant.")]
ActionName = Annotated[str | None, typer.Option("--action", help="Only this action, such as keys.write.")]
Subject = Annotated[str | None, typer.Option("--subject", help="Only what was done to this id or name.")]
Last = Annotated[int, typer.Option("--last", help="How many entries to show at most.")]


@with_session
def audit(
    session: Session,
    *,
    tenant: TenantName = None,
    action: ActionName = None,
    subject: Subject = None,
    last: Last = 50,
) -> None:
    """Show who changed what, newest first."""
    if last < 1:
        raise Invalid("last", f"must be at least 1, not {last}")
    where = AuditFilter(tenant=tenant, action=action, subject=subject)
    show_list(session.ask(lambda store: _newest(store, where, last)), COLUMNS, session.output)


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


def _detail(entry: AuditEntry) -> str:
    return "" if entry.detail is None else msgspec.json.encode(entry.detail).decode()


COLUMNS: Final[Columns[AuditEntry]] = {
    "at": lambda entry: entry.at,
    "actor": lambda entry: entry.actor,
    "tenant": lambda entry: entry.tenant,
    "action": lambda entry: entry.action,
    "subject": lambda entry: entry.subject,
    "detail": _detail,
}
