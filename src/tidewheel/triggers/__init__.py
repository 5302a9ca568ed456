"""Pure triggers: when something fires next.

A `Trigger` is a rule (`Once`, `Interval` or `Cron`) within bounds. It holds no state and reads no clock: it is asked
for what comes after an instant, and every node that asks gets the same answer.

    bounds         what instants and durations are accepted
    zones          IANA zones and their offset changes
    cron_text      cron as people write it
    pattern        five fields over wall clocks, by cronsim
    clock_changes  the pattern over the real time line, by Debian's rule
    rules          Once, Interval, Cron
    shifts         spread and jitter, by hash
    trigger        a rule within bounds

The reasons are in docs/explanation/triggers.md.
"""

from tidewheel.triggers.rules import Cron, Interval, Once, Rule, describe, parse_rule
from tidewheel.triggers.trigger import Occurrence, Trigger, from_json, to_json
from tidewheel.triggers.zones import falls_on_change_day

__all__ = [
    "Cron",
    "Interval",
    "Occurrence",
    "Once",
    "Rule",
    "Trigger",
    "describe",
    "falls_on_change_day",
    "from_json",
    "parse_rule",
    "to_json",
]
