"""Dependencies between jobs: what may be asked for, who is let go when a parent ends, and results as arguments."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import shown
from tidewheel.model.states import State

OnParentFailure = Literal["skip", "run", "hold"]
MAX_PARENTS: Final = 100_000
SHOWN_PARENTS: Final = 1000
"""How many of its parents the record of a job names; `parents_of` leads through all."""
AT_ONCE: Final = 1000
"""How many edges the end of a parent follows in its own transaction; the rest is for the duty, in pieces as large."""
REFERENCE: Final = "$result_of"

Edge = tuple[UUID, UUID]
"""A parent and its child."""


class Relative(msgspec.Struct, frozen=True):
    """A parent or a child of a job, as a reader sees it."""

    job_id: UUID
    kind: str | None
    state: State | None
    """None if its record was removed."""


# What may be asked for


def check_after(after: object, policy: object) -> None:
    """Refuse parents that cannot be any, and policies that there are not."""
    if policy not in ("skip", "run", "hold"):
        raise Invalid("on_parent_failure", f"must be skip, run or hold, not {shown(policy)}")
    if not isinstance(after, tuple | list) or not all(isinstance(parent, UUID) for parent in after):
        raise Invalid("after", "must be a list of job ids")
    if len(after) > MAX_PARENTS:
        raise Invalid("after", f"at most {MAX_PARENTS}, not {len(after)}")
    if len(set(after)) != len(after):
        raise Invalid("after", "names a job twice")


def check_own_id(job_id: object) -> None:
    """Refuse ids that are not like those that a store makes."""
    if not isinstance(job_id, UUID) or job_id.version != 7:  # noqa: PLR2004 - the version is the point
        raise Invalid("id", "must be a UUID of version 7")


def find_cycle(after: Mapping[UUID, Sequence[UUID]]) -> list[UUID]:
    """Return jobs that wait for one another in a ring, each for the next, or nothing if there is no ring.

    Jobs that are not among the keys are there already, and so wait for none of these.
    """
    waits = {child: sum(parent in after for parent in parents) for child, parents in after.items()}
    children: dict[UUID, list[UUID]] = {}
    for child, parents in after.items():
        for parent in parents:
            if parent in after:
                children.setdefault(parent, []).append(child)
    free = [job for job, count in waits.items() if not count]
    for job in free:  # grows while it is walked
        for child in children.get(job, ()):
            waits[child] -= 1
            if not waits[child]:
                free.append(child)
    if len(free) == len(after):
        return []
    return _ring(after, {job for job, count in waits.items() if count})


def _ring(after: Mapping[UUID, Sequence[UUID]], stuck: set[UUID]) -> list[UUID]:
    """Walk from parent to parent among jobs that each have one, until one is met again."""
    seen: dict[UUID, int] = {}
    path: list[UUID] = []
    job = min(stuck)
    while job not in seen:
        seen[job] = len(path)
        path.append(job)
        job = next(parent for parent in after[job] if parent in stuck)
    return path[seen[job] :]


# Who is let go


class Standing(NamedTuple):
    """How it stands with the parents of a job that is new."""

    waits: list[UUID]
    """Those that it waits for."""
    failed: UUID | None
    """The one because of which it is skipped at once."""


def stand(after: Sequence[UUID], policy: str, ended: Mapping[UUID, str]) -> Standing:
    """Tell what a new job waits for; `ended` says how those of its parents ended that did."""
    done = {parent for parent in after if policy == "run" or ended.get(parent) == State.SUCCEEDED} & ended.keys()
    waits = [parent for parent in after if parent not in done]
    failed = next((parent for parent in waits if parent in ended), None) if policy == "skip" else None
    return Standing(waits, failed)


class Decision(NamedTuple):
    """What the ends of parents mean for their children."""

    counted: list[Edge]
    """Edges that their children need not wait for any more."""
    skipped: dict[UUID, UUID]
    """Children that will never run, and the parent that is the reason."""


def decide(edges: Iterable[Edge], ended: Mapping[UUID, str], policies: Mapping[UUID, str]) -> Decision:
    """Decide for edges whose parents have ended, in an order in which parents come before their children.

    `ended` says how; `policies` are those of the children that are blocked. A child that is skipped has ended, too.
    """
    ends = dict(ended)
    counted: list[Edge] = []
    skipped: dict[UUID, UUID] = {}
    for parent, child in edges:
        end, policy = ends.get(parent), policies.get(child)
        if end is None or policy is None or child in skipped:
            continue
        if end == State.SUCCEEDED or policy == "run":
            counted.append((parent, child))
        elif policy == "skip":
            skipped[child] = parent
            ends[child] = State.SKIPPED
    return Decision([edge for edge in counted if edge[1] not in skipped], skipped)


def reason_of(parent: UUID, end: str) -> str:
    """Say why a child was skipped."""
    return f"its parent {parent} ended as {end}"


# Results as arguments


def find_references(args: Any) -> list[UUID]:
    """Return the jobs whose results stand in arguments, each once; refuse what only looks like a reference."""
    if isinstance(args, Mapping) and REFERENCE in args:
        raise Invalid("args", f"{REFERENCE} stands for the value of an argument, not for all of them")
    return list(dict.fromkeys(_references(args)))


def fill_references(args: Any, results: Mapping[UUID, Any]) -> Any:
    """Return arguments in which results stand where they were asked for; `results` must have them all."""
    if isinstance(args, Mapping):
        if REFERENCE in args:
            job_id = _referred(args)
            if job_id not in results:
                raise Invalid("args", f"there is no result of job {job_id}")
            return results[job_id]
        return {name: fill_references(value, results) for name, value in args.items()}
    if isinstance(args, list | tuple):
        return [fill_references(value, results) for value in args]
    return args


def _references(value: Any) -> Iterator[UUID]:
    if isinstance(value, Mapping):
        if REFERENCE in value:
            yield _referred(value)
            return
        for inner in value.values():
            yield from _references(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _references(inner)


def _referred(value: Mapping[str, Any]) -> UUID:
    text = value[REFERENCE]
    try:
        if len(value) == 1 and isinstance(text, str):
            return UUID(text)
    except ValueError:
        pass
    raise Invalid("args", f"{REFERENCE} must stand alone in its object, with the id of a job")
