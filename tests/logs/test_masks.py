"""Secrets in lines."""

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
