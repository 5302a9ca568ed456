"""`tide key`: who may come in by the network. It works on the database itself, with a server or without."""

import secrets
from typing import Annotated, Final
from uuid import UUID

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.showing import Columns, Format, plain, show_list, show_value, whoever_types
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import NotFound
from tidewheel.model.access import parse_role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, check_prefix, make_key
from tidewheel.store.base import Store
from tidewheel.tasks.durations import parse_duration

app = group("Give out, list and revoke keys.")
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


@verb(app)
def create(
    session: Session,
    name: Name,
    *,
    role: RoleName,
    tenant: TenantName = None,
    expires: Expires = None,
    rate: RatePerSecond = None,
    burst: Burst = None,
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
    key = session.ask(lambda store: store.create_key(spec, made.proof, by=whoever_types()))
    if session.output is not Format.TABLE:
        show_value({"key": made.text, **plain(key)}, session.output)
    else:
        typer.echo(made.text)
        typer.echo(f"This is shown once. Revoke it by: tide key revoke {key.prefix}", err=True)


@verb(app, "list")
def list_keys(session: Session, *, tenant: TenantName = None) -> None:
    """Show the keys, newest first; never what opens doors."""
    show_list(session.ask(lambda store: _all_keys(store, tenant)), COLUMNS, session.output)


@verb(app)
def revoke(session: Session, prefix: Prefix) -> None:
    """Make a key open nothing any more, everywhere within a second. There is no way back."""
    plain = check_prefix(prefix)
    key = session.ask(lambda store: _revoke(store, plain))
    if session.output is not Format.TABLE:
        show_value(key, session.output)
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


COLUMNS: Final[Columns[ApiKey]] = {
    "prefix": lambda key: key.prefix,
    "name": lambda key: key.name,
    "role": lambda key: key.role.value,
    "tenant": lambda key: "(all)" if key.tenant is None else key.tenant,
    "created": lambda key: key.created_at,
    "expires": lambda key: key.expires_at,
    "last used": lambda key: key.last_used_at,
    "revoked": lambda key: key.revoked_at,
}
