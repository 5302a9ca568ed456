"""Arguments go to the store by name, as JSON, and come back as they were."""

import dataclasses
import enum
import time
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json
from tidewheel.model.dependency import REFERENCE
from tidewheel.tasks.binding import Caller, context_of, result_text
from tidewheel.tasks.context import Context
from tidewheel.tasks.signals import Fatal

if TYPE_CHECKING:
    from somewhere import Unknown  # type: ignore[import-not-found]

SOME_ID = UUID("01a1e11e-1dcf-707c-9333-56e6668dd66c")
Function = Callable[..., Any]


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    at: datetime


class Line(msgspec.Struct):
    points: list[Point]


def returns(*values: Any) -> Any:
    """Return what a task got, as one value."""
    return values


def stored(function: Function, *args: Any, **kwargs: Any) -> str:
    """Return the JSON text that the store would keep."""
    return check_json("args", Caller(function).bind(args, kwargs))


def there_and_back(function: Function, *args: Any, **kwargs: Any) -> Any:
    return Caller(function).call(None, stored(function, *args, **kwargs))


def simple(a: int, b: str = "x", *, c: float = 0.5) -> Any:
    return returns(a, b, c)


def by_position(a: int, /, b: int) -> Any:
    return returns(a, b)


def anything(a: int, **rest: date) -> Any:
    return returns(a, rest)


def unknown(a: "Unknown", b: "int") -> Any:
    return returns(a, b)


def test_arguments_are_stored_by_name_and_defaults_are_left_to_the_run() -> None:
    assert Caller(simple).bind((1,), {"c": 2}) == {"a": 1, "c": 2}
    assert there_and_back(simple, 1, c=2) == (1, "x", 2.0)
    assert there_and_back(by_position, 1, b=2) == (1, 2)
    assert there_and_back(anything, 1, day=date(2030, 1, 1)) == (1, {"day": date(2030, 1, 1)})
    assert there_and_back(unknown, {"any": ["thing"]}, 1) == ({"any": ["thing"]}, 1)


RICH: list[tuple[Any, Any]] = [
    (datetime, datetime(2030, 1, 1, 12, 30, tzinfo=UTC)),
    (date, date(2030, 1, 1)),
    (timedelta, timedelta(minutes=5)),
    (UUID, SOME_ID),
    (Decimal, Decimal("1.10")),
    (Colour, Colour.RED),
    (set[int], {1, 2}),
    (tuple[int, str], (1, "a")),
    (bytes, b"\x00\xff"),
    (dict[int, str], {1: "a"}),
    (Point, Point(1, datetime(2030, 1, 1, tzinfo=UTC))),
    (Line, Line([Point(1, datetime(2030, 1, 1, tzinfo=UTC))])),
    (list[Point | None], [Point(1, datetime(2030, 1, 1, tzinfo=UTC)), None]),
    (datetime | None, None),
    (Literal["a", "b"], "b"),
    (Mapping[str, Any], {"a": [1, None]}),
    (float, 1.0),
]


@pytest.mark.parametrize(("kind", "value"), RICH, ids=[str(kind) for kind, _ in RICH])
def test_what_is_annotated_comes_back_as_it_went(kind: Any, value: Any) -> None:
    def task(it: Any) -> Any:
        return it

    task.__annotations__ = {"it": kind, "return": kind}

    back = there_and_back(task, value)
    assert back == value
    assert type(back) is type(value)
    assert Caller(task).restore(msgspec.json.decode(Caller(task).result_text(value) or "null")) == value


@given(st.recursive(st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(), st.lists, max_leaves=10))
def test_plain_json_comes_back_unchanged_without_annotations(value: Any) -> None:
    def task(it, other=None):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return it, other

    try:
        text = stored(task, value)
    except Invalid:  # NUL and half surrogate pairs are refused for all
        return
    assert Caller(task).call(None, text) == (value, None)


@pytest.mark.parametrize("kind", [None, Any, dict, dict[str, Any], list[Any]])
def test_a_date_where_nothing_tells_how_to_read_it_is_refused(kind: Any) -> None:
    def task(it):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return it

    if kind is not None:
        task.__annotations__ = {"it": kind}
    value: Any = datetime(2030, 1, 1, tzinfo=UTC)
    if kind in (dict, dict[str, Any]):
        value = {"at": value}
    elif kind == list[Any]:
        value = [value]

    with pytest.raises(Invalid, match="datetime"):
        stored(task, value)


@pytest.mark.parametrize(
    ("args", "kwargs", "why"),
    [
        ((), {}, "missing a required argument: 'a'"),
        ((1, "b", 2.0), {}, "too many positional arguments"),
        ((1,), {"a": 2}, "multiple values for argument 'a'"),
        ((1,), {"z": 2}, "unexpected keyword argument 'z'"),
        (("one",), {}, "a: Expected `int`, got `str`"),
        ((1,), {"c": "x"}, "c: Expected `float`, got `str`"),
    ],
)
def test_a_call_that_does_not_fit_is_refused_when_it_is_enqueued(
    args: tuple[Any, ...], kwargs: dict[str, Any], why: str
) -> None:
    with pytest.raises(Invalid) as caught:
        Caller(simple).bind(args, kwargs)

    assert caught.value.field == "args"
    assert why in str(caught.value)


