"""Declaring tasks and enqueuing their jobs."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.sdk.work import end_all
from tidewheel import AlreadyActive, App, Context, Invalid, KeyReused, Priority, RetryPolicy, State
from tidewheel.sdk.naming import kind_of
from tidewheel.store.base import Store
from tidewheel.tasks.definition import TaskDefinition


def test_a_task_is_still_the_function_it_was_made_of(app: App) -> None:
    @app.task
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    assert add(1) == 3
    assert (getattr(add, "__name__", ""), add.__doc__) == ("add", "Add.")
    assert add.kind == f"{__name__}.add"


def test_a_kind_is_the_module_and_the_function() -> None:
    def nightly() -> None: ...

    nightly.__module__, nightly.__qualname__ = "reports", "nightly"
    assert kind_of(nightly) == "reports.nightly"
    nightly.__qualname__ = "Reports.make.<locals>.nightly"
    assert kind_of(nightly) == "reports.nightly"
    with pytest.raises(Invalid, match="give it one with name"):
        kind_of(lambda: None)


def definition(app: App, kind: str) -> TaskDefinition:
    found = app.registry.get(kind)
    assert found is not None
    return found


def test_options_of_a_task_are_read_in_the_forms_that_people_write(app: App) -> None:
    @app.task(
        name="resize",
        queue="images",
        priority="high",
        timeout="1h30m",
        retry=3,
        resources={"cpu": 0.5, "memory": "512MiB", "gpu": 1},
        needs_labels={"zone": "a"},
        concurrency=2,
        preempt="pause",
        isolation="strict",
    )
    def resize(path: str) -> None: ...

    options = definition(app, "resize").options
    assert (options.queue, options.priority, options.timeout) == ("images", Priority.HIGH, timedelta(minutes=90))
    assert options.retry == RetryPolicy(max_attempts=3)
    assert options.needs.resources == {"cpu": 500, "memory": 512 << 20, "gpu": 1}
    assert (options.needs.labels, options.limits[0].rule.most) == ({"zone": "a"}, 2)
    assert (options.preempt, options.isolation) == ("pause", "strict")


@pytest.mark.parametrize(
    ("wish", "attempts"), [(False, 1), (None, 1), (1, 1), (True, 5), (RetryPolicy(max_attempts=9), 9)]
)
def test_a_retry_may_be_a_policy_a_number_or_nothing(app: App, wish: Any, attempts: int) -> None:
    @app.task(name="task", retry=wish)
    def task() -> None: ...

    assert definition(app, "task").options.retry.max_attempts == attempts


def test_async_functions_run_inline_unless_they_ask_for_more(app: App) -> None:
    async def inline() -> None: ...
    def plain() -> None: ...

    app.task(name="a")(inline)
    app.task(name="b")(plain)
    app.task(name="c", resources={"cpu": 1})(inline)
    app.task(name="d", isolation="none")(inline)
    app.task(name="e", process=True)(inline)
    app.task(name="f", isolation="none", process=False)(inline)

    assert {task.kind: task.mode for task in app.registry} == {
        "a": "inline", "b": "process", "c": "process", "d": "process", "e": "process", "f": "inline"
    }  # fmt: skip


def _generator() -> Any:
    yield 1


def _late(a: int, ctx: Context) -> None: ...


@pytest.mark.parametrize(
    ("options", "function", "field"),
    [
        ({"name": "a b"}, None, "kind"),
        ({"name": ""}, None, "kind"),
        ({"name": "command"}, None, "kind"),
        ({"queue": ""}, None, "queue"),
        ({"priority": "urgent"}, None, "priority"),
        ({"timeout": "soon"}, None, "timeout"),
        ({"retry": 0}, None, "retry.max_attempts"),
        ({"retry": "often"}, None, "retry"),
        ({"resources": {"cpu": "many"}}, None, "resources"),
        ({"concurrency": 0}, None, "concurrency"),
        ({"preempt": "always"}, None, "preempt"),
        ({"isolation": "total"}, None, "isolation"),
        ({"process": False}, None, "process"),
        ({"rate": "5/fortnight"}, None, "rate"),
        ({"cron": "* * * *"}, None, "cron"),
        ({}, _generator, "function"),
        ({}, _late, "ctx"),
        ({}, dict, "function"),
        ({}, 5, "function"),
    ],
)
def test_a_declaration_that_makes_no_sense_is_refused_at_once(
    app: App, options: dict[str, Any], function: Any, field: str
) -> None:
    def task() -> None: ...

    with pytest.raises(Invalid) as caught:
        app.task(**{"name": "task", **options})(function or task)

    assert caught.value.field == field
    assert list(app.registry) == []


def test_a_kind_is_declared_once(app: App) -> None:
    app.task(name="twice")(_late_free)
    with pytest.raises(Invalid, match="is taken by"):
        app.task(name="twice")(_late_free)


def _late_free() -> None: ...


def test_nothing_is_opened_before_the_first_job(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path / 'none' / 'jobs.db'}")
    app.task(name="task")(_late_free)
    app.job("01a1e11e-1dcf-707c-9333-56e6668dd66c")

    assert list(tmp_path.iterdir()) == []


def test_the_database_comes_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDE_DATABASE", f"sqlite:///{tmp_path / 'here.db'}")
    with App() as app:
        app.task(name="task")(_late_free).enqueue()
        assert (tmp_path / "here.db").exists()


def test_all_that_is_asked_for_reaches_the_store(app: App) -> None:
    @app.task(queue="mail", retry=2)
    def send(to: str, count: int = 1) -> None: ...

    at = datetime(2100, 1, 1, tzinfo=UTC)
    job = send.using(
        priority="low",
        run_at=at,
        start_by=at + timedelta(hours=1),
        labels={"team": "a"},
        timeout=90,
        retry=RetryPolicy(max_attempts=7),
        name="a mail",
        description="to someone",
        tenant="acme",
        unique_key="only",
        idempotency_key="once",
    ).enqueue("ada", count=3)

    info = job.info()
    assert (info.args, info.queue, info.priority) == ({"to": "ada", "count": 3}, "mail", Priority.LOW)
    assert (info.due_at, info.start_by) == (at, at + timedelta(hours=1))
    assert (info.labels, info.timeout, info.retry.max_attempts) == ({"team": "a"}, timedelta(seconds=90), 7)
    assert (info.name, info.description, info.tenant) == ("a mail", "to someone", "acme")
    assert (info.unique_key, info.idempotency_key, info.state) == ("only", "once", State.QUEUED)


def test_delays_and_deadlines_count_from_now(app: App) -> None:
    @app.task
    def task() -> None: ...

    info = task.using(delay="5m", start_by="10m").enqueue().info()

    assert info.run_at - info.created_at == timedelta(minutes=5)
    assert info.start_by is not None
    assert timedelta(minutes=9) < info.start_by - info.created_at <= timedelta(minutes=10)


def test_using_changes_nothing_for_others_and_none_means_as_the_task_says(app: App) -> None:
    @app.task(queue="mail")
    def task() -> None: ...

    urgent = task.using(priority="high", queue="other")

    assert urgent.using(queue=None).enqueue().info().queue == "mail"
    assert urgent.using(queue=None).enqueue().info().priority is Priority.HIGH
    assert (task.enqueue().info().priority, task.enqueue().info().queue) == (Priority.MEDIUM, "mail")
    assert urgent.using(retry=None).enqueue().info().retry.max_attempts == 1


def test_an_idempotency_key_makes_one_job(app: App) -> None:
    @app.task
    def task(a: int) -> None: ...

    once = task.using(idempotency_key="k")
    first, second = once.enqueue(1), once.enqueue(1)

    assert first == second
    assert (first.created, second.created) == (True, False)
    with pytest.raises(KeyReused):
        once.enqueue(2)


def test_an_idempotency_key_wants_a_deadline_that_is_the_same_at_each_repeat(app: App) -> None:
    @app.task
    def task() -> None: ...

    with pytest.raises(Invalid, match="start_by: must be an instant where there is an idempotency_key"):
        task.using(idempotency_key="k", start_by="10m").enqueue()
    once = task.using(idempotency_key="k", start_by=datetime(2100, 1, 1, tzinfo=UTC))
    assert once.enqueue() == once.enqueue()


def test_a_job_may_be_unique_by_its_arguments(app: App) -> None:
    @app.task
    def task(a: int) -> None: ...

    first = task.using(unique="keep").enqueue(1)

    assert task.using(unique="keep").enqueue(1) == first
    assert task.using(unique="keep").enqueue(2) != first
    with pytest.raises(AlreadyActive):
        task.using(unique="reject").enqueue(1)
    assert task.using(unique="replace").enqueue(1) != first
    assert first.state() is State.CANCELLED


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"delay": "soon"}, "delay"),
        ({"delay": -1}, "delay"),
        ({"start_by": "0s"}, "start_by"),
        ({"run_at": datetime(2030, 1, 1)}, "run_at"),  # noqa: DTZ001 - the point of the test
        ({"priority": "urgent"}, "priority"),
        ({"unique": "perhaps", "unique_key": "k"}, "unique"),
        ({"labels": {"a b": "c"}}, "labels"),
        ({"retry": "often"}, "retry"),
        ({"after": "abc"}, "after"),
        ({"after": [1]}, "after"),
        ({"eta": 5}, "eta"),
    ],
)
def test_wishes_that_make_no_sense_are_refused_by_name(app: App, options: Any, field: str) -> None:
    @app.task
    def task() -> None: ...

    with pytest.raises(Invalid) as caught:
        task.using(**options).enqueue()

    assert caught.value.field == field


def test_many_jobs_go_in_together_or_not_at_all(app: App) -> None:
    @app.task
    def task(a: int) -> None: ...

    jobs = app.enqueue_many([task.s(1), task.using(delay=60).s(2)])
    assert [job.info().args for job in jobs] == [{"a": 1}, {"a": 2}]
    with pytest.raises(Invalid, match=r"specs\[1\]"):
        app.enqueue_many([task.s(3), task.using(labels={"a b": ""}).s(4)])
    assert app.run(end_all(app)) == [task.kind]


async def test_the_async_face_does_the_same(app: App) -> None:
    @app.task
    async def task(ctx: Context, a: int) -> int:
        return a + ctx.number

    job = await task.using(delay="1h").aenqueue(5)
    [other] = await app.aenqueue_many([task.s(6)])

    assert (await job.ainfo()).args == {"a": 5}
    assert await end_all(app, 7) == [task.kind]
    assert await other.aresult() == 7


async def test_a_loop_may_have_a_store_of_its_own(app: App) -> None:
    @app.task
    def task() -> None: ...

    async with app, app:
        job = await task.aenqueue()
        assert await app.use(_store) is not await asyncio.to_thread(lambda: app.run(app.stores.resident()))
    assert await job.astate() is State.QUEUED


async def _store(store: Store) -> Store:
    return store


async def test_no_more_jobs_of_a_limited_task_run_than_it_says(app: App) -> None:
    @app.task(concurrency=1)
    def few() -> None: ...

    jobs = [await few.aenqueue() for _ in range(3)]
    assert len(await end_all(app)) == 1
    states = sorted([await job.astate() for job in jobs])
    assert states == [State.LIMITED, State.QUEUED, State.SUCCEEDED]
