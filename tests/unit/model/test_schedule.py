from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from tidewheel.errors import Invalid
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Needs
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.schedule import Fate, Occurrence, Schedule, check_schedule

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)


def a_schedule(**changes: Any) -> Schedule:
    plain = Schedule(
        id=UUID(int=1),
        name="nightly-report",
        kind="reports.build",
        trigger=msgspec.Raw(b'{"cron":"0 3 * * *"}'),
        created_at=NOON,
        updated_at=NOON,
    )
    return msgspec.structs.replace(plain, **changes)


def test_a_plain_schedule_runs_one_job_at_a_time_and_catches_up_with_the_latest() -> None:
    schedule = check_schedule(a_schedule())

    assert (schedule.overlap, schedule.max_concurrency) == (Overlap.SKIP, None)
    assert schedule.misfire == Misfire(policy="latest", grace=timedelta(minutes=15))
    assert (schedule.paused, schedule.version, schedule.next_fire_at) == (False, 1, None)
    assert (schedule.queue, schedule.tenant, schedule.priority) == ("default", "default", Priority.MEDIUM)


def test_a_schedule_survives_being_stored_with_its_trigger_untouched() -> None:
    schedule = a_schedule(
        description="all\nof it",
        args={"day": 1},
        labels={"team": "data"},
        priority=Priority.LOW,
        needs=Needs(resources={"cpu": 500}),
        limit_keys=("warehouse",),
        trigger=msgspec.Raw(b'{"kind":"interval", "every":"5m"}'),
        misfire=Misfire(policy="all", most=3),
        overlap=Overlap.CANCEL_PREVIOUS,
        max_concurrency=2,
        paused=True,
        next_fire_at=NOON,
    )

    again = msgspec.json.decode(msgspec.json.encode(schedule), type=Schedule)

    assert again == schedule
    assert bytes(again.trigger) == b'{"kind":"interval", "every":"5m"}'


def test_an_unknown_field_is_not_read() -> None:
    text = msgspec.json.encode(a_schedule())[:-1] + b',"cron":"* * * * *"}'

    with pytest.raises(msgspec.ValidationError, match="unknown field `cron`"):
        msgspec.json.decode(text, type=Schedule)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tenant": ""}, "tenant: must not be empty"),
        ({"name": "a b"}, "name: must consist of"),
        ({"kind": "-x"}, "kind: must begin with"),
        ({"queue": "q\0"}, "queue: must not contain the NUL"),
        ({"description": "x" * 2001}, "description: must have at most 2000"),
        ({"args": {"a": float("nan")}}, "args: at ['a']: must not hold nan"),
        ({"labels": {"a": "\ud800"}}, "labels: the value of a must not contain half"),
        ({"needs": Needs(resources={"cpu": -1})}, "needs.resources: cpu must be"),
        ({"retry": RetryPolicy(max_attempts=0)}, "retry.max_attempts: must be between"),
        ({"timeout": timedelta(0)}, "timeout: must be between 1ms"),
        ({"limit_keys": ("ok", "")}, "limit_keys: must not be empty"),
        ({"trigger": msgspec.Raw(b"{cron")}, "trigger: is not JSON"),
        ({"trigger": msgspec.Raw(b"")}, "trigger: is not JSON"),
        ({"misfire": Misfire(most=0)}, "misfire.most: must be between"),
        ({"max_concurrency": 0}, "max_concurrency: must be between"),
    ],
)
def test_each_bad_part_of_a_schedule_is_refused_by_name(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_schedule(a_schedule(**changes))

    assert str(caught.value).startswith(message)


def test_an_occurrence_survives_being_stored_with_a_job_or_a_reason() -> None:
    made = Occurrence(schedule_id=UUID(int=1), fire_at=NOON, job_id=UUID(int=2), outcome=Fate.MADE)
    missed = Occurrence(schedule_id=UUID(int=1), fire_at=NOON, outcome=Fate.MISSED, reason="more than 15m late")

    for occurrence in (made, missed):
        assert msgspec.json.decode(msgspec.json.encode(occurrence), type=Occurrence) == occurrence


def test_the_stored_words_of_outcomes_never_change() -> None:
    assert [fate.value for fate in Fate] == ["made", "missed", "skipped"]
