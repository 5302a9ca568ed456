import enum
import json
import math
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, NamedTuple

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.checks import MAX_JSON_BYTES, MAX_JSON_DEPTH, check_json, check_json_text

storable_text = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | storable_text
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(storable_text, inner, max_size=5),
    max_leaves=20,
)
poisons = st.sampled_from(
    [
        math.nan,
        math.inf,
        -math.inf,
        "a\0b",
        "\ud800",
        {"\0": 1},
        {"\udc00": 1},
        {1: 1},
        {None: 1},
        {1.5: 1},
        2**64,
        -(2**63) - 1,
        b"x",
        {1, 2},
        object(),
        uuid.UUID(int=1),
        datetime(2030, 1, 1, tzinfo=UTC),
        timedelta(1),
        Decimal("1.5"),
        msgspec.Raw(b"1"),
    ]
)


class Colour(enum.StrEnum):
    RED = "red"


class Shape(enum.Enum):
    ROUND = "round"


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Box:
    width: int = 1


class Name(str):
    __slots__ = ()


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


def refusal(value: object, **limits: int) -> str:
    with pytest.raises(Invalid) as caught:
        check_json("args", value, **limits)
    assert caught.value.field == "args"
    return caught.value.why


@given(json_values)
def test_what_is_accepted_comes_back_the_same_from_any_reader_of_json(value: Any) -> None:
    text = check_json("args", value)

    assert json.loads(text) == value
    assert msgspec.json.decode(text) == value
    assert check_json_text("args", text) == text


@given(json_values, poisons, st.randoms(use_true_random=False))
def test_one_bad_part_anywhere_spoils_the_whole(value: Any, poison: Any, random: Random) -> None:
    for _ in range(random.randrange(5)):
        value = random.choice([[value, 1], {"k": value}, (value,)])
    spoiled = [value, poison, value] if random.random() < 0.5 else {"good": value, "bad": [poison]}

    refusal(spoiled)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({}, "{}"),
        ({"b": 1, "a": [True, None, 1.5, "é"]}, '{"b":1,"a":[true,null,1.5,"é"]}'),
        ((1, (2, 3)), "[1,[2,3]]"),
        (Point(1, 2), "[1,2]"),
        ({"c": Colour.RED, Colour.RED: (1,)}, '{"c":"red","red":[1]}'),
        ("1234567890123456789", '"1234567890123456789"'),
        (2**64 - 1, "18446744073709551615"),
        (-(2**63), "-9223372036854775808"),
        ("\\u0000", '"\\\\u0000"'),
        ("\x1b\x7f", '"\\u001b\x7f"'),
    ],
)
def test_a_json_value_becomes_compact_text_with_its_keys_in_order(value: object, text: str) -> None:
    assert check_json("args", value) == text


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (math.nan, "must not hold nan, which is no number in JSON"),
        ({"a": [1, math.inf]}, "at ['a'][1]: must not hold inf, which is no number in JSON"),
        ({"a": "x\0"}, "at ['a']: must not contain the NUL character"),
        ({"a": {"\0": 1}}, "at ['a']: a key must not contain the NUL character"),
        (["\ud83d"], "at [0]: must not contain half of a surrogate pair"),
        ({"\ud83d": 1}, "a key must not contain half of a surrogate pair"),
        ({1: 2}, "a key must be text, not int (1)"),
        ({None: 2}, "a key must be text, not nothing (None)"),
        ({(1, 2): 2}, "a key must be text, not tuple ((1, 2))"),
        ({Shape.ROUND: 2}, "a key must be text, not Shape"),
        ({"n": 2**64}, "at ['n']: must not hold whole numbers beyond 64 bits; send them as text"),
        ([-(2**63) - 1], "at [0]: must not hold whole numbers beyond 64 bits; send them as text"),
        ([10**5000], "at [0]: must not hold whole numbers beyond 64 bits; send them as text"),
        ({"b": b"x"}, "at ['b']: must be made of JSON values, without bytes; send it as text or number"),
        ({1, 2}, "must be made of JSON values, without set"),
        (Box(), "must be made of JSON values, without Box"),
        (Name("x"), "must be made of JSON values, without Name"),
        (Shape.ROUND, "must be made of JSON values, without Shape"),
        (msgspec.Raw(b"{broken"), "must be made of JSON values, without Raw"),
        (msgspec.Raw(b"\xff"), "must be made of JSON values, without Raw"),
        (datetime(2030, 1, 1, tzinfo=UTC), "must be made of JSON values, without datetime"),
    ],
)
def test_what_is_not_json_is_refused_with_place_and_reason(value: object, why: str) -> None:
    assert refusal(value).startswith(why)


def test_two_keys_that_would_become_one_are_refused() -> None:
    assert refusal({"1": "a", 1: "b"}) == "a key must be text, not int (1)"


# Depth


