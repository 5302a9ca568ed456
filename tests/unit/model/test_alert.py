"""The rules of alerts, told the numbers."""

from datetime import UTC, datetime, timedelta

import pytest

from tidewheel.errors import Invalid
from tidewheel.model.alert import (
    AlertFacts,
    ClockFact,
    DiskFact,
    Finding,
    KindFact,
    LaneFact,
    QueueFact,
    ReplicaFact,
    Rule,
    ScheduleFact,
    SizeFact,
    SnapshotFact,
    TableFact,
    WindowSpec,
    find,
    muted_by,
    parse_rules,
    turn,
)
from tidewheel.model.alert_bounds import USUAL, parse_bounds
from tidewheel.model.log_query import LogBacklog
from tidewheel.model.resources import NO_NEEDS

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
DURATIONS = [name for name in USUAL.__struct_fields__ if isinstance(getattr(USUAL, name), timedelta)]


@pytest.mark.parametrize(
    ("facts", "rules"),
    [
        (AlertFacts(), []),
        (AlertFacts(queues=[QueueFact("q", 9 * MINUTE, 1)]), []),
        (AlertFacts(queues=[QueueFact("q", 10 * MINUTE, 1)]), [Rule.QUEUE_AGE]),
        (AlertFacts(queues=[QueueFact("q", timedelta(seconds=59), 0)]), []),
        (AlertFacts(queues=[QueueFact("q", MINUTE, 0)]), [Rule.NO_WORKER]),
        (AlertFacts(kinds=[KindFact("t", "k", 19, 19)]), []),
        (AlertFacts(kinds=[KindFact("t", "k", 20, 9)]), []),
        (AlertFacts(kinds=[KindFact("t", "k", 20, 10)]), [Rule.FAILURE_RATE]),
        (AlertFacts(kinds=[KindFact("t", "k", 100_000, 100)]), [Rule.DEAD_LETTERS]),
        (AlertFacts(schedules=[ScheduleFact("t", "s", 4 * MINUTE, None)]), []),
        (AlertFacts(schedules=[ScheduleFact("t", "s", 5 * MINUTE, None)]), [Rule.SCHEDULE_LATE]),
        (AlertFacts(schedules=[ScheduleFact("t", "s", None, NOON)]), [Rule.SCHEDULE_MISSED]),
        (AlertFacts(schedules=[ScheduleFact("t", "s", None, None, 4 * MINUTE)]), []),
        (AlertFacts(schedules=[ScheduleFact("t", "s", None, None, 5 * MINUTE)]), [Rule.SCHEDULE_OVERDUE]),
        (AlertFacts(lanes=[LaneFact("t", "q", "k", NO_NEEDS, MINUTE / 2)]), []),
        (AlertFacts(lanes=[LaneFact("t", "q", "k", NO_NEEDS, w * MINUTE) for w in (2, 1)]), [Rule.NO_WORKER_OF_KIND]),
        (AlertFacts(snapshots=[SnapshotFact("pid 1", 29 * MINUTE)]), []),
        (AlertFacts(snapshots=[SnapshotFact("pid 1", 30 * MINUTE)]), [Rule.HELD_SNAPSHOT]),
        (AlertFacts(tables=[TableFact("job", 0, 999_999)]), []),
        (AlertFacts(tables=[TableFact("job", 1_000_000, 1_000_000)]), []),
        (AlertFacts(tables=[TableFact("job", 999_999, 1_000_000)]), [Rule.BLOAT]),
        (AlertFacts(replicas=[ReplicaFact("r", (256 << 20) - 1, 4 * MINUTE)]), []),
        (AlertFacts(replicas=[ReplicaFact("r", 256 << 20, None)]), [Rule.REPLICA_LAG]),
        (AlertFacts(replicas=[ReplicaFact("r", 0, 5 * MINUTE)]), [Rule.REPLICA_LAG]),
        (AlertFacts(disks=[DiskFact("x.db", 512 << 20)]), []),
        (AlertFacts(disks=[DiskFact("x.db", (512 << 20) - 1)]), [Rule.DISK_SPACE]),
        (AlertFacts(sizes=[SizeFact("tide", 1 << 60)]), []),
        (AlertFacts(unindexed=LogBacklog(7, 5 * MINUTE - timedelta(seconds=1))), []),
        (AlertFacts(unindexed=LogBacklog(7, 5 * MINUTE)), [Rule.LOG_INDEX]),
        (AlertFacts(unindexed=LogBacklog(0, timedelta(0))), []),
        (AlertFacts(clocks=[ClockFact("w", timedelta(seconds=4))]), []),
        (AlertFacts(clocks=[ClockFact("w", timedelta(seconds=-5))]), [Rule.CLOCK]),
        (AlertFacts(clocks=[ClockFact("w", -MINUTE), ClockFact("w", 2 * MINUTE)]), [Rule.CLOCK]),
    ],
)
def test_each_rule_finds_what_it_is_for_from_its_bound_on(facts: AlertFacts, rules: list[Rule]) -> None:
    assert [finding.rule for finding in find(facts)] == rules


