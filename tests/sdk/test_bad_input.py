"""Whatever is wrong with what someone asks for is said in one error, with the field and the reason."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tidewheel import App, Cap, Concurrency, Invalid, Rate, RetryPolicy
from tidewheel.sdk.builtin import CommandOptions, HttpOptions
from tidewheel.sdk.declaring import Declared
from tidewheel.sdk.options import KNOWN
from tidewheel.testing import in_memory


def endless_list() -> list[Any]:
    endless: list[Any] = []
    endless.append(endless)
    return endless


def endless_object() -> dict[str, Any]:
    endless: dict[str, Any] = {}
    endless["again"] = endless
    return endless


def deep_list() -> list[Any]:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    return deep


def given(field: str, value: Any) -> Any:
    """Return an option of which no type is known, so that it may be a wrong one."""
    return {field: value}


ENDLESS = pytest.mark.parametrize("make", [endless_list, endless_object, deep_list])


@ENDLESS
def test_arguments_without_end_are_refused_wherever_they_are_looked_at(app: App, make: Callable[[], Any]) -> None:
    @app.task
    async def plain(x: Any) -> None: ...

    @app.task
    async def typed(x: list[timedelta]) -> None: ...

    @app.task(concurrency=Concurrency(1, key="{args.x}"))
    async def limited(x: Any) -> None: ...

    value = make()
    for task in (plain, typed, limited, plain.using(unique="keep"), plain.using(idempotency_key="k")):
        with pytest.raises(Invalid) as caught:
            task.s(value).enqueue()
        assert caught.value.field == "args"
        assert "recursion" not in caught.value.why


@ENDLESS
def test_values_without_end_are_refused_by_the_built_in_kinds(app: App, make: Callable[[], Any]) -> None:
    for field in ("env", "stdin", "cwd"):
        with pytest.raises(Invalid) as caught:
            app.command(["true"], **given(field, {"A": make()}))
        assert caught.value.field == field
    for field in ("json", "body", "headers"):
        with pytest.raises(Invalid) as caught:
            app.http("POST", "http://example.com", **given(field, {"A": make()}))
        assert caught.value.field == field


@ENDLESS
def test_an_error_can_be_told_of_a_value_that_cannot_be_shown(app: App, make: Callable[[], Any]) -> None:
    @app.task
    async def task() -> None: ...

    for field in ("delay", "timeout", "start_by"):
        with pytest.raises(Invalid) as caught:
            task.using(**given(field, make())).enqueue()
        assert caught.value.field == field


@pytest.mark.parametrize("wait", [timedelta.max, "999999999d", 8e13])
def test_a_start_that_no_calendar_has_is_refused(app: App, wait: Any) -> None:
    @app.task
    async def task() -> None: ...

    with pytest.raises(Invalid, match="start_by: must lie between the years 2000 and 2200"):
        task.using(start_by=wait).enqueue()


def test_a_test_cannot_advance_beyond_the_calendar(app: App) -> None:
    with in_memory(app) as test, pytest.raises(Invalid, match="by: "):
        test.advance(timedelta.max)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"resources": [1]}, "resources"),
        ({"resources": "cpu=1"}, "resources"),
        ({"resources": None}, "resources"),
        ({"resources": {1: 1}}, "resources"),
        ({"resources": {"cpu=1,gpu": 1}}, "resources"),
        ({"resources": {"gpu": "1,cpu=1"}}, "resources"),
        ({"resources": {"gpu": object()}}, "resources"),
        ({"needs_labels": ["zone"]}, "needs_labels"),
        ({"needs_labels": 1}, "needs_labels"),
        ({"process": "x"}, "process"),
        ({"process": 1}, "process"),
        ({"retry": RetryPolicy(max_attempts="x")}, "retry"),  # type: ignore[arg-type]
        ({"retry": RetryPolicy(delay=5)}, "retry"),  # type: ignore[arg-type]
        ({"retry": RetryPolicy(jitter=object())}, "retry"),  # type: ignore[arg-type]
    ],
)
def test_options_of_a_task_that_are_of_another_kind_are_refused(app: App, options: Any, field: str) -> None:
    async def task() -> None: ...

    with pytest.raises(Invalid) as caught:
        app.task(**options)(task)

    assert caught.value.field.split(".")[0] == field


@pytest.mark.parametrize(
    "retry",
    [RetryPolicy(max_attempts="x"), RetryPolicy(jitter="some"), RetryPolicy(backoff=object())],  # type: ignore[arg-type]
)
def test_a_policy_that_makes_no_sense_is_refused_with_the_job(app: App, retry: RetryPolicy) -> None:
    @app.task
    async def task() -> None: ...

    with pytest.raises(Invalid, match=r"^retry: "):
        task.using(retry=retry).enqueue()


@pytest.mark.parametrize("value", [object(), 1j, {1, object()}])
def test_arguments_that_are_not_json_are_refused_where_they_are_part_of_a_key(app: App, value: Any) -> None:
    @app.task(concurrency=Concurrency(1, key="{args.x}"))
    async def limited(x: Any) -> None: ...

    @app.task
    async def plain(x: Any) -> None: ...

    for task in (limited, plain.using(unique="reject")):
        with pytest.raises(Invalid) as caught:
            task.s(value).enqueue()
        assert caught.value.field == "args"


@pytest.mark.parametrize("calls", [None, 5, "abc", [1], [None]])
def test_many_calls_must_be_calls(app: App, calls: Any) -> None:
    with pytest.raises(Invalid, match=r"^calls: must be "):
        app.enqueue_many(calls)


async def test_many_calls_must_be_calls_for_the_async_face_too(app: App) -> None:
    with pytest.raises(Invalid, match=r"^calls: must be "):
        await app.aenqueue_many([1])  # type: ignore[list-item]


def test_an_argument_may_have_any_name(app: App) -> None:
    @app.task
    async def task(**named: Any) -> None: ...

    assert task.enqueue(self=1, args=2).info().args == {"self": 1, "args": 2}


@pytest.mark.parametrize(
    ("argv", "options", "field"),
    [
        (None, {}, "argv"),
        (5, {}, "argv"),
        ({"ls": 1}, {}, "argv"),
        (b"ls", {}, "argv"),
        (["ls"], {"ok_exit_codes": 0}, "ok_exit_codes"),
        (["ls"], {"fatal_exit_codes": None}, "fatal_exit_codes"),
        (["ls"], {"env": "\ud800"}, "env"),
    ],
)
def test_commands_of_another_kind_are_refused(app: App, argv: Any, options: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        app.command(argv, **options)

    assert caught.value.field == field


@pytest.mark.parametrize(
    ("method", "options", "field"),
    [
        (5, {}, "method"),
        (None, {}, "method"),
        ("GET", {"json": object()}, "json"),
        ("GET", {"json": {"a": 1j}}, "json"),
        ("GET", {"json": "\ud800"}, "json"),
        ("GET", {"json": 1, "headers": {1: "a"}}, "headers"),
        ("GET", {"headers": ["a"]}, "headers"),
        ("GET", {"headers": None}, "headers"),
        ("GET", {"ok_statuses": 200}, "ok_statuses"),
        ("GET", {"fatal_statuses": "\ud800"}, "fatal_statuses"),
        ("GET", {"follow_redirects": "\ud800"}, "follow_redirects"),
    ],
)
def test_calls_of_another_kind_are_refused(app: App, method: Any, options: Any, field: str) -> None:
    with pytest.raises(Invalid) as caught:
        app.http(method, "http://example.com", **options)

    assert caught.value.field == field


def endless_tuple() -> tuple[Any, ...]:
    deep: tuple[Any, ...] = ()
    for _ in range(100_000):
        deep = (deep,)
    return deep


@pytest.mark.parametrize("make", [endless_list, endless_object, deep_list, endless_tuple])
def test_no_option_may_be_nested_without_end(app: App, make: Callable[[], Any]) -> None:
    @app.task
    async def plain() -> None: ...

    value = make()
    asked: dict[str, Callable[[dict[str, Any]], object]] = {
        **{f"using {name}": lambda option: plain.using(**option).enqueue() for name in KNOWN - {"connection"}},
        **{f"command {name}": lambda option: app.command(["true"], **option) for name in _OWN_OF_COMMANDS},
        **{f"http {name}": lambda option: app.http("GET", "http://a", **option) for name in _OWN_OF_CALLS},
        **{f"task {name}": lambda option: app.task(**option)(_function) for name in Declared.__annotations__},
    }
    for what, ask in asked.items():
        field = what.partition(" ")[2]
        with pytest.raises(Invalid) as caught:
            ask({field: value})
        assert "ecursion" not in caught.value.why, what
        assert len(caught.value.why) < 300, what
        assert caught.value.field.startswith(_FIELDS.get(what, field)), what


def _function() -> None: ...


_OWN_OF_COMMANDS = CommandOptions.__annotations__.keys() - KNOWN
_OWN_OF_CALLS = HttpOptions.__annotations__.keys() - KNOWN
_FIELDS = {"task name": "kind", "task needs_labels": "needs"}
"""What is called otherwise in the error."""


@pytest.mark.parametrize(
    "limit",
    [
        lambda value: {"rate": Rate(value)},
        lambda value: {"cap": Cap(value)},
        lambda value: {"concurrency": Concurrency(value)},
    ],
    ids=["rate", "cap", "concurrency"],
)
def test_no_limit_may_be_nested_without_end(app: App, limit: Callable[[Any], Any]) -> None:
    with pytest.raises(Invalid) as caught:
        app.task(**limit(deep_list()))(_function)

    assert caught.value.field in limit(1)
