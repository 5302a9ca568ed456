"""Secrets by name."""

from typing import Any

import pytest

from tests.builders import a_job
from tidewheel.errors import Invalid
from tidewheel.model.secret import check_secret_name, fill_secrets, find_secrets, reference_to, variable_of
from tidewheel.model.submission import prepare


def test_secrets_are_found_once_wherever_they_are_and_filled_in() -> None:
    args = {"env": {"A": {"$secret": "a"}, "B": "b"}, "argv": ["x", {"$secret": "b_2"}, [{"$secret": "a"}]], "n": None}
    assert find_secrets(args) == ["a", "b_2"]
    assert fill_secrets(args, {"a": "1", "b_2": "2"}) == {
        "env": {"A": "1", "B": "b"},
        "argv": ["x", "2", ["1"]],
        "n": None,
    }
    assert find_secrets({"text": "$secret", "list": ["$secret"]}) == []


def test_a_secret_cannot_ask_for_another() -> None:
    assert fill_secrets({"a": {"$secret": "a"}}, {"a": '{"$secret": "b"}'}) == {"a": '{"$secret": "b"}'}


@pytest.mark.parametrize(
    "name",
    ["", "A", "1a", "_a", "a-b", "a.b", "../a", "a/b", "a b", "a" * 65, "ä", "a\n", "a\0", None, 7, ["a"], "$secret"],
)
def test_odd_names_are_refused_by_everyone(name: Any) -> None:
    for refuse in (
        lambda: check_secret_name(name),
        lambda: reference_to(name),
        lambda: find_secrets({"x": {"$secret": name}}),
        lambda: prepare(a_job(args={"x": {"$secret": name}})),
    ):
        with pytest.raises(Invalid, match=r"small letters|NUL"):
            refuse()


@pytest.mark.parametrize(
    "args", [{"$secret": "a"}, {"x": {"$secret": "a", "more": 1}}, {"x": [{"$secret": {"$secret": "a"}}]}]
)
def test_what_only_looks_like_a_reference_is_refused_when_it_is_submitted(args: Any) -> None:
    with pytest.raises(Invalid) as refused:
        prepare(a_job(args=args))
    assert refused.value.field == "args"


def test_a_name_is_part_of_a_variable() -> None:
    assert variable_of("stripe_key2") == "TIDE_SECRET_STRIPE_KEY2"
    assert check_secret_name("a" * 64) == "a" * 64
