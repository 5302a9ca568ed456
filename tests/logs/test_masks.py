"""Secrets in lines."""

import json

import pytest

from tidewheel.logs.masks import Masks


@pytest.mark.parametrize(
    ("secrets", "text", "seen"),
    [
        ([], "all of it", "all of it"),
        (["hunter2"], "the password is hunter2, hunter2!", "the password is ***, ***!"),
        (["abc"], "abc is too short", "abc is too short"),
        (["abcd"], "abcd is long enough", "*** is long enough"),
        (["pass", "password"], "password pass", "*** ***"),
        (["key\nof several\nlines"], "of several and lines but key", "*** and *** but key"),
        (["ge\x07heim"], r"ge\x07heim", "***"),
        (["pässwörd"], "pässwörd", "***"),
        ([""], "nothing", "nothing"),
    ],
)
def test_secrets_are_hidden(secrets: list[str], text: str, seen: str) -> None:
    assert Masks(secrets).hide(text) == seen
    assert Masks(secrets).hide_in([text, "other"]) == [seen, "other"]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("the password is hunter22", "the password is ***"),
        ("…unter22 was refused", "…was refused"),
        ("it said hunter…", "it sai…"),
        ("…hunter22…", "…"),
        ("…", "…"),
        ("", ""),
    ],
)
def test_no_piece_of_a_secret_is_left_where_a_text_was_cut(text: str, seen: str) -> None:
    assert Masks(["hunter22"]).hide_in_cut(text) == seen
    assert Masks().hide_in_cut(text) == text


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ('{"a":["hunter\\"22"],"x hunter\\"22":1}', '{"a":["***"],"x ***":1}'),
        ('{"a": 1}', '{"a": 1}'),
        ('"line one\\nhunter\\"22"', '"line one\\n***"'),
        ("12345", "12345"),
        ("null", "null"),
    ],
)
def test_texts_in_json_are_hidden_and_it_stays_json(text: str, seen: str) -> None:
    assert Masks(['hunter"22', "1234"]).hide_in_json(text) == seen
    assert Masks().hide_in_json(text) == text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(['it\'s 5 "ü"/\t\\']),
        json.dumps(['it\'s 5 "ü"/\t\\'], ensure_ascii=False),
        repr('it\'s 5 "ü"/\t\\'),
        repr(['it\'s 5 "ü"/\t\\']),
        "https://example.com/?token=it%27s%205%20%22%C3%BC%22%2F%09%5C&x=1",
        "https://example.com/?token=it%27s+5+%22%C3%BC%22%2F%09%5C",
    ],
)
def test_secrets_are_hidden_also_as_json_repr_and_in_urls(text: str) -> None:
    seen = Masks(['it\'s 5 "ü"/\t\\']).hide(text)
    assert "***" in seen
    assert "5" not in seen
