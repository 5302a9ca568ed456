"""`tide tenant`: the shares and bounds of tenants. It works on the database itself, with a server or without."""

from typing import Annotated

import msgspec
import typer

from tidewheel.cli.options import Database
from tidewheel.cli.showing import Format, Output, show_json, show_table, whoever_types, with_store
from tidewheel.errors import Invalid
from tidewheel.model.tenant import Tenant
from tidewheel.store.base import Store
from tidewheel.wiring import DEFAULT_URL

app = typer.Typer(help="List tenants, and give them shares and bounds.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The tenant.")]
Weight = Annotated[float | None, typer.Option(help="Its share of the starts while others wait, too.")]
MaxQueued = Annotated[
    str | None, typer.Option(help="How many jobs it may have that have not ended; none for any number.")
]
MaxPayload = Annotated[
    str | None, typer.Option(help="How many bytes of arguments each of its jobs may have; none for what all may.")
]


@app.command("set")
def set_tenant(
    name: Name,
    *,
    weight: Weight = None,
    max_queued: MaxQueued = None,
    max_payload: MaxPayload = None,
    output: Output = Format.TEXT,
    database: Database = DEFAULT_URL,
) -> None:
    """Give a tenant its share and bounds; what is not named stays as it is."""
    changes: dict[str, float | int | None] = {} if weight is None else {"weight": weight}
    for field, text in (("max_queued", max_queued), ("max_payload", max_payload)):
        if text is not None:
            changes[field] = _bound(field, text)

    async def change(store: Store) -> Tenant:
        known = next(iter(await store.tenants(tenant=name)), Tenant(name=name))
        return await store.set_tenant(msgspec.structs.replace(known, **changes), by=whoever_types())

    _show([with_store(database, change)], output)


@app.command("list")
def list_tenants(*, output: Output = Format.TEXT, database: Database = DEFAULT_URL) -> None:
    """Show the tenants that are known: from their first job on, or because they were given something."""
    _show(with_store(database, lambda store: store.tenants()), output)


def _bound(field: str, text: str) -> int | None:
    if text == "none":
        return None
    if not text.isdecimal():
        raise Invalid(field, f"must be a number or none, not {text[:40]!r}")
    return int(text)


def _show(tenants: list[Tenant], output: Format) -> None:
    if output is Format.JSON:
        show_json([msgspec.structs.asdict(tenant) for tenant in tenants])
        return
    head = ("name", "weight", "max queued", "max payload")
    show_table(head, [(each.name, f"{each.weight:g}", each.max_queued, each.max_payload) for each in tenants])
