"""What a worker and a server say to each other over HTTP; `docs/reference/worker-protocol.md` tells the whole of it.

Times are in UTC, durations in seconds.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Literal
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Raw

from tidewheel.model.access import Role
from tidewheel.model.limit import LimitRule
from tidewheel.model.log import LogStream
from tidewheel.model.outcome import Failure, Usage, Verdict
from tidewheel.model.resources import NO_NEEDS, Needs, Offer
from tidewheel.model.schedule import Declared

MOST_RUNS: Final = 1_000
"""How many jobs one claim takes, and how many ends, notes and lines go into one request."""
MOST_NAMES: Final = 1_000
"""How many secrets can be asked for at once."""
Instant = Annotated[datetime, Meta(tz=True)]
Seconds = Annotated[float, Meta(ge=0, le=100 * 365 * 86_400)]
Token = Annotated[int, Meta(ge=0, le=2**63 - 1)]
Amount = Annotated[int, Meta(ge=0)]
Name = Annotated[str, Meta(min_length=1, max_length=200)]
PriorityName = Literal["high", "medium", "low"]
ReportedCause = Literal["returned", "failed", "gave_up", "snoozed", "released", "crashed", "stopped", "expired"]

# What a worker says


class Registration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker says of itself."""

    name: Name
    """For people: host and role."""
    queues: Annotated[tuple[Name, ...], Meta(min_length=1, max_length=1000)] = ("default",)
    kinds: Annotated[list[Name], Meta(max_length=10_000)] | None = None
    """The kinds that it knows; null stands for all."""
    offer: Offer = Offer()
    """What it has in all: resources, and labels that jobs may ask for."""
    ttl: Annotated[float, Meta(ge=2, le=3600)] = 30.0
    """Seconds of silence after which its jobs go elsewhere."""
    tenant: Name | None = None
    """Whose jobs it gets, for keys of all tenants; null stands for all that the key may see."""


