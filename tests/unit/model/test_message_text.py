"""The words of a message: whatever happened, and whatever it says of itself, they are bounded text."""

import pytest

from tidewheel.errors import Invalid
from tidewheel.model.message_text import MAX_TEXT, NAMES, check_template, fill

WORDS = {name: f"<{name}>" for name in NAMES}


@pytest.mark.parametrize("template", ["$", "$$$", "${kind", "$nothing", "${}", "$ kind", "x" * 2001, "\x00", 7])
def test_a_template_that_would_fail_is_refused_in_one_sentence_before_anything_is_told(template: object) -> None:
    with pytest.raises(Invalid, match=r"^text: ") as refused:
        check_template("text", template)
    assert "\n" not in str(refused.value)


def test_a_template_is_filled_by_what_is_known() -> None:
    template = check_template("text", "$kind of ${tenant} costs $$5")
    assert fill(template, WORDS) == "<kind> of <tenant> costs $5"


@pytest.mark.parametrize("template", ["", "$error", "$kind: $error $detail"])
@pytest.mark.parametrize(
    "hostile",
    ["$kind $nothing ${", "\x1b[31mred\x1b[0m", "a\x00b\ud800c", "x" * 1_000_000, "{0} %s {kind!r}"],
    ids=repr,
)
def test_what_a_job_says_of_itself_fills_no_template_again_and_is_bounded(template: str, hostile: str) -> None:
    text = fill(template, {**WORDS, "error": hostile})
    assert len(text) <= MAX_TEXT
    assert text.encode()
    assert not {"\x00", "\x1b"} & set(text)
    if hostile.startswith("$"):
        assert "$kind $nothing ${" in text
    if hostile.startswith("\x1b"):
        assert "red" in text
        assert "[31m" not in text


@pytest.mark.parametrize("stored", ["$", "${kind", "$nothing"])
def test_a_template_that_was_stored_although_it_is_wrong_loses_no_message(stored: str) -> None:
    assert fill(stored, WORDS) == stored
