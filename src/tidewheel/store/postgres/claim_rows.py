"""What the statements of a claim answer, made into what the claim works with."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidewheel.model.gate import Gate
from tidewheel.model.job import Run
from tidewheel.model.order import Head
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, parse_needs_text
from tidewheel.store.lanes import Lane, gating_of
from tidewheel.store.postgres.limits import KEY_MARK
from tidewheel.store.postgres.memory import Pair

_PRIORITIES: Final = tuple(Priority)
_RUN_COLUMNS: Final = 14
"""All rows have some more, which say whom else the run concerns."""


def seen_of(row: Any) -> tuple[dict[int, tuple[list[float], list[bytes]]], float | None]:
    """Return what a peek saw of each pair that has due jobs, and when the next job becomes due."""
    seen: dict[int, tuple[list[float], list[bytes]]] = {}
    run_ats, ids, now, next_due = row["run_ats"], row["ids"], row["now"], float("inf")
    start = 0
    for number, count in Counter(row["pairs"]).items():
        end = start + count
        first_future = bisect_right(run_ats, now, start, end)
        if first_future > start:
            seen[number] = (run_ats[start:first_future], ids[start:first_future])
        if first_future < end:
            next_due = min(next_due, run_ats[first_future])
        start = end
    return seen, None if next_due == float("inf") else next_due


def head_of(pair: Pair, lanes: Mapping[int, Lane], due: list[float], ids: list[bytes], depth: int) -> Head:
    """Return what a peek saw of one pair."""
    lane = lanes[pair[0]]
    return Head(
        *pair,
        lane.tenant,
        due,
        more=len(due) == depth,
        weight=lane.weight,
        needs=lane.needs,
        ids=ids,
        queue=lane.queue,
        retried=lane.retried,
        overdue=lane.overdue,
        paces=lane.slowed_by,
    )


def lane_of(row: Any, gates: Sequence[Gate] = ()) -> Lane:
    """Return a lane, with the slow ones among the gates that it lies behind."""
    names = {"kind": row["kind"], "queue": row["queue"], "tenant": row["tenant_name"]}
    return Lane(
        row["id"],
        row["tenant"],
        row["tenant_name"],
        row["weight"],
        row["queue"],
        row["kind"],
        parse_needs_text(row["needs"]) if row["needs"] else None,
        row["keyed"],
        *gating_of(row["gate"], gates, **names),
        row["retried"],
        row["overdue"],
    )


def run_of(row: Any, lanes: Mapping[int, Lane]) -> Run:
    """Return a run of one of these lanes."""
    job_id, token, lane_id, priority, args, labels, options, *rest = row[:_RUN_COLUMNS]
    run_at, due_at, start_by, claimed_at, failures, losses, cancelling = rest
    lane = lanes[lane_id]
    return Run(
        job_id,
        token,
        lane_id,
        lane.kind,
        lane.queue,
        lane.tenant_name,
        _PRIORITIES[priority],
        args,
        labels,
        options,
        run_at,
        due_at,
        start_by,
        claimed_at,
        failures,
        losses,
        cancelling,
        lane.needs or NO_NEEDS,
        tuple(names.split(KEY_MARK)) if (names := row.get("names")) else (),
    )
