"""Schedules through the SDK: made at run time, or declared with their tasks."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tidewheel import App, Invalid, NotFound, Priority, State
from tidewheel.errors import NameTaken, StaleVersion
from tidewheel.keeper import Occurrences
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Fate, ScheduleSpec
from tidewheel.sdk.task import Task
from tidewheel.store.base import Store
from tidewheel.store.scheduling import SHARDS
from tidewheel.testing import FakeClock, in_memory
from tidewheel.testing.memory import InMemory
from tidewheel.triggers import Cron, Interval, Once
from tidewheel.triggers.planning import trigger_of

NOON = datetime(2030, 3, 30, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.fixture
def report(app: App) -> Task[[str], None]:
    @app.task(name="report", queue="night", priority="low", timeout="90s", retry=4, concurrency=3)
    def report(region: str = "eu") -> None: ...

    return report


def do_duties(app: App, test: InMemory) -> int:
    """Do what keepers would do now."""

    async def do(store: Store) -> int:
        clock = FakeClock(test.clock.now())
        return sum([await Occurrences(store, clock, shard).run_once() for shard in range(SHARDS)])

    return app.run(app.use(do))


def test_a_schedule_has_the_options_of_its_task_and_of_its_call(app: App, report: Task[[str], None]) -> None:
    made = app.schedules.create(
        report.using(labels={"team": "data"}).s("us"),
        name="us-report",
        description="for Ada",
        cron="30 2 * * *",
        timezone="America/New_York",
        end=datetime(2100, 1, 1, tzinfo=UTC),
        max_occurrences=9,
        jitter="5s",
        spread=timedelta(minutes=1),
        overlap="queue",
        max_concurrency=2,
        misfire="all",
        grace="1h",
    )

    assert (made.kind, made.queue, made.priority, made.args) == ("report", "night", Priority.LOW, {"region": "us"})
    assert (made.timeout, made.retry.max_attempts, made.labels) == (timedelta(seconds=90), 4, {"team": "data"})
    assert made.limit_keys == ("task:report",)
    assert (made.name, made.description, made.tenant) == ("us-report", "for Ada", "default")
    assert (made.overlap, made.max_concurrency) == (Overlap.QUEUE, 2)
    assert made.misfire == Misfire(policy="all", grace=timedelta(hours=1))
    trigger = trigger_of(made)
    assert trigger.rule == Cron("30 2 * * *", "America/New_York")
    assert (trigger.max_occurrences, trigger.jitter, trigger.spread) == (9, timedelta(seconds=5), MINUTE)
    assert app.schedules.get("us-report") == app.schedules.get(made.id) == made
    with pytest.raises(NameTaken, match="us-report"):
        app.schedules.create(report, name="us-report", every="1h")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "cron: or every or at must be given"),
        ({"cron": "* * * * *", "every": "1m"}, "every: cannot be given together with cron"),
        ({"every": "500ms"}, "every: "),
        ({"every": 0.5}, "every: "),
        ({"cron": "0 0 31 2 *"}, "cron: never fires"),
        ({"cron": "* * * * * *"}, "cron: "),
        ({"cron": 5}, "cron: must be text"),
        ({"cron": "0 5 * * *", "timezone": "Mars/Olympus"}, "timezone: unknown time zone 'Mars/Olympus'"),
        ({"every": "1m", "timezone": "Mars/Olympus"}, "timezone: unknown"),
        ({"at": datetime(2020, 1, 1, tzinfo=UTC)}, "trigger: never fires after"),
        ({"every": "1m", "end": datetime(2020, 1, 1, tzinfo=UTC)}, "trigger: never fires"),
        (
            {"every": "1m", "start": NOON, "end": NOON - MINUTE},
            "end: is before start",
        ),
        ({"every": "1m", "overlap": "maybe"}, "overlap: must be one of skip, queue, allow, cancel_previous"),
        ({"every": "1m", "misfire": "maybe"}, "misfire: must be latest, all, skip"),
        ({"every": "1m", "max_concurrency": 0}, "max_concurrency: "),
        ({"every": "1m", "max_concurrency": "3"}, "max_concurrency: must be a whole number, not str"),
        ({"every": "1m", "max_concurrency": True}, "max_concurrency: must be a whole number, not bool"),
        ({"every": "1m", "misfire": Misfire(most="x")}, "misfire.most: must be a whole number"),  # type: ignore[arg-type]
        ({"every": "1m", "misfire": Misfire(policy="x")}, "misfire.policy: must be one of"),  # type: ignore[arg-type]
        ({"every": "1m", "start": "now"}, "start: is not a date and time"),
        ({"every": "1m", "anchor": "now"}, "anchor: is not a date and time"),
        ({"every": "1m", "timezone": 7}, "timezone: is not a text"),
        ({"every": "1m", "name": "a b"}, "name: "),
        ({"every": "1m", "colour": "red"}, "colour: is no option of a schedule; there are anchor, at, cron"),
    ],
)
def test_a_bad_schedule_is_refused_with_the_field_and_the_reason(
    app: App, report: Task[[str], None], options: Any, message: str
) -> None:
    with pytest.raises(Invalid) as refused:
        app.schedules.create(report, **options)

    assert str(refused.value).startswith(message)
    assert app.schedules.list() == []


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda found: found.preview("report", "3"), "count: must be a whole number, not str"),
        (lambda found: found.list(limit="x"), "limit: must be a whole number, not str"),
        (lambda found: found.list(after=7), "which: must be a schedule, its id or its name, not int"),
        (lambda found: found.occurrences("report", limit=None), "limit: must be a whole number, not nothing"),
        (lambda found: found.occurrences("report", before=datetime(2030, 1, 1)), "before: must have a time zone"),  # noqa: DTZ001
        (lambda found: found.occurrences("report", before="now"), "before: must be a date and time, not str"),
        (lambda found: found.between("report", "now", NOON), "since: is not a date and time"),
        (lambda found: found.get(None), "which: must be a schedule, its id or its name, not NoneType"),
        (lambda found: found.pause(7), "which: must be a schedule, its id or its name, not int"),
    ],
)
def test_a_bad_question_is_refused_with_the_field_and_the_reason(
    app: App, report: Task[[str], None], question: Any, message: str
) -> None:
    app.schedules.create(report, every="1h")

    with pytest.raises(Invalid) as refused:
        question(app.schedules)

    assert str(refused.value) == message


def test_what_only_a_single_job_can_have_is_refused(app: App, report: Task[[str], None]) -> None:
    for options in ({"delay": 5}, {"unique_key": "x"}, {"idempotency_key": "x"}, {"start_by": "5m"}):
        with pytest.raises(Invalid, match="is for single jobs"):
            app.schedules.create(report.using(**options), every="1m")
    with pytest.raises(Invalid, match="call: must be a task or a call"):
        app.schedules.create("report", every="1m")  # type: ignore[arg-type]


def test_a_change_keeps_what_is_not_given(app: App, report: Task[[str], None]) -> None:
    made = app.schedules.create(report.s("us"), cron="0 5 * * *", timezone="Europe/Berlin", overlap="allow")

    changed = app.schedules.change(made, grace="5m", jitter="1s", timezone="Asia/Tokyo")
    assert (changed.version, changed.overlap, changed.args) == (2, Overlap.ALLOW, {"region": "us"})
    assert changed.misfire.grace == 5 * MINUTE
    assert trigger_of(changed).rule == Cron("0 5 * * *", "Asia/Tokyo")
    with pytest.raises(StaleVersion, match="at version 2 by now, not 1"):
        app.schedules.change(made, every="1h")
    with pytest.raises(StaleVersion):
        app.schedules.change("report", version=1, every="1h")
    changed = app.schedules.change("report", report.s("cn"), every="1h", overlap="skip")
    assert (changed.version, changed.args, changed.overlap) == (3, {"region": "cn"}, Overlap.SKIP)
    assert trigger_of(changed).rule == Interval(timedelta(hours=1))
    assert trigger_of(changed).jitter == timedelta(0)
    with pytest.raises(Invalid, match="timezone: is for cron"):
        app.schedules.change("report", timezone="UTC")
    assert app.schedules.change("report", name="other").name == "other"


def test_a_schedule_is_paused_resumed_triggered_and_deleted(app: App, report: Task[[str], None]) -> None:
    with in_memory(app, start=NOON) as test:
        made = app.schedules.create(report, every="1m")
        assert made.next_fire_at == NOON + MINUTE
        assert app.schedules.pause("report").paused
        job = app.schedules.trigger(made)
        assert job.state() is State.QUEUED
        assert not app.schedules.resume(made.id).paused
        test.advance("31s")
        assert do_duties(app, test) == 0, "when time passes they are done by the way"
        occurrences = app.schedules.occurrences(made)
        assert [(each.fire_at, each.source) for each in occurrences] == [(NOON + MINUTE, "planned"), (NOON, "manual")]
        assert [ran.kind for ran in test.run_inline()] == ["report"]
        app.schedules.delete(made)
        with pytest.raises(NotFound, match="no schedule report"):
            app.schedules.get("report")
        assert {job.state for job in test.enqueued()} == set()


async def test_all_of_it_is_there_for_async_code(app: App) -> None:
    @app.task(name="tidy")
    async def tidy() -> None: ...

    made = await app.schedules.acreate(tidy, every="1h")
    assert await app.schedules.aget("tidy") == made
    assert await app.schedules.alist() == [made]
    assert await app.schedules.alist(after=made) == []
    assert (await app.schedules.achange("tidy", every="2h")).version == 2
    assert (await app.schedules.apause("tidy")).paused
    assert not (await app.schedules.aresume("tidy")).paused
    assert await (await app.schedules.atrigger("tidy")).astate() is State.QUEUED
    assert len(await app.schedules.aoccurrences("tidy")) == 1
    assert len(await app.schedules.apreview("tidy", 3)) == 3
    since = datetime(2024, 1, 1, tzinfo=UTC)
    assert len(await app.schedules.abetween("tidy", since, since + timedelta(days=1))) == 12
    told = await app.schedules.abackfill("tidy", since, since + timedelta(days=1), dry_run=True)
    assert len(told) == 12
    await app.schedules.adelete("tidy")


# Looking ahead, and back


def test_a_preview_marks_the_days_on_which_clocks_are_set(app: App, report: Task[[str], None]) -> None:
    with in_memory(app, start=NOON):
        app.schedules.create(report, cron="30 2 * * *", timezone="Europe/Berlin")
        shown = app.schedules.preview("report", 3)
        assert [each.local.isoformat() for each in shown] == [
            "2030-03-31T03:00:00+02:00",
            "2030-04-01T02:30:00+02:00",
            "2030-04-02T02:30:00+02:00",
        ]
        assert [each.change for each in shown] == ["gap", None, None]
        assert shown[0].note == "clocks go forward by 1h: 02:00 to 03:00 does not exist; runs right after it"
        october = app.schedules.between(
            "report", datetime(2030, 10, 26, tzinfo=UTC), datetime(2030, 10, 28, tzinfo=UTC)
        )
        assert [each.change for each in october] == [None, "fold"]
        assert october[1].note == "clocks go back by 1h: 02:00 to 03:00 comes twice; this is the first time"
        app.schedules.change("report", cron="*/30 * * * *", timezone="Europe/Berlin")
        notes = [
            each.note
            for each in app.schedules.between(
                "report", datetime(2030, 10, 26, 23, 59, tzinfo=UTC), datetime(2030, 10, 27, 1, 59, tzinfo=UTC)
            )
        ]
        assert ["first" in note for note in notes] == [True, True, False, False]
        assert ["second" in note for note in notes] == [False, False, True, True]


def test_a_preview_counts_what_was_written_ahead_once(app: App, report: Task[[str], None]) -> None:
    with in_memory(app, start=NOON) as test:
        app.schedules.create(report, every="20s", max_occurrences=5)
        expected = [NOON + n * timedelta(seconds=20) for n in range(1, 6)]
        assert [each.fire_at for each in app.schedules.preview("report")] == expected
        do_duties(app, test)
        assert [each.fire_at for each in app.schedules.preview("report")] == expected
        test.advance("50s")
        assert [each.fire_at for each in app.schedules.preview("report")] == expected[2:]
        for count in (0, 1001):
            with pytest.raises(Invalid, match="count"):
                app.schedules.preview("report", count)


def test_a_backfill_is_tried_dry_then_done_and_done_once(app: App, report: Task[[str], None]) -> None:
    with in_memory(app, start=NOON) as test:
        app.schedules.create(report, cron="0 5 * * *")
        since, until = NOON - timedelta(days=3), NOON + timedelta(days=3)

        told = app.schedules.backfill("report", since, until, dry_run=True)
        done = app.schedules.backfill("report", since, until, every="10s", priority="high")

        times = [datetime(2030, 3, day, 5, tzinfo=UTC) for day in (28, 29, 30)]
        assert [each.fire_at for each in told] == [each.fire_at for each in done] == times
        jobs = sorted(test.enqueued(), key=lambda job: job.run_at)
        assert [job.run_at for job in jobs] == [NOON + n * timedelta(seconds=10) for n in range(3)]
        assert [job.labels["fire_at"] for job in jobs] == [at.isoformat() for at in times]
        assert {job.priority for job in jobs} == {Priority.HIGH}
        assert app.schedules.backfill("report", since, until) == []
        assert {each.outcome for each in app.schedules.occurrences("report")} == {Fate.MADE}


def test_a_backfill_of_too_much_is_refused_with_the_reason(app: App, report: Task[[str], None]) -> None:
    with in_memory(app, start=NOON):
        app.schedules.create(report, every="1m")
        for years, message in (
            (10, "until: there are more than 10000 occurrences, which is the most at once; go until"),
            (11, "since: a backfill reaches over ten years at the most"),
        ):
            with pytest.raises(Invalid) as refused:
                app.schedules.backfill("report", NOON.replace(year=2030 - years), NOON)
            assert str(refused.value).startswith(message)
        with pytest.raises(Invalid, match="until: must be after since"):
            app.schedules.backfill("report", NOON, NOON - MINUTE)
        with pytest.raises(Invalid, match="since: has no time zone"):
            app.schedules.backfill("report", NOON.replace(tzinfo=None), NOON)


# Declared with their tasks


def declared(app: App, kind: str) -> ScheduleSpec:
    task = app.registry.get(kind)
    assert task is not None
    assert task.schedule is not None
    return task.schedule


def test_a_task_is_declared_with_its_schedule(app: App) -> None:
    @app.task(name="nightly", cron="@daily", timezone="Europe/Berlin", overlap="queue", misfire="skip", queue="night")
    def nightly(day: str = "today") -> None: ...

    @app.task(name="often", schedule="very-often", every="30s", start=NOON, jitter="2s", grace=60, max_concurrency=2)
    async def often() -> None: ...

    spec = declared(app, "nightly")
    assert (spec.name, spec.kind, spec.queue, spec.args) == ("nightly", "nightly", "night", {})
    assert (spec.overlap, spec.misfire.policy) == (Overlap.QUEUE, "skip")
    assert trigger_of(spec).rule == Cron("0 0 * * *", "Europe/Berlin")
    spec = declared(app, "often")
    assert (spec.name, spec.max_concurrency, spec.misfire.grace) == ("very-often", 2, MINUTE)
    assert trigger_of(spec).rule == Interval(timedelta(seconds=30), NOON)
    assert app.registry.catalogue()[0].schedule is not None


def test_a_bad_declaration_is_refused(app: App) -> None:
    app.task(name="first", cron="@daily", schedule="taken")(lambda: None)
    for options, message in (
        ({"cron": "@daily", "schedule": "taken"}, "schedule: 'taken' is declared by"),
        ({"cron": "@sometimes"}, "cron: "),
        ({"every": "0.5s"}, "every: "),
        ({"overlap": "skip"}, "overlap: is about a schedule, and needs cron or every"),
        ({"schedule": "x"}, "schedule: is about a schedule"),
        ({"cron": "@daily", "every": "1m"}, "every: cannot be given together with cron"),
    ):
        with pytest.raises(Invalid) as refused:
            app.task(name="second", **options)(lambda: None)  # type: ignore[call-overload]
        assert str(refused.value).startswith(message)
    with pytest.raises(Invalid, match="a schedule calls its task without arguments"):
        app.task(name="third", cron="@daily")(lambda needed: needed)


def test_once_is_for_run_time(app: App, report: Task[[str], None]) -> None:
    at = datetime(2199, 1, 1, tzinfo=UTC)
    made = app.schedules.create(report, at=at)
    assert (trigger_of(made).rule, made.next_fire_at) == (Once(at), at)
