"""Which jobs a list shows and a bulk action means: one set of conditions, as query parameters and as JSON."""

from typing import Annotated, Any
from uuid import UUID

import msgspec
from msgspec import Meta

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_instant, check_key, check_name, check_text
from tidewheel.model.job_words import MAX_TEXT, read_words
from tidewheel.model.states import State
from tidewheel.server.job_request import Instant, Name
from tidewheel.store.base import JobFilter

MOST_PER_PAGE = 200
MOST_PER_CALL = 10_000


class Conditions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of them must hold."""

    state: Annotated[str, Meta(max_length=200, description="One state or several, separated by commas.")] | None = None
    kind: Name | None = None
    queue: Name | None = None
    schedule_id: UUID | None = None
    label: Annotated[str, Meta(max_length=401, description="`name=value`")] | None = None
    created_after: Instant | None = None
    """Made at this instant or later."""
    created_before: Instant | None = None
    error: Annotated[str, Meta(min_length=1, max_length=200)] | None = None
    """A part of the message of its error; only jobs that ended without success have one."""
    q: Annotated[str, Meta(min_length=1, max_length=MAX_TEXT)] | None = None
    """Words or `"a phrase"`, all of which stand in its kind, name, description, labels (`name=value`) or the message of
    its error, as parts of others, too; or its id. A page looks at a bounded number of jobs; `next_cursor` leads on."""


class JobQuery(Conditions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs to list, and how many."""

    limit: Annotated[int, Meta(ge=1, le=MOST_PER_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    """The `next_cursor` of the page before."""
    after: UUID | None = None
    """Begin after the job with this id instead."""
    full: bool = False
    """With arguments and results, which may be large."""


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs an action is for."""

    where: Conditions
    """At least one condition."""
    dry_run: bool = False
    """Only count them."""
    limit: Annotated[int, Meta(ge=1, le=MOST_PER_CALL)] = 1_000
    """How many at most; `more` tells whether there are others."""
    reason: Annotated[str, Meta(max_length=1000)] = ""


def filter_of(where: Conditions, tenant: str | None) -> JobFilter:
    """Return the filter of the store. Raises Invalid."""
    return JobFilter(
        tenant=tenant,
        states=None if where.state is None else states_of(where.state),
        kind=None if where.kind is None else check_name("kind", where.kind),
        queue=None if where.queue is None else check_name("queue", where.queue),
        schedule_id=where.schedule_id,
        label=None if where.label is None else _label_of(where.label),
        created_from=None if where.created_after is None else check_instant("created_after", where.created_after),
        created_before=None if where.created_before is None else check_instant("created_before", where.created_before),
        error=None if where.error is None else check_text("error", where.error, 200),
        text=None if where.q is None else _text_of(where.q),
    )


def states_of(text: str) -> frozenset[State]:
    """Return the states that a text such as `queued,running` names."""
    found = set()
    for word in text.split(","):
        try:
            found.add(State(word.strip()))
        except ValueError:
            raise Invalid("state", f"must be one or several of {', '.join(State)}, not {word[:40]!r}") from None
    return frozenset(found)


def scope_of(path: str, where: Any) -> str:
    """Name a list with all of its conditions, for its cursors."""
    plain = {
        name: value
        for name, value in msgspec.to_builtins(where).items()
        if name not in ("limit", "cursor", "after", "full")
    }
    return path + msgspec.json.encode(plain, order="sorted").decode()


def _text_of(text: str) -> str:
    read_words(text, "q")
    return text


def _label_of(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise Invalid("label", "must be name=value")
    return check_name("label", name), check_key("label", value) if value else ""
