"""What an endpoint is: everything about it that routes, checks, OpenAPI and docs are made from."""

import asyncio
import enum
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from tidewheel.model.access import Action, Actor
from tidewheel.model.problem import Code
from tidewheel.server.guests import NO_TICKET, Ticket
from tidewheel.server.reading import JSON
from tidewheel.server.service import Service

MOST_BODY: Final = 1024 * 1024
SECONDS: Final = 30.0
ALL_TENANTS: Final = "*"
EVENTS: Final = "text/event-stream"
HTML: Final = "text/html; charset=utf-8"

B_co = TypeVar("B_co", covariant=True)
Q_co = TypeVar("Q_co", covariant=True)


class Stream(Protocol):
    """A body that is sent piece by piece; closed when it was sent or the client is gone."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None: ...


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """No query parameters."""


class RequestHeader(enum.Enum):
    """Headers that mean something to some endpoints."""

    IDEMPOTENCY_KEY = ("Idempotency-Key", "The same key with the same body makes one job, however often it is sent.")
    PREFER = ("Prefer", "`wait=10` waits up to so many seconds for what was asked for, 60 at most.")
    IF_MATCH = ("If-Match", "The `ETag` of what was seen last, or `*`: it is only done if that is still so.")
    LAST_EVENT_ID = ("Last-Event-ID", "The id of the last event that was received; the stream goes on after it.")
    TRACEPARENT = ("traceparent", "The span that submits, as W3C Trace Context writes it; its runs are below it.")
    TRACESTATE = ("tracestate", "What belongs to it.")
    TENANT = (
        "Tide-Tenant",
        "The tenant to work in (percent-encoded), for keys of all tenants; without it `default`. `*` means all.",
    )


class Call(msgspec.Struct, Generic[B_co, Q_co], frozen=True):
    """One request, read and checked."""

    actor: Actor
    tenant: str
    """Whose things exist for this request; there are no others for it."""
    path: Mapping[str, str]
    """What stands in the variable parts of the path."""
    query: Q_co
    body: B_co
    headers: Mapping[str, str]
    recheck: Callable[[], Awaitable[None]]
    """Raises Unauthenticated once the key is not valid any more, for those who are answered for long."""
    gone: "asyncio.Future[None] | None" = None
    """Done once the client is gone; there while someone wants to wait."""

    @property
    def scope(self) -> str | None:
        """Whose jobs it looks at: those of its tenant, or of all (None) for an actor of all who says so."""
        return None if self.actor.everywhere and self.headers.get("tide-tenant") == ALL_TENANTS else self.tenant


class Answer(msgspec.Struct, frozen=True):
    """What an endpoint answers."""

    body: Any = None
    """Becomes JSON; bytes are sent as they are, and None is no body."""
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    media_type: str = JSON
    stream: Stream | None = None
    """What is sent instead of a body."""
    ticket: Ticket = NO_TICKET
    """Who takes the stream; filled in by the application."""

    def taken_by(self, ticket: Ticket) -> "Answer":
        """Return it with the one who takes it."""
        return msgspec.structs.replace(self, ticket=ticket)


Handler = Callable[[Service, Call[Any, Any]], Awaitable[Answer]]


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One method on one path."""

    method: str
    path: str
    """As Starlette writes it; `{id}` is the id of a thing, in any other name a text."""
    name: str
    """The operation, in one word or two: stable, for generated clients."""
    summary: str
    description: str = ""
    group: str
    action: Action | None
    """What its actor must be allowed to do; None for what is open to all, without a key."""
    everywhere: bool = False
    """Whether it is for actors of all tenants alone, for what it changes concerns them all."""
    handler: Handler
    query: Any = NoQuery
    body: Any = None
    """The type of the body; None for none."""
    raw: bool = False
    """Whether the handler takes the body piece by piece, as it comes."""
    body_optional: bool = False
    """Whether no body stands for one with nothing but defaults."""
    media_types: tuple[str, ...] = (JSON,)
    """What the body may come as."""
    headers: tuple[RequestHeader, ...] = ()
    answers: Mapping[int, Any] = field(default_factory=dict)
    """The type of each good answer; None for no body, or a media type for what is not JSON."""
    errors: tuple[Code, ...] = ()
    """What else can go wrong than what can with every request."""
    most_body: int = MOST_BODY
    seconds: float = SECONDS
    """How long it may take, besides the time that a client wants to wait."""

    @property
    def codes(self) -> tuple[Code, ...]:
        """Return all that can go wrong."""
        common: list[Code] = ["bad-parameter", "internal", "unavailable"]
        if self.action is not None:
            common += ["unauthorized", "forbidden", "too-many", "bad-header"]
        if self.body is not None:
            common += ["malformed", "too-slow", "too-large", "unsupported-media-type", "invalid", "overloaded"]
        if self.method != "GET":
            common += ["outcome-unknown", "store-full"]
        if "{" in self.path:
            common += ["not-found"]
        return tuple(dict.fromkeys([*common, *self.errors]))
