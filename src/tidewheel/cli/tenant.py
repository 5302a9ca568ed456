"""`tide tenant`: the shares and bounds of tenants. It works on the database itself, with a server or without."""

from typing import Annotated, Any, Final

import msgspec
import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.showing import Columns, show_list, whoever_types
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import Invalid
from tidewheel.model.checks import parse_duration
from tidewheel.model.tenant import Tenant
from tidewheel.store.base import Store

app = group("List tenants, and give them shares and bounds.")

Name = Annotated[str, typer.Argument(help="The tenant.")]
Weight = Annotated[float | None, typer.Option(help="Its share of the starts while others wait, too.")]
MaxQueued = Annotated[
    str | None, typer.Option(help="How many jobs it may have that have not ended; none for any number.")
]
MaxPayload = Annotated[
    str | None, typer.Option(help="How many bytes of arguments each of its jobs may have; none for what all may.")
]
KeepLogs = Annotated[
    str | None, typer.Option(help="How long the lines of its runs are kept, as 90d; none for as long as everyone's.")
]


@verb(app, "set")
def set_tenant(
    session: Session,
    name: Name,
    *,
    weight: Weight = None,
    max_queued: MaxQueued = None,
    max_payload: MaxPayload = None,
    keep_logs: KeepLogs = None,
) -> None:
    """Give a tenant its share and bounds; what is not named stays as it is."""
    changes: dict[str, Any] = {} if weight is None else {"weight": weight}
    for field, text in (("max_queued", max_queued), ("max_payload", max_payload)):
        if text is not None:
            changes[field] = _bound(field, text)
    if keep_logs is not None:
        changes["keep_logs"] = None if keep_logs == "none" else parse_duration(keep_logs, "keep_logs")

    async def change(store: Store) -> Tenant:
        known = next(iter(await store.tenants(tenant=name)), Tenant(name=name))
        return await store.set_tenant(msgspec.structs.replace(known, **changes), by=whoever_types())

    _show([session.ask(change)], session)


@verb(app, "list")
def list_tenants(session: Session) -> None:
    """Show the tenants that are known: from their first job on, or because they were given something."""
    _show(session.ask(lambda store: store.tenants()), session)


def _bound(field: str, text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise Invalid(field, f"must be a number or none, not {text[:40]!r}")
    return int(text)


COLUMNS: Final[Columns[Tenant]] = {
    "name": lambda tenant: tenant.name,
    "weight": lambda tenant: f"{tenant.weight:g}",
    "max queued": lambda tenant: tenant.max_queued,
    "max payload": lambda tenant: tenant.max_payload,
    "logs": lambda tenant: tenant.keep_logs,
}


def _show(tenants: list[Tenant], session: Session) -> None:
    show_list(tenants, COLUMNS, session.output)
