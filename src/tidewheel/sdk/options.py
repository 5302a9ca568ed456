"""What may be asked for of one job, and how that becomes what the store takes."""

import hashlib
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Protocol, TypeAlias, TypedDict
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import LAST_INSTANT, check_json, check_name, duration_text, shown
from tidewheel.model.dependency import OnParentFailure
from tidewheel.model.job import JobSpec, Options, Unique
from tidewheel.model.priority import Priority, parse_priority
from tidewheel.model.resources import Needs, check_needs, parse_resources
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.submission import MOST_ARGS_BYTES
from tidewheel.tasks.definition import TaskOptions
from tidewheel.tasks.durations import Duration, parse_duration

RetryWish: TypeAlias = RetryPolicy | int | bool | None
"""A policy, a number of attempts in all, or False or None for a single one; True stands for the default policy."""
PriorityWish: TypeAlias = Priority | Literal["high", "medium", "low"]

_NEVER: Final = RetryPolicy(max_attempts=1)
_DIGEST_BYTES: Final = 16
_KIND_IN_KEY: Final = 150
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class HasId(Protocol):
    """A job, as far as others wait for it."""

    @property
    def id(self) -> UUID: ...


Parents: TypeAlias = HasId | UUID | Iterable[HasId | UUID]


class JobOptions(TypedDict, total=False):
    """What `using` takes. What is left out, or None, is as the task says."""

    queue: str | None
    priority: PriorityWish | None
    timeout: Duration | None
    retry: RetryWish
    run_at: datetime | None
    """When it may run, at the earliest."""
    delay: Duration | None
    """How long it waits, at the least."""
    start_by: datetime | Duration | None
    """The instant, or the time from now, after which it is not started any more but ends as `expired`.

    With an `idempotency_key` it must be an instant, or the same request would be another one each time."""
    idempotency_key: str | None
    """The same key with the same request is answered with the first job."""
    unique_key: str | None
    """At most one job with this key is active at a time."""
    unique: Unique | None
    """What happens if one is: `reject` (the default), `keep` it, or `replace` it. Without a key the arguments are."""
    after: Parents | None
    """Jobs that must have ended before."""
    on_parent_failure: OnParentFailure | None
    labels: Mapping[str, str] | None
    name: str | None
    description: str | None
    tenant: str | None
    connection: Any
    """A connection or session of yours: the job is there once its transaction commits, and not if it rolls back."""


KNOWN: Final = frozenset(JobOptions.__annotations__)


def check_known(options: Mapping[str, Any]) -> None:
    """Refuse options that there are not."""
    for name in options:
        if name not in KNOWN:
            raise Invalid(name, f"is no option of a job; there are {', '.join(sorted(KNOWN))}")


def retry_policy(wish: RetryWish) -> RetryPolicy:
    """Return the policy that someone asks for."""
    if isinstance(wish, RetryPolicy):
        return _checked_policy(wish)
    if wish is None or wish is False:
        return _NEVER
    if wish is True:
        return RetryPolicy()
    if isinstance(wish, int):
        return RetryPolicy(max_attempts=wish)
    raise Invalid("retry", f"must be a RetryPolicy, a number of attempts, or False, not {type(wish).__name__}")


def _checked_policy(policy: RetryPolicy) -> RetryPolicy:
    """Refuse a policy with values of other types: nothing has looked at them when it was made."""
    try:
        return msgspec.convert(msgspec.structs.asdict(policy), RetryPolicy)
    except (msgspec.ValidationError, UnicodeError) as error:
        raise Invalid("retry", str(error)) from None


def needs_of(resources: Any, labels: Any) -> Needs:
    """Return what a worker must have, as people write it down in code."""
    for field, given in (("resources", resources), ("needs_labels", labels)):
        if not isinstance(given, Mapping):
            raise Invalid(field, f"must be a mapping of names to values, not {type(given).__name__}")
    text = ",".join(f"{check_name('resources', name)}={_amount(name, given)}" for name, given in resources.items())
    return check_needs(Needs(resources=parse_resources(text), labels=dict(labels)))


