"""`tide limit`: how many jobs that share a key run at once, how many start in a time, and how many wait."""

from typing import Annotated, Final, get_args

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.options import OverflowName
from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import Invalid, NotFound
from tidewheel.model.cap import Overflow
from tidewheel.model.guessing import did_you_mean, name_among
from tidewheel.model.limit import Limit, LimitRule, by_hand
from tidewheel.model.rate import pace_of
from tidewheel.store.base import Store

app = group("Bound how many jobs that share a key run at once, start in a time, or wait.")

Key = Annotated[str, typer.Argument(metavar="KEY", help="The key, as jobs carry it: `tide job show` tells.")]
AsRule = Annotated[bool, typer.Option("--rule", help="For the key and every key=value, each for itself.")]

LIMITS: Final[Columns[Limit]] = {
    "key": lambda limit: limit.key,
    "running": lambda limit: limit.running,
    "at once": lambda limit: limit.most,
    "rate": lambda limit: limit.rate,
    "tokens": lambda limit: limit.tokens,
    "rule": lambda limit: limit.rule,
}
RULES: Final[Columns[LimitRule]] = {
    "rule": lambda rule: rule.name,
    "at once": lambda rule: rule.most,
    "rate": lambda rule: rule.rate,
    "waiting": lambda rule: rule.waiting,
    "overflow": lambda rule: None if rule.waiting is None else rule.overflow,
    "by": lambda rule: "hand" if rule.by_hand else "tasks",
}


@verb(app, "list")
def list_limits(
    session: Session, *, rules: Annotated[bool, typer.Option("--rules", help="The rules instead.")] = False
) -> None:
    """List the limits that are in use, with how many jobs run under each; or the rules that they come from."""
    if rules:
        show_list(session.ask(lambda store: store.rules()), RULES, session.output)
    else:
        show_list(session.ask(lambda store: store.limits(tenant=session.tenant)), LIMITS, session.output)


@verb(app, "set")
def set_limit(
    session: Session,
    key: Key,
    *,
    most: Annotated[int | None, typer.Option("--most", min=1, help="How many may run at once.")] = None,
    rate: Annotated[str | None, typer.Option("--rate", help="How many may start, such as 10/s or 100/m.")] = None,
    burst: Annotated[int | None, typer.Option("--burst", min=1, help="How many may start at once by the rate.")] = None,
    waiting: Annotated[
        int | None, typer.Option("--waiting", min=1, help="How many may wait; for a rule whose name begins with cap:.")
    ] = None,
    overflow: OverflowName = "reject",
    rule: AsRule = False,
) -> None:
    """Set a limit; waiters are let go if there is more room now."""
    pace = pace_of(rate, burst)
    if rule:
        kept = name_among("overflow", overflow, get_args(Overflow))
        made = by_hand(LimitRule(key, most, pace, waiting=waiting, overflow=kept))
        session.ask(lambda store: store.set_rule(made))
        show_list([made], RULES, session.output)
        return
    if waiting is not None:
        raise Invalid("waiting", "is for rules: add --rule")
    limit = session.ask(lambda store: store.set_limit(key, most, rate=pace, tenant=session.tenant))
    show_list([limit], LIMITS, session.output)


@verb(app)
def remove(session: Session, key: Key, *, rule: AsRule = False) -> None:
    """Remove a limit; if a rule holds for the key it does so again, and else all who wait are let go."""

    async def take_away(store: Store) -> None:
        try:
            await (store.remove_rule(key) if rule else store.remove_limit(key, tenant=session.tenant))
        except NotFound:
            names = [each.name for each in await store.rules()] if rule else await _keys(store, session.tenant)
            raise NotFound("rule" if rule else "limit", f"{key}{did_you_mean(key, names)}") from None

    session.ask(take_away)
    typer.echo(f"{key} is removed")


async def _keys(store: Store, tenant: str) -> list[str]:
    return [limit.key for limit in await store.limits(tenant=tenant)]
