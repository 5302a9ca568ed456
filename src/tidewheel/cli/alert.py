"""`tide alert`: what is wrong, who looks after it, and when to be silent."""

from datetime import timedelta
from typing import Annotated, Final
from uuid import UUID

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.showing import Columns, show_list, whoever_types
from tidewheel.cli.verb import Session, verb
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.alert import Alert, AlertState, Window, WindowSpec, parse_rules, window_times
from tidewheel.model.guessing import name_among
from tidewheel.tasks.durations import parse_duration

app = group("See what is wrong, and say who looks after it.")

Owner = Annotated[str | None, typer.Option("--tenant", help="Of this tenant.  [default: of all]")]

ALERTS: Final[Columns[Alert]] = {
    "id": lambda alert: alert.id,
    "since": lambda alert: alert.since,
    "state": lambda alert: alert.state.value,
    "rule": lambda alert: alert.rule.value,
    "told": lambda alert: alert.told,
    "tenant": lambda alert: alert.tenant,
    "by": lambda alert: alert.acknowledged_by,
}
WINDOWS: Final[Columns[Window]] = {
    "id": lambda window: window.id,
    "start": lambda window: window.start,
    "end": lambda window: window.end,
    "rules": lambda window: ", ".join(sorted(window.rules)) or "all",
    "reason": lambda window: window.reason,
    "by": lambda window: window.author,
}


@verb(app, "list")
def list_alerts(
    session: Session,
    *,
    state: Annotated[str, typer.Option("--state", help="firing, resolved or all.")] = "firing",
    tenant: Owner = None,
) -> None:
    """List what is wrong, newest first."""
    wanted = None if state == "all" else name_among("state", state, list(AlertState))
    show_list(session.ask(lambda store: store.alerts(tenant=tenant, state=wanted)), ALERTS, session.output)


@verb(app, "ack")
def acknowledge(session: Session, alert: Annotated[str, typer.Argument(help="The id of the alert.")]) -> None:
    """Say that you look after an alert."""
    number = _id("alert", alert)
    show_list([session.ask(lambda store: store.acknowledge(number, whoever_types().name))], ALERTS, session.output)


@verb(app, "silence")
def silence(
    session: Session,
    lasts: Annotated[str, typer.Argument(help="For how long, as 2h.")],
    rules: Annotated[list[str] | None, typer.Argument(help="Which rules.  [default: all]")] = None,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, for those who wonder.")] = "",
) -> None:
    """Begin a maintenance window: in it, nothing fires and nothing is resolved."""
    start, end = window_times(SystemClock().now(), timedelta(0), parse_duration(lasts, "lasts"))
    spec = WindowSpec(
        start=start,
        end=end,
        rules=parse_rules(rules or []),
        reason=reason,
        author=whoever_types().name,
    )
    show_list([session.ask(lambda store: store.add_window(spec))], WINDOWS, session.output)


@verb(app, "windows")
def list_windows(session: Session) -> None:
    """List the maintenance windows that are not over."""
    show_list(session.ask(lambda store: store.windows()), WINDOWS, session.output)


@verb(app, "unsilence")
def unsilence(session: Session, window: Annotated[str, typer.Argument(help="The id of the window.")]) -> None:
    """End a maintenance window."""
    number = _id("window", window)
    session.ask(lambda store: store.remove_window(number))
    typer.echo(f"{number} is removed")


def _id(field: str, text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Invalid(field, f"must be an id, as the lists show it, not {text[:40]!r}") from None