def test_sixty_four_levels_are_allowed_and_one_more_is_not() -> None:
    assert check_json("args", nested(MAX_JSON_DEPTH)) == "[" * 64 + "]" * 64
    assert refusal(nested(MAX_JSON_DEPTH + 1)) == "must not be nested more than 64 levels deep, or contain itself"


def test_levels_count_in_objects_too_and_with_a_tuple_in_sight() -> None:
    value: Any = (1,)
    for _ in range(63):
        value = {"k": value}

    assert check_json("args", value).count("{") == 63
    assert "64 levels" in refusal([value])


@pytest.mark.parametrize("depth", [65, 500, 2_000, 100_000])
def test_no_depth_exhausts_the_stack(depth: int) -> None:
    assert "64 levels" in refusal(nested(depth))
    assert "64 levels" in refusal({"bad": object(), "deep": nested(depth)})


def test_a_value_that_contains_itself_is_refused() -> None:
    loop: list[Any] = [object()]
    loop += [loop, loop]

    assert "contain itself" in refusal(loop)
    assert "contain itself" in refusal({"again": loop[1]})


def test_many_brackets_side_by_side_are_not_deep() -> None:
    assert check_json("args", [[{}]] * 500).count("{") == 500


@pytest.mark.parametrize(
    "text", ["[" * 500, "]" * 500, "[" * 99 + "\\", '"[' * 200, "\\" * 65 + '"[[', '\\"' * 99 + "{" * 99]
)
def test_brackets_inside_of_strings_do_not_count(text: str) -> None:
    assert json.loads(check_json("args", {"t": [text], text: "[" * 99})) == {"t": [text], text: "[" * 99}


@pytest.mark.parametrize("text", ["]", '"]', '\\"]', "\\]", "]\\"])
def test_brackets_inside_of_strings_hide_no_depth(text: str) -> None:
    value: Any = text
    for _ in range(65):
        value = [text, value]

    assert "64 levels" in refusal(value)


@given(json_values, st.integers(0, 8))
def test_depth_is_counted_as_a_reader_would_count_it(value: Any, limit: int) -> None:
    def depth(part: Any) -> int:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else None
        return 0 if inner is None else 1 + max(map(depth, inner), default=0)

    if depth(value) > limit:
        assert f"more than {limit} levels" in refusal(value, max_depth=limit)
    else:
        check_json("args", value, max_depth=limit)


# Size


def test_size_counts_bytes_of_the_text() -> None:
    assert len(check_json("args", "x" * (MAX_JSON_BYTES - 2))) == MAX_JSON_BYTES
    assert refusal("x" * (MAX_JSON_BYTES - 1)) == "must have at most 262144 bytes as JSON, not 262145"
    assert refusal("ééé", max_bytes=7) == "must have at most 7 bytes as JSON, not 8"


# Text


@pytest.mark.parametrize(
    ("text", "compact"),
    [(' { "a" : [ 1 , 2 ] } ', '{"a":[1,2]}'), (b"1", "1"), ('{"a":1,"a":2}', '{"a":2}'), ('"\\ud83d\\ude00"', '"😀"')],
)
def test_json_that_comes_as_text_becomes_compact(text: str | bytes, compact: str) -> None:
    assert check_json_text("result", text) == compact


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is not JSON: "),
        ("{", "is not JSON: "),
        ("NaN", "is not JSON: "),
        ("[Infinity]", "is not JSON: "),
        ("1e400", "is not JSON: "),
        ("{1: 2}", "is not JSON: "),
        ('"\\ud800"', "is not JSON: "),
        ('"\ud800"', "is not JSON: it is not valid UTF-8"),
        (b'"\xff"', "is not JSON: it is not valid UTF-8"),
        ('"a\\u0000"', "must not contain the NUL character"),
        ('{"a\\u0000":1}', "a key must not contain the NUL character"),
        ("18446744073709551616", "must not hold whole numbers beyond 64 bits"),
        ("9" * 5000, "is not JSON: "),
        ("[" * 65 + "]" * 65, "must not be nested more than 64 levels deep"),
        ("[" * 100_000 + "]" * 100_000, "must not be nested more than 64 levels deep"),
        ('{"a":' * 100_000, "must have at most 262144 bytes as JSON, not 500000"),
    ],
)
def test_bad_json_text_is_refused_with_its_reason(text: str | bytes, why: str) -> None:
    with pytest.raises(Invalid) as caught:
        check_json_text("result", text)

    assert caught.value.field == "result"
    assert caught.value.why.startswith(why)


@given(st.binary(max_size=60) | st.text(st.sampled_from('[]{}",:\\u0d8 1e-.tfn'), max_size=30))
def test_any_text_is_either_refused_or_becomes_json(text: str | bytes) -> None:
    try:
        compact = check_json_text("result", text)
    except Invalid:
        return
    assert check_json_text("result", compact) == compact