def _amount(name: str, given: object) -> str:
    if not isinstance(given, int | float | str) or "," in str(given):
        raise Invalid("resources", f"{name} must be a number or a text such as 512MiB, not {shown(given)}")
    return str(given)


def spec_of(
    kind: str, args: Mapping[str, Any], task: TaskOptions, wishes: JobOptions, now: datetime, *, tenant: str
) -> JobSpec:
    """Return what is asked of the store for one job."""
    wish: dict[str, Any] = {name: value for name, value in wishes.items() if value is not None}
    fields: dict[str, Any] = {
        "kind": kind,
        "args": args,
        "queue": wish.get("queue", task.queue),
        "tenant": wish.get("tenant", tenant),
        "priority": parse_priority(wish.get("priority", task.priority)),
        "labels": wish.get("labels", {}),
        "needs": task.needs,
        "options": _options(task, wishes, wish),
        **_times(wish, now),
        **_unique(kind, args, wish),
        **_relations(wish),
    }
    return JobSpec(**fields)


def _options(task: TaskOptions, wishes: JobOptions, wish: Mapping[str, Any]) -> Options:
    return Options(
        name=wish.get("name"),
        description=wish.get("description"),
        retry=retry_policy(wishes["retry"]) if "retry" in wishes else task.retry,
        timeout=parse_duration(wish["timeout"], "timeout") if "timeout" in wish else task.timeout,
    )


def _times(wish: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    times: dict[str, Any] = {name: wish[name] for name in ("run_at", "idempotency_key") if name in wish}
    if "delay" in wish:
        times["delay"] = parse_duration(wish["delay"], "delay")
    start_by = wish.get("start_by")
    if start_by is not None:
        if "idempotency_key" in wish and not isinstance(start_by, datetime):
            why = "must be an instant where there is an idempotency_key: a time from now is another one at each repeat"
            raise Invalid("start_by", why)
        times["start_by"] = start_by if isinstance(start_by, datetime) else _from_now(now, start_by)
    return times


def _from_now(now: datetime, wait: object) -> datetime:
    duration = parse_duration(wait, "start_by")
    if duration <= timedelta(0):
        raise Invalid("start_by", "must be a time from now that is not over already")
    if duration >= LAST_INSTANT - now:
        raise Invalid("start_by", f"must lie between the years 2000 and 2200, not {duration_text(duration)} from now")
    return now + duration


def _unique(kind: str, args: Mapping[str, Any], wish: Mapping[str, Any]) -> dict[str, Any]:
    if "unique_key" not in wish and "unique" not in wish:
        return {}
    key = wish.get("unique_key")
    if key is None:
        check_json("args", args, MOST_ARGS_BYTES)  # how large they may be, the store says
        digest = hashlib.blake2b(_encode([kind, args]), digest_size=_DIGEST_BYTES).hexdigest()
        key = f"{kind[:_KIND_IN_KEY]}#{digest}"
    return {"unique_key": key, "unique": wish.get("unique", "reject")}


def _relations(wish: Mapping[str, Any]) -> dict[str, Any]:
    relations: dict[str, Any] = {}
    if "after" in wish:
        relations["after"] = _ids(wish["after"])
    if "on_parent_failure" in wish:
        relations["on_parent_failure"] = wish["on_parent_failure"]
    return relations


def _ids(parents: Any) -> tuple[UUID, ...]:
    each = [parents] if isinstance(parents, UUID) or hasattr(parents, "id") else parents
    if isinstance(each, str) or not isinstance(each, Iterable):
        raise Invalid("after", f"must be a job, its id, or a list of such, not {type(parents).__name__}")
    found: list[Any] = [getattr(parent, "id", parent) for parent in each]
    for parent in found:
        if not isinstance(parent, UUID):
            raise Invalid("after", f"must be jobs or their ids, without {type(parent).__name__}")
    return tuple(dict.fromkeys(found))
