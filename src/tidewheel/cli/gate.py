"""`tide gate`: hold, drop or slow all jobs of a kind, a queue or a tenant."""

from typing import Annotated, Final
from uuid import UUID

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.picking import hint
from tidewheel.cli.showing import Columns, Format, show_list, show_value, whoever_types
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.gate import Gate, GateMode, GateSpec
from tidewheel.model.guessing import name_among
from tidewheel.sdk.gates import parse_rate
from tidewheel.store.base import JobFilter, Store
from tidewheel.tasks.durations import parse_duration

app = group("Hold, drop or slow all jobs of a kind, a queue or a tenant.")

Kind = Annotated[str | None, typer.Option("--kind", help="Jobs of this kind: the name of their task.")]
Queue = Annotated[str | None, typer.Option("--queue", help="Jobs of this queue.")]
TenantName = Annotated[str | None, typer.Option("--tenant", help="Jobs of this tenant.  [default: of all]")]

COLUMNS: Final[Columns[Gate]] = {
    "id": lambda gate: gate.id,
    "mode": lambda gate: gate.mode.value,
    "kind": lambda gate: gate.kind,
    "queue": lambda gate: gate.queue,
    "tenant": lambda gate: gate.tenant,
    "rate": lambda gate: None if gate.rate is None else f"{gate.rate:g}/s",
    "expires": lambda gate: gate.expires_at,
    "reason": lambda gate: gate.reason,
    "by": lambda gate: gate.author,
}


@verb(app, "list")
def list_gates(session: Session) -> None:
    """List the closed gates, oldest first."""
    show_list(session.ask(lambda store: store.gates()), COLUMNS, session.output)


@verb(app)
def close(
    session: Session,
    *,
    kind: Kind = None,
    queue: Queue = None,
    tenant: TenantName = None,
    mode: Annotated[
        str, typer.Option("--mode", help="hold keeps jobs, drop ends them, slow bounds their pace.")
    ] = "hold",
    rate: Annotated[str | None, typer.Option("--rate", help="For slow: how many may start, such as 100/m.")] = None,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who wonder.")] = "",
    lasts: Annotated[str | None, typer.Option("--lasts", help="After how long it opens by itself, as 1h.")] = None,
    stop_running: Annotated[bool, typer.Option("--stop-running", help="Also stop what runs behind it.")] = False,
) -> None:
    """Close a gate: no job behind it starts, in effect at the next claim. It moves no job."""
    spec = GateSpec(
        mode=name_among("mode", mode, list(GateMode)),
        kind=kind,
        queue=queue,
        tenant=tenant,
        reason=reason,
        author=whoever_types().name,
        rate=None if rate is None else parse_rate(rate),
        lasts=None if lasts is None else parse_duration(lasts, "lasts"),
        stop_running=stop_running,
    )

    async def shut(store: Store) -> tuple[Gate, str]:
        return await store.close_gate(spec), await hint(store, JobFilter(tenant=tenant, kind=kind, queue=queue))

    gate, note = session.ask(shut)
    _show(session, gate)
    if note:  # a gate may be closed before its first job comes, so this is no error
        typer.echo(f"tide: {note}", err=True)


@verb(app, "open")
def open_gates(
    session: Session,
    gate: Annotated[
        str | None, typer.Argument(metavar="[GATE]", help="The id of the gate; or say which below.")
    ] = None,
    *,
    kind: Kind = None,
    queue: Queue = None,
    tenant: TenantName = None,
) -> None:
    """Open a gate: what waits behind it goes on, in its old order."""
    if (gate is None) == (kind is queue is tenant is None):
        raise Invalid("gate", "name a gate by its id, or by its --kind, --queue or --tenant")

    async def let_go(store: Store) -> Gate:
        for each in await store.gates():
            if each.id == chosen or (chosen is None and (each.kind, each.queue, each.tenant) == (kind, queue, tenant)):
                await store.open_gate(each.id)
                return each
        raise NotFound("closed gate", gate or "on just these; see `tide gate list`")

    chosen = None if gate is None else _id(gate)
    opened = session.ask(let_go)
    typer.echo(f"{opened.id} is open")


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid("gate", f"must be an id, as `tide gate list` shows it, not {text[:40]!r}") from None


def _show(session: Session, gate: Gate) -> None:
    if session.output is Format.TABLE:
        show_list([gate], COLUMNS, session.output)
    else:
        show_value(gate, session.output)
