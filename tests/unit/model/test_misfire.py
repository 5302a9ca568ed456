from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.misfire import CatchUp, Misfire, Missed, check_misfire, plan_catch_up

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)

offsets = st.lists(st.timedeltas(-10 * DAY, MINUTE), max_size=40)
policies = st.builds(
    Misfire,
    policy=st.sampled_from(["latest", "all", "skip"]),
    most=st.integers(1, 20),
    grace=st.timedeltas(timedelta(0), 12 * DAY),
)


def ago(*minutes: int) -> list[datetime]:
    return [NOON - count * MINUTE for count in minutes]


def run(policy: Misfire, *minutes: int) -> list[int]:
    return [(NOON - at) // MINUTE for at in plan_catch_up(ago(*minutes), policy, NOON).run]


def reasons(policy: Misfire, *minutes: int) -> dict[int, str]:
    missed = plan_catch_up(ago(*minutes), policy, NOON).missed
    return {(NOON - item.fire_at) // MINUTE: item.reason for item in missed}


@pytest.mark.parametrize("policy", ["latest", "all", "skip"])
def test_what_is_late_within_the_grace_runs_under_every_policy(policy: Any) -> None:
    assert run(Misfire(policy=policy), 15, 10, 5, 0) == [15, 10, 5, 0]


def test_skip_leaves_out_what_is_later_than_the_grace() -> None:
    policy = Misfire(policy="skip")

    assert run(policy, 60, 16, 15) == [15]
    assert run(policy, 60, 16) == []
    assert reasons(policy, 60, 16, 15) == {60: "more than 15m late", 16: "more than 15m late"}


def test_a_microsecond_past_the_grace_is_too_late() -> None:
    at = NOON - 15 * MINUTE - timedelta.resolution

    assert plan_catch_up([at], Misfire(policy="skip"), NOON).run == ()


def test_latest_runs_the_newest_one_however_late_it_is() -> None:
    policy = Misfire(policy="latest")

    assert run(policy, 3000, 2000, 1000) == [1000]
    assert reasons(policy, 3000, 1000) == {3000: "more than 15m late, and a later occurrence runs instead"}


def test_latest_runs_nothing_missed_if_something_late_runs() -> None:
    assert run(Misfire(policy="latest"), 3000, 1000, 10, 5) == [10, 5]


def test_all_runs_everything_oldest_first() -> None:
    assert run(Misfire(policy="all"), 5, 3000, 1000) == [3000, 1000, 5]


def test_over_the_limit_the_newest_are_kept() -> None:
    policy = Misfire(policy="all", most=2)

    assert run(policy, 400, 300, 200, 100) == [200, 100]
    assert reasons(policy, 400, 300, 200, 100) == dict.fromkeys((400, 300), "more than 2 occurrences to catch up with")


def test_the_limit_holds_within_the_grace_too_and_each_reason_is_its_own() -> None:
    policy = Misfire(policy="skip", most=1)

    assert run(policy, 60, 10, 5) == [5]
    assert reasons(policy, 60, 10, 5) == {
        60: "more than 15m late",
        10: "more than 1 occurrences to catch up with",
    }


def test_nothing_missed_means_nothing_to_do() -> None:
    assert plan_catch_up([], Misfire(), NOON) == CatchUp()


def test_an_occurrence_of_the_future_counts_as_on_time() -> None:
    assert run(Misfire(policy="skip", grace=timedelta(0)), -1) == [-1]


def test_without_grace_only_what_is_due_this_instant_is_on_time() -> None:
    assert run(Misfire(policy="skip", grace=timedelta(0)), 1, 0) == [0]


def test_equal_instants_count_once() -> None:
    assert run(Misfire(policy="all"), 5, 5, 5) == [5]


@given(offsets, policies)
def test_each_occurrence_either_runs_or_has_a_reason(times: list[timedelta], policy: Misfire) -> None:
    asked = {NOON + offset for offset in times}
    plan = plan_catch_up([NOON + offset for offset in times], policy, NOON)

    assert len(plan.run) + len(plan.missed) == len(asked)
    assert {*plan.run, *(item.fire_at for item in plan.missed)} == asked
    assert all(item.reason for item in plan.missed)


@given(offsets, policies)
def test_no_policy_starts_more_than_its_limit(times: list[timedelta], policy: Misfire) -> None:
    assert len(plan_catch_up([NOON + offset for offset in times], policy, NOON).run) <= policy.most


@given(offsets, policies)
def test_what_runs_is_in_order_and_newer_than_all_that_does_not(times: list[timedelta], policy: Misfire) -> None:
    plan = plan_catch_up([NOON + offset for offset in times], policy, NOON)
    in_order = [*(item.fire_at for item in plan.missed), *plan.run]

    assert all(earlier < later for earlier, later in pairwise(in_order))


@given(offsets.filter(bool), policies)
def test_latest_and_all_never_leave_a_schedule_silent(times: list[timedelta], policy: Misfire) -> None:
    plan = plan_catch_up([NOON + offset for offset in times], policy, NOON)

    assert plan.run or policy.policy == "skip"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"most": 0}, "misfire.most: must be between 1 and 1000, not 0"),
        ({"most": 1001}, "misfire.most: must be between 1 and 1000, not 1001"),
        ({"grace": -MINUTE}, "misfire.grace: must be between 0s and 3650d, not -1m"),
        ({"grace": timedelta.max}, "misfire.grace: must be between 0s and 3650d"),
    ],
)
def test_a_policy_that_makes_no_sense_is_refused(bad: dict[str, Any], message: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_misfire(Misfire(**bad))

    assert str(caught.value).startswith(message)


def test_a_sensible_policy_passes_and_survives_being_stored() -> None:
    policy = check_misfire(Misfire(policy="all", most=7, grace=MINUTE))

    assert msgspec.json.decode(msgspec.json.encode(policy), type=Misfire) == policy
    assert msgspec.json.encode(Misfire()) == b"{}"


def test_a_plan_reads_well() -> None:
    assert plan_catch_up(ago(90, 30), Misfire(), NOON) == CatchUp(
        run=(NOON - 30 * MINUTE,),
        missed=(Missed(fire_at=NOON - 90 * MINUTE, reason="more than 15m late, and a later occurrence runs instead"),),
    )
