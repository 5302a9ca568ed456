"""The jobs that are measured: about 80 bytes of arguments, two labels, a tenant, one of three priorities."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple

from tidewheel.model.job import JobSpec, Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.store.base import JobStore

RESULT: Final = '{"sent":true,"n":17}'
PRIORITIES: Final = (Priority.HIGH, *[Priority.MEDIUM] * 6, *[Priority.LOW] * 3)
"""In ten jobs one is urgent, six are ordinary and three can wait."""


class LaneName(NamedTuple):
    kind: str
    tenant: str


Make = Callable[[int, int], list[JobSpec]]
"""Makes so many specs, beginning with a number."""

ONE_LANE: Final = (LaneName("mail.send", "acme"),)


def many_lanes(kinds: int, tenants: int) -> list[LaneName]:
    return [LaneName(f"kind.{kind}", f"tenant-{tenant}") for kind in range(kinds) for tenant in range(tenants)]


def specs(count: int, first: int = 0, lanes: Sequence[LaneName] = ONE_LANE) -> list[JobSpec]:
    """Return specs that go round the lanes; each lane gets all priorities in turn."""
    return [_spec(lanes[number % len(lanes)], number, len(lanes)) for number in range(first, first + count)]


def in_lanes(lanes: Sequence[LaneName]) -> Make:
    return partial(specs, lanes=lanes)


async def fill(store: JobStore, count: int, batch: int, make: Make = specs) -> None:
    """Submit so many jobs, a batch at a time."""
    for first in range(0, count, batch):
        await store.submit(make(min(batch, count - first), first))


def _spec(lane: LaneName, number: int, lanes: int) -> JobSpec:
    return JobSpec(
        kind=lane.kind,
        tenant=lane.tenant,
        priority=PRIORITIES[(number // lanes + number) % len(PRIORITIES)],
        args={"to": f"user{number:07}@example.com", "template": "welcome", "attempt": "first"},
        labels={"team": "growth", "region": "eu-west"},
    )


def outcomes(runs: Sequence[Run]) -> list[Outcome]:
    return [Outcome(run.job_id, run.token, Cause.RETURNED, RESULT) for run in runs]
