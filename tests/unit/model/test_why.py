"""Reasons are records that can be sent as JSON, and sentences that can be read."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import msgspec
import pytest

from tidewheel.model.gate import Gate, GateMode
from tidewheel.model.job import Job
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Offer
from tidewheel.model.states import FINAL, State
from tidewheel.model.why import (
    COUNTED,
    AfterFirstAttempts,
    BehindGate,
    Ended,
    Facts,
    FullLimit,
    InLine,
    LimitUse,
    Place,
    Reason,
    why,
)
from tidewheel.model.worker import Worker

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def a_job(**fields: Any) -> Job:
    values = {"state": State.QUEUED, "priority": Priority.MEDIUM, "token": 0, "failures": 0, "losses": 0, **fields}
    times = dict.fromkeys(("created_at", "updated_at", "due_at", "run_at"), NOW)
    return Job(id=uuid4(), tenant="default", queue="default", kind="echo", **{**times, **values})


WORKER = Worker(
    id=uuid4(),
    name="w",
    queues=("default",),
    kinds=None,
    offer=Offer(),
    ttl=timedelta(seconds=30),
    alive=True,
    beat=0,
    registered_at=NOW,
    beat_at=NOW,
    lease_until=NOW + timedelta(seconds=30),
)


def facts(job: Job, **fields: Any) -> Facts:
    return Facts(now=NOW, job=job, workers=(WORKER,), **fields)


@pytest.mark.parametrize("state", State)
def test_there_is_always_a_reason_with_a_sentence(state: State) -> None:
    reasons = why(facts(a_job(state=state, finished_at=NOW if state in FINAL else None)))
    assert reasons
    assert all(reason.sentence[0].isupper() and reason.sentence.endswith(".") for reason in reasons)


def test_reasons_travel_as_json() -> None:
    gate = Gate(id=uuid4(), mode=GateMode.HOLD, kind="echo", created_at=NOW)
    limit = LimitUse(key="l", most=1, running=1, holders=(uuid4(),), refill_at=NOW)
    reasons = [
        *why(facts(a_job(gates=(gate,)), limits=(limit,))),
        *why(facts(a_job(), place=Place(3, 2.0))),
        *why(facts(a_job(), place=Place(3, 2.0, 5, 1))),
        *why(facts(a_job(state=State.SUCCEEDED, finished_at=NOW))),
    ]
    assert [type(reason) for reason in reasons] == [BehindGate, FullLimit, InLine, AfterFirstAttempts, Ended]
    assert msgspec.json.decode(msgspec.json.encode(reasons), type=list[Reason]) == reasons


def test_a_limit_that_is_a_matter_of_time_says_when_there_is_room() -> None:
    limit = LimitUse(key="api", most=5, running=0, rate="10/s", refill_at=NOW + timedelta(seconds=3))
    (reason,) = why(facts(a_job(), limits=(limit,)))
    assert reason.sentence == "Limit api is full: 10/s may start; there is room again at 2030-01-01T00:00:03+00:00."


def test_very_many_ahead_are_not_counted_to_the_end() -> None:
    (reason,) = why(facts(a_job(), place=Place(COUNTED, 1.0)))
    assert isinstance(reason, InLine)
    assert reason.starts_at is None
    assert reason.sentence == "10000 or more jobs of its tenant in queue default go first."


def test_one_is_not_many() -> None:
    (reason,) = why(facts(a_job(), place=Place(1)))
    assert reason.sentence == "1 job of its tenant in queue default goes first."


def test_a_very_slow_rate_gives_no_date_that_cannot_be() -> None:
    (reason,) = why(facts(a_job(), place=Place(5_000, 1e-300)))
    assert isinstance(reason, InLine)
    assert reason.starts_at is not None


@pytest.mark.parametrize(
    ("place", "seconds"),
    [
        (
            Place(100, 2.0, first_attempts=1000, retries_ahead=3),
            10.0,
        ),  # the fourth of the retries, and they get a fifth
        (Place(100, 2.0, first_attempts=6, retries_ahead=3), 5.0),  # no first attempts are left before that
        (Place(100, None, first_attempts=6, retries_ahead=3), None),
        (Place(100, 2.0, first_attempts=6, retries_ahead=COUNTED), None),
    ],
)
def test_the_start_of_a_retry_is_estimated_by_its_share(place: Place, seconds: float | None) -> None:
    (reason,) = why(facts(a_job(failures=1), place=place))
    assert isinstance(reason, AfterFirstAttempts)
    assert reason.starts_at == (None if seconds is None else NOW + timedelta(seconds=seconds))
    assert reason.sentence.startswith("It failed before: ")
    assert ("it may start about" in reason.sentence) == (seconds is not None)


def test_a_retry_that_has_waited_for_long_waits_for_no_first_attempts() -> None:
    old = a_job(failures=1, run_at=NOW - timedelta(minutes=6))
    (reason,) = why(facts(old, place=Place(3, 2.0, first_attempts=10)))
    assert isinstance(reason, InLine)