def test_bounds_are_set_by_name() -> None:
    bounds = parse_bounds(["queue_age=20m", "clock_offset=500ms", "free_disk=2GiB", "failure_rate=0.9", "dead_rows=7"])
    assert (bounds.queue_age, bounds.clock_offset) == (20 * MINUTE, timedelta(milliseconds=500))
    assert (bounds.free_disk, bounds.failure_rate, bounds.dead_rows) == (2 << 30, 0.9, 7)
    assert bounds.no_worker == MINUTE
    facts = AlertFacts(queues=[QueueFact("q", 19 * MINUTE, 1)])
    assert (find(facts, bounds), len(find(facts))) == ([], 1)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("queue_age", "alert: must be one of schedule_late"),
        ("queue=1m", "alert: must be one of schedule_late"),
        ("queue_age=long", "alert: queue_age: must be a duration"),
        ("dead_rows=-1", "alert: dead_rows must be a number above 0"),
        ("failure_rate=x", "alert: failure_rate must be a number above 0"),
        ("free_disk=much", "alert: free_disk"),
        ("failure_rate=50", "alert: failure_rate must be a number above 0 and up to 1, not '50'"),
        ("failure_rate=nan", "alert: failure_rate must be a number above 0 and up to 1, not 'nan'"),
        ("failures_of=1000000001", "alert: failures_of must be a number above 0 and up to 1000000000"),
        ("dead_letters=9999999999", "alert: dead_letters must be a number above 0 and up to 1000000000"),
        ("dead_rows=99999999999999", "alert: dead_rows must be a number above 0 and up to 1000000000"),
        ("free_disk=0", "alert: free_disk must be above 0 and up to 1024TiB, not '0'"),
        ("replica_behind=2000TiB", "alert: replica_behind must be above 0 and up to 1024TiB, not '2000TiB'"),
        *((f"{name}=366d", f"alert: {name}: must be between 0s and 365d, not 366d") for name in DURATIONS),
    ],
)
def test_bounds_that_nobody_can_mean_or_reach_are_refused(text: str, why: str) -> None:
    with pytest.raises(Invalid, match=why):
        parse_bounds([text])


def test_a_database_is_told_of_with_figures_from_the_size_on_that_was_set() -> None:
    bounds = parse_bounds(["database_size=10GiB"])
    assert find(AlertFacts(sizes=[SizeFact("tide", (10 << 30) - 1)]), bounds) == []
    (finding,) = find(AlertFacts(sizes=[SizeFact("tide", 11 << 30)]), bounds)
    told = "database tide has 11264 MiB, its bound is 10240 MiB"
    assert (finding.rule, finding.subject, finding.told) == (Rule.DATABASE_SIZE, "tide", told)


def test_a_held_snapshot_is_told_with_its_process_and_age() -> None:
    (finding,) = find(AlertFacts(snapshots=[SnapshotFact("pid 4711", timedelta(hours=2, seconds=3))]))
    assert "process 4711" in finding.told
    assert "2h3s" in finding.told


def test_what_is_new_fires_what_stands_stays_and_what_is_gone_is_over() -> None:
    stays, new = Finding(Rule.QUEUE_AGE, "a", "x"), Finding(Rule.QUEUE_AGE, "b", "x")
    turns = turn([stays.key, "queue.age::gone"], [stays, new], ())
    assert turns == ([new], ["queue.age::gone"])


def test_muted_rules_stay_as_they_are() -> None:
    new = Finding(Rule.QUEUE_AGE, "b", "x")
    assert turn(["queue.age::gone", "queue.no_worker::gone"], [new], {Rule.QUEUE_AGE}) == (
        [],
        ["queue.no_worker::gone"],
    )


def test_a_window_mutes_from_its_start_until_its_end() -> None:
    windows = [WindowSpec(start=NOON, end=NOON + MINUTE, rules=frozenset([Rule.QUEUE_AGE]))]
    at = [NOON - MINUTE, NOON, NOON + MINUTE]
    assert [muted_by(windows, now) for now in at] == [frozenset(), {Rule.QUEUE_AGE}, frozenset()]
    assert muted_by([WindowSpec(start=NOON, end=NOON + MINUTE)], NOON) == frozenset(Rule)


def test_a_rule_that_is_none_is_refused_by_name() -> None:
    with pytest.raises(Invalid, match=r"rules: must be among .* not 'x'"):
        parse_rules(["x"])
