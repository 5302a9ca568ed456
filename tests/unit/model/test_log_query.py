"""The quick look at lines, which must never overlook what the closer one would find."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.log_query import LogFilter, LogSearch, _needle_of, _Term
from tidewheel.model.log_words import field_tokens, fields_of

VALUES = st.text(max_size=20) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


@given(
    fields=st.dictionaries(st.text(min_size=1, max_size=10), VALUES, min_size=1, max_size=3), ascii_only=st.booleans()
)
def test_whatever_field_a_line_has_its_quick_look_passes(fields: dict[str, Any], *, ascii_only: bool) -> None:
    line = json.dumps(fields, ensure_ascii=ascii_only)

    for token in field_tokens(fields_of(line)):
        assert _needle_of(_Term((), token)) in line.lower() or "\\u" in line.lower()


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ms:1500.0", '{"ms": 1.5e3}'),
        ("ms:1.5", '{"ms": 1.50}'),
        ("user:ab", '{"user": "\\u0061b"}'),
        ("User:42", '{"user": 42}'),
        ('path:"a b"', '{"path": "A,B"}'),
        ("deep.er:x", '{"deep": {"er": "x"}}'),
        ("ok:true sent", '{"ok": true, "event": "Sent"}'),
    ],
)
def test_a_value_that_is_written_in_another_way_is_found(text: str, line: str) -> None:
    search = LogSearch(LogFilter(text=text))

    assert search.may_be_in(line)
    assert search.means("stdout", None, line)


@pytest.mark.parametrize("text", ["user:42", "sent", "user:42 sent", '"was sent"'])
def test_what_lacks_a_value_or_a_word_is_not_looked_at_closely(text: str) -> None:
    search = LogSearch(LogFilter(text=text))

    assert not search.may_be_in('{"user": 43, "event": "closed"}')
