"""`tide dlq`: dead letters, by what they died of, and sending them round again."""

from typing import Annotated, Any

import msgspec
import typer

from tidewheel.cli.options import Database
from tidewheel.errors import Invalid
from tidewheel.model.checks import clean_text
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.sdk.app import App
from tidewheel.sdk.dead_letters import DeadOptions
from tidewheel.wiring import DEFAULT_URL

app = typer.Typer(help="Look after dead letters: jobs that ended without success.", no_args_is_help=True)

Tenant = Annotated[str, typer.Option(help="Whose they are.")]
Kind = Annotated[str | None, typer.Option(help="Only those of this kind.")]
Queue = Annotated[str | None, typer.Option(help="Only those of this queue.")]
Fingerprint = Annotated[str | None, typer.Option(help="Only those with this fingerprint, as `groups` shows it.")]
Limit = Annotated[int, typer.Option(help="How many to show at most.")]


@app.command()
def groups(
    database: Database = DEFAULT_URL,
    tenant: Tenant = DEFAULT_TENANT,
    kind: Kind = None,
    queue: Queue = None,
    limit: Limit = 50,
) -> None:
    """Print what died of what, the largest group first: fingerprint, number, last seen, kind, error."""
    with App(database, tenant=tenant) as tide:
        for group in tide.dead_letters.groups(limit=limit, **_where(kind=kind, queue=queue)):
            error = "" if group.error is None else clean_text(group.error.message.partition("\n")[0], 100)
            seen = f"{group.last_seen:%Y-%m-%d %H:%M:%S}"
            typer.echo(f"{group.fingerprint}  {group.jobs:>7}  {seen}  {group.kind}  {error}")


@app.command()
def redrive(
    *,
    database: Database = DEFAULT_URL,
    tenant: Tenant = DEFAULT_TENANT,
    kind: Kind = None,
    queue: Queue = None,
    fingerprint: Fingerprint = None,
    rate: Annotated[
        float | None, typer.Option(help="How many become due in a second; all at once if left out.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
) -> None:
    """Send dead letters round again. Interrupted, it may be begun anew: what went is no longer there."""
    with App(database, tenant=tenant) as tide:
        where = _where(kind=kind, queue=queue, fingerprint=fingerprint)
        number = tide.dead_letters.redrive(rate=rate, dry_run=dry_run, **where)
    typer.echo(f"{number} would go" if dry_run else f"{number} sent round again")


@app.command()
def retry(
    job: Annotated[str, typer.Argument(help="The id of the job.")],
    database: Database = DEFAULT_URL,
    tenant: Tenant = DEFAULT_TENANT,
    args: Annotated[str | None, typer.Option(help='Other arguments, as JSON: {"order": 7}.')] = None,
) -> None:
    """Send one dead letter round again, with other arguments if some are given."""
    with App(database, tenant=tenant) as tide:
        info = tide.dead_letters.retry(tide.job(job).id, None if args is None else _arguments(args))
    typer.echo(f"{info.id} {info.state}")


def _where(**given: str | None) -> DeadOptions:
    chosen: Any = {name: value for name, value in given.items() if value is not None}
    return chosen  # type: ignore[no-any-return] # of just these names


def _arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise Invalid("args", f"must be a JSON object: {error}") from None
