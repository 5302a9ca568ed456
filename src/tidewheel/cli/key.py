"""`tide key`: who may come in by the network. It works on the database itself, with a server or without."""

import secrets
from typing import Annotated, Any
from uuid import UUID

import msgspec
import typer

from tidewheel.cli.options import Database
from tidewheel.cli.showing import Format, Output, show_json, show_table, whoever_types, with_store
from tidewheel.errors import NotFound
from tidewheel.model.access import parse_role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, check_prefix, make_key
from tidewheel.store.base import Store
from tidewheel.tasks.durations import parse_duration
from tidewheel.wiring import DEFAULT_URL

app = typer.Typer(help="Give out, list and revoke keys.", no_args_is_help=True)
PAGE = 1000

Name = Annotated[str, typer.Argument(help="For people: who or what the key is for.")]
RoleName = Annotated[str, typer.Option("--role", help="admin, operator, submitter, viewer or worker.")]
TenantName = Annotated[str | None, typer.Option("--tenant", help="The tenant it is for.  [default: all]")]
Expires = Annotated[
    str | None, typer.Option("--expires", help="How long it is valid, such as 90d.  [default: for ever]")
]
RatePerSecond = Annotated[float | None, typer.Option("--rate", help="Requests a second.")]
Burst = Annotated[int | None, typer.Option("--burst", help="Requests at once.")]
Prefix = Annotated[str, typer.Argument(help="The first part of the key, as `tide key list` shows it.")]


@app.command()
def create(
    name: Name,
    *,
    role: RoleName,
    tenant: TenantName = None,
    expires: Expires = None,
    rate: RatePerSecond = None,
    burst: Burst = None,
    output: Output = Format.TEXT,
    database: Database = DEFAULT_URL,
) -> None:
    """Make a key and print it. It is shown this once: only a digest of it is kept."""
    spec = KeySpec(
        name=name,
        role=parse_role(role),
        tenant=tenant,
        lifetime=None if expires is None else parse_duration(expires, "expires"),
        rate=rate,
        burst=burst,
    )
    made = make_key(secrets.token_bytes(ENTROPY))
    key = with_store(database, lambda store: store.create_key(spec, made.proof, by=whoever_types()))
    if output is Format.JSON:
        show_json({"key": made.text, **_document(key)})
    else:
        typer.echo(made.text)
        typer.echo(f"This is shown once. Revoke it by: tide key revoke {key.prefix}", err=True)


@app.command("list")
def list_keys(*, tenant: TenantName = None, output: Output = Format.TEXT, database: Database = DEFAULT_URL) -> None:
    """Show the keys, newest first; never what opens doors."""
    keys = with_store(database, lambda store: _all_keys(store, tenant))
    if output is Format.JSON:
        show_json([_document(key) for key in keys])
        return
    head = ("prefix", "name", "role", "tenant", "created", "expires", "last used", "revoked")
    show_table(head, [_row(key) for key in keys])


@app.command()
def revoke(prefix: Prefix, *, output: Output = Format.TEXT, database: Database = DEFAULT_URL) -> None:
    """Make a key open nothing any more, everywhere within a second. There is no way back."""
    plain = check_prefix(prefix)
    key = with_store(database, lambda store: _revoke(store, plain))
    if output is Format.JSON:
        show_json(_document(key))
    else:
        typer.echo(f"{key.prefix} ({key.name}) is revoked")


async def _all_keys(store: Store, tenant: str | None) -> list[ApiKey]:
    keys: list[ApiKey] = []
    after: UUID | None = None
    while page := await store.keys(tenant=tenant, limit=PAGE, after=after):
        keys += page
        after = page[-1].id
    return keys


async def _revoke(store: Store, prefix: str) -> ApiKey:
    known = await store.find_key(prefix)
    if known is None:
        raise NotFound("key", prefix)
    return await store.revoke_key(known.key.id, by=whoever_types())


def _document(key: ApiKey) -> dict[str, Any]:
    document: dict[str, Any] = msgspec.to_builtins(key)
    return document


def _row(key: ApiKey) -> tuple[object, ...]:
    tenant = "(all)" if key.tenant is None else key.tenant
    times = (key.created_at, key.expires_at, key.last_used_at, key.revoked_at)
    return (key.prefix, key.name, key.role.value, tenant, *times)