@pytest.mark.parametrize("args", ['{"a": "x"}', "{}", '{"a": 1, "z": 2}', "[1]", "{", '{"a": 1, "b": null}'])
def test_stored_arguments_that_do_not_fit_are_fatal(args: str) -> None:
    with pytest.raises(Fatal, match="do not fit simple"):
        Caller(simple).call(None, args)


@pytest.mark.parametrize("args", ['{"a": "x"}', "{}", '{"a": 1, "day": "x"}'])
def test_so_are_those_of_functions_that_take_any_name(args: str) -> None:
    with pytest.raises(Fatal, match="do not fit anything"):
        Caller(anything).call(None, args)


def test_a_type_error_inside_the_task_is_its_own() -> None:
    def task(a: int) -> Any:
        return a + "x"  # type: ignore[operator]

    with pytest.raises(TypeError, match="unsupported operand"):
        Caller(task).call(None, '{"a": 1}')


def test_a_result_of_another_job_may_stand_for_any_argument() -> None:
    place = {REFERENCE: str(SOME_ID)}

    assert Caller(simple).bind((place,), {}) == {"a": place}
    assert Caller(simple).bind(([place, place],), {}) == {"a": [place, place]}
    with pytest.raises(Invalid):
        Caller(simple).bind(([place, 1],), {})


def test_functions_whose_arguments_have_no_names_are_refused() -> None:
    def many(*args: int) -> None: ...
    def both(a: int, /, **rest: int) -> None: ...
    def twins(a: Point | Line | dict[str, int]) -> None: ...

    for function, why in ((many, "takes *args"), (both, "positional-only"), (twins, "parameter a")):
        with pytest.raises(Invalid) as caught:
            Caller(function)
        assert why in str(caught.value)


def test_the_context_is_the_first_parameter_with_that_annotation() -> None:
    def plain(a: int) -> None: ...
    def first(ctx: Context, a: int) -> None: ...
    def as_text(me: "Context") -> None: ...
    def late(a: int, ctx: Context) -> None: ...
    def by_name(*, ctx: Context) -> None: ...
    def twice(a: Context, b: Context) -> None: ...

    assert [context_of(f) for f in (plain, first, as_text)] == [None, "ctx", "me"]
    for function in (late, by_name, twice):
        with pytest.raises(Invalid, match="must be the first parameter"):
            context_of(function)


def test_a_context_that_is_imported_for_the_type_checker_alone_is_recognised() -> None:
    space: dict[str, Any] = {}
    exec("def task(ctx: 'tidewheel.Context', a: int) -> int: return a", space)
    caller = Caller(space["task"], context_of(space["task"]))

    assert caller.bind((5,), {}) == {"a": 5}


def test_the_context_is_given_by_whoever_runs_the_task() -> None:
    def task(ctx: Context, /, a: int, *, b: int = 2) -> Any:
        return returns(ctx, a, b)

    def open_task(ctx: Context, **rest: int) -> Any:
        return returns(ctx, rest)

    context: Any = object()
    assert Caller(task, "ctx").call(context, '{"a": 1}') == (context, 1, 2)
    assert Caller(open_task, "ctx").call(context, '{"a": 1}') == (context, {"a": 1})
    with pytest.raises(Invalid, match="ctx is the Context"):
        Caller(open_task, "ctx").bind((), {"ctx": 1})


async def test_a_coroutine_function_answers_with_its_coroutine() -> None:
    async def task(a: int) -> int:
        return a + 1

    assert await Caller(task).call(None, '{"a": 1}') == 2


def test_a_result_that_is_no_json_is_fatal() -> None:
    for result in (object(), 1j, {1j: 2}):
        with pytest.raises(Fatal, match="result cannot be stored"):
            result_text(result)


def test_a_result_of_another_version_is_shown_as_it_is() -> None:
    def task() -> int: ...  # type: ignore[empty-body]

    assert Caller(task).restore("text") == "text"


def test_a_call_with_simple_arguments_costs_next_to_nothing() -> None:
    """The bound is ten times what was measured (0.4 µs), for slow machines; a bind at each call would exceed it."""

    def task(a: int, b: str) -> None: ...

    caller = Caller(task)
    best = min(_seconds_for(caller, 2_000) for _ in range(10))
    assert best / 2_000 < 5e-6


def _seconds_for(caller: Caller, calls: int) -> float:
    started = time.perf_counter()
    for _ in range(calls):
        caller.call(None, '{"a":1,"b":"hello"}')
    return time.perf_counter() - started
