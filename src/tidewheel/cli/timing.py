"""The options that say when a schedule fires, and what becomes of what was missed or overlaps."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Annotated, Any, Final

import msgspec
import typer

from tidewheel.cli.options import parse_instant
from tidewheel.errors import Invalid
from tidewheel.model.guessing import name_among
from tidewheel.model.overlap import Overlap
from tidewheel.tasks.durations import parse_duration
from tidewheel.triggers import Interval, Trigger, parse_rule
from tidewheel.triggers.bounds import EPOCH

MISFIRES: Final = ("latest", "all", "skip")

CronText = Annotated[str | None, typer.Option("--cron", help='Five fields such as "0 5 * * *", or @daily.')]
Every = Annotated[str | None, typer.Option("--every", help="How long from one to the next, such as 10m.")]
At = Annotated[str | None, typer.Option("--at", help="Once, at an instant such as 2030-01-01T12:00:00+01:00.")]
Timezone = Annotated[str | None, typer.Option("--timezone", help="The zone of --cron.  [default: UTC]")]
Start = Annotated[str | None, typer.Option("--start", help="Not before this instant.")]
End = Annotated[str | None, typer.Option("--end", help="Not after this instant.")]
MaxOccurrences = Annotated[int | None, typer.Option("--max-occurrences", min=1, help="How often at the most.")]
Jitter = Annotated[str | None, typer.Option("--jitter", help="Delays each by a share of this, another one each time.")]
Spread = Annotated[str | None, typer.Option("--spread", help="Delays all by a share of this that the name decides.")]
OverlapName = Annotated[
    str | None, typer.Option("--overlap", help=f"While the last still runs: {', '.join(Overlap)}.  [default: skip]")
]
MaxConcurrency = Annotated[int | None, typer.Option("--max-concurrency", min=1, help="How many may run at once.")]
MisfireName = Annotated[
    str | None, typer.Option("--misfire", help=f"What was missed: {', '.join(MISFIRES)}.  [default: latest]")
]
Grace = Annotated[str | None, typer.Option("--grace", help="Up to this lateness nothing was missed.  [default: 15m]")]
Description = Annotated[str | None, typer.Option("--description", help="A sentence for people.")]

_READ: Final[Mapping[str, Callable[[str], Any]]] = {
    **{name: partial(parse_instant, field=name) for name in ("at", "start", "end")},
    "overlap": lambda given: name_among("overlap", given, list(Overlap)),
    "misfire": lambda given: name_among("misfire", given, MISFIRES),
}


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """When to fire, as it was typed."""

    cron: CronText = None
    every: Every = None
    at: At = None
    timezone: Timezone = None
    start: Start = None
    end: End = None
    max_occurrences: MaxOccurrences = None
    jitter: Jitter = None
    spread: Spread = None
    overlap: OverlapName = None
    max_concurrency: MaxConcurrency = None
    misfire: MisfireName = None
    grace: Grace = None
    description: Description = None

    @property
    def options(self) -> dict[str, Any]:
        """Those that were given, as the SDK takes them."""
        given = {name: value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return {name: _READ[name](value) if name in _READ else value for name, value in given.items()}


def trigger(*, cron: str | None, every: str | None, timezone: str | None) -> Trigger:
    """Return the trigger of a schedule that is not made yet."""
    if (cron is None) == (every is None):
        raise Invalid("name", "name a schedule, or give --cron or --every")
    try:
        if every is not None:
            return Trigger(rule=Interval(parse_duration(every, "every"), EPOCH))
        return Trigger(rule=parse_rule(str(cron), timezone or "", EPOCH))
    except Invalid as error:
        raise Invalid({"expression": "cron", "zone": "timezone"}.get(error.field, error.field), error.why) from None