class Claim(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker is ready to start now; what is left out is as it was registered."""

    limit: Annotated[int, Meta(ge=1, le=MOST_RUNS)] = 1
    """How many jobs; no more than can be started at once."""
    queues: Annotated[list[Name], Meta(max_length=1000)] | None = None
    kinds: Annotated[list[Name], Meta(max_length=10_000)] | None = None
    free: Mapping[Name, Amount] | None = None
    """Resources that are not in use; null stands for no bound."""
    labels: Mapping[Name, str] | None = None
    at_least: PriorityName | None = None
    """Only jobs that are at least this urgent."""
    needs: Needs | None = None
    """Only jobs with just these needs."""
    tenant: Name | None = None
    """Only jobs of this tenant, for a worker that serves all."""


class UnfitQuestion(Claim, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A claim, and what the worker has in all."""

    total: Mapping[Name, Amount]


class SecretsQuestion(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A run that goes on, and the secrets that its worker does not have itself."""

    job_id: UUID
    token: Token
    names: Annotated[list[Name], Meta(max_length=MOST_NAMES)]


class RunSecrets(msgspec.Struct, frozen=True, kw_only=True):
    """Those of the secrets that are stored, and that the job itself names."""

    secrets: dict[str, str]

    def __repr__(self) -> str:
        """Leave out what must not be seen."""
        return f"RunSecrets({', '.join(self.secrets)})"


class End(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a run ended."""

    job_id: UUID
    token: Token
    cause: ReportedCause
    """`returned` a result · `failed`, and may try again · `gave_up`: failed for good · `snoozed`: wants to run later,
    no failure · `released`: given back, no failure · `crashed`: ended abnormally · `stopped` as it was asked to ·
    `expired`: came too late to start."""
    result: Any = UNSET
    result_text: str | None = None
    """The result as JSON text, for those who have it so."""
    result_location: Annotated[str, Meta(max_length=2000)] | None = None
    error: Failure | None = None
    delay: Seconds | None = None
    """How long to wait before the next try. Null for `failed` and `crashed` leaves it to the job's own retry policy
    when and whether there is one."""
    started_at: Instant | None = None
    """When the body began; null stands for the time of the claim."""
    usage: Usage | None = None


class Ends(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How runs of a worker ended."""

    ends: Annotated[list[End], Meta(max_length=MOST_RUNS)]


class Note(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a run says of itself while it goes on; what is left out stays as it was."""

    job_id: UUID
    token: Token
    progress: Annotated[float, Meta(ge=0, le=1)] | None = None
    message: str = ""
    checkpoint: Any = UNSET
    """From where another attempt could go on; `/v1/jobs/{id}/checkpoint` gives it back."""
    checkpoint_text: str | None = None
    """The same as JSON text, for those who have it so."""
    paused: bool | None = None


class Notes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What runs of a worker say."""

    notes: Annotated[list[Note], Meta(max_length=MOST_RUNS)]


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A line that a run wrote. One that comes again, by job, token and number, is harmless."""

    job_id: UUID
    token: Token
    number: Token
    """Rises within a run."""
    text: str
    at: Instant | None = None
    """When it was written; null stands for now."""
    stream: LogStream = "log"
    level: str | None = None


class Lines(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What runs of a worker wrote."""

    lines: Annotated[list[Line], Meta(max_length=MOST_RUNS)]


class Declaration(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the code of an app declares with its tasks."""

    app: Name | None = None
    """Null declares no schedules; what an app declared before and does no more is marked as orphaned."""
    schedules: Annotated[list[str], Meta(max_length=10_000)] = []
    """Each as JSON text, as tasks describe them."""
    rules: Annotated[list[LimitRule], Meta(max_length=10_000)] = []
    """Limits of tasks; those that were set by hand stay."""


# What a server answers


class Registered(msgspec.Struct, frozen=True, kw_only=True):
    """A worker that holds a lease from now on."""

    id: UUID
    """Stands in the path of all that it says."""
    name: str
    queues: list[str]
    kinds: list[str] | None
    offer: Offer
    tenant: str | None
    """Whose jobs it gets; null stands for all."""
    ttl: float
    beat_every: float
    """Seconds between two heartbeats, at most."""
    alive: bool
    beat: int
    registered_at: Instant
    beat_at: Instant
    lease_until: Instant
    ended_at: Instant | None


class RunDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the hands of a worker. Job and token go with all that is said of it.

    What is nested comes last, for the sake of workers that have no JSON parser.
    """

    job_id: UUID
    token: int
    lane: int
    kind: str
    queue: str
    tenant: str
    priority: PriorityName
    timeout: float
    """Seconds that this attempt may take; the worker sees to it."""
    attempt: int
    run_at: Instant
    due_at: Instant
    start_by: Instant | None
    """By when it must have started."""
    claimed_at: Instant
    failures: int
    losses: int
    cancelling: bool
    """Whether it was asked to stop already."""
    args: Raw
    labels: Raw
    """An object, or null."""
    options: Raw
    """Name, description and retry policy, as far as they differ from the defaults; or null."""
    needs: Needs = NO_NEEDS
    limit_keys: list[str] = []


class ClaimAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs to start, in this order."""

    runs: list[RunDocument]
    next_due: Instant | None
    """When it is worth while to look again, as far as is known."""
    now: Instant | None
    """The server's time."""


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker has, as far as the store knows."""

    runs: list[RunDocument]


class RunKey(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a job."""

    job_id: UUID
    token: int


class HeartbeatRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a worker may say with its heartbeat."""

    clock: Instant | None = None
    """What its clock says; an alert fires if that is far off the database's."""


class Heartbeat(msgspec.Struct, frozen=True, kw_only=True):
    """A lease that was renewed."""

    beat: int
    lease_until: Instant
    stop: list[RunKey]
    """Runs that were asked to stop: end them, and say `stopped`."""


class StopList(msgspec.Struct, frozen=True, kw_only=True):
    """Runs that were asked to stop."""

    stop: list[RunKey]


class EndAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of an end."""

    job_id: UUID
    token: int
    verdict: Verdict
    """`accepted` · `repeated`: had been stored before · `stale`: the run is no longer this worker's, and nothing was
    changed · `unstorable`: the job is dead with that reason."""


class EndsAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of ends, in the order in which they were sent."""

    ends: list[EndAnswer]


class NotesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What became of notes."""

    stale: list[RunKey]
    """Runs that are no longer this worker's: nothing was changed for them."""


class LinesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Lines that are stored."""

    stored: int
    """Fewer than were sent if the run has written more than is kept."""


class Me(msgspec.Struct, frozen=True, kw_only=True):
    """Who someone is."""

    role: Role
    tenant: str | None
    """Whose things exist for them; null stands for all."""
    name: str
    epoch: int
    """Rises when the database fails over or is restored; with it `token` is a fencing token for foreign systems."""


class DeclarationAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a declaration changed."""

    rules_changed: int
    schedules: Declared


class GivenBack(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the runs of a worker that ended."""

    requeued: int
    cancelled: int


class UnfitAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What the oldest job needs that fits the whole worker, but not what is free; null if there is none."""

    needs: Needs | None
    waited: float
    """Seconds since it was due."""


class CheckpointDocument(msgspec.Struct, frozen=True, kw_only=True):
    """The last checkpoint of a job."""

    checkpoint: Raw
    """Null if none was kept."""
