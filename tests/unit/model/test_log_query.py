"""The quick look at lines, which must never overlook what the closer one would find."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.log_query import LogFilter, LogSearch, _field
from tidewheel.model.log_words import fields_of, level_of, said, words_to_index

VALUES = st.text(max_size=20) | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans()


@given(
    fields=st.dictionaries(st.text(min_size=1, max_size=10), VALUES, min_size=1, max_size=3), ascii_only=st.booleans()
)
def test_whatever_field_a_line_has_its_quick_look_passes(fields: dict[str, Any], *, ascii_only: bool) -> None:
    line = json.dumps(fields, ensure_ascii=ascii_only)

    for name, value in fields_of(line).items():
        assert _field(name.lower(), said(value).lower()).needle in line.lower() or "\\u" in line.lower()


def search_for(text: str) -> LogSearch:
    return LogSearch(LogFilter(text=text))


def is_found(text: str, line: str) -> bool:
    """Tell whether a query finds a line, and see to it that the index says so, too, if it does."""
    found = search_for(text).means("stdout", None, line)
    if found:
        words = words_to_index([line], [None])
        assert all(any(token in words for token, _ in asked) for asked in search_for(text).tokens)
    return found


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,8}", fullmatch=True)
TYPED = st.text(alphabet='ab1é_.:-+/\\([#@ "', min_size=1, max_size=8)


@given(name=NAMES, value=TYPED, before=TYPED, after=TYPED)
def test_what_is_found_is_found_by_the_index_too(name: str, value: str, before: str, after: str) -> None:
    value = value.replace('"', "")
    for line in (f"{before}{name}:{value}{after}", json.dumps({name: value, "message": f"{before}{name}:{value}"})):
        is_found(f'{name}:"{value}"', line)
    assert is_found(f'{name}:"{value}"', json.dumps({name: value}))


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ('who:"a b"', '{"who": "a b"}', True),
        ('who:"a b"', '{"who": "a+b"}', False),
        ("who:a_b", '{"who": "a b"}', False),
        ("Who:ADA", '{"who": "Ada"}', True),
        (f"url:{'x' * 130}A", json.dumps({"url": "x" * 130 + "A"}), True),
        (f"url:{'x' * 130}A", json.dumps({"url": "x" * 130 + "B"}), False),
        (f"-url:{'x' * 130}A", json.dumps({"url": "x" * 130 + "B"}), True),
        ("localhost:5432", "connection to localhost:5432 refused", True),
        ("localhost:5432", "connection to Localhost:5432, refused", True),
        ("localhost:5432", '{"message": "connection to localhost:5432 refused"}', True),
        ("localhost:5432", "postgresql://me@localhost:5432/jobs", True),
        ("localhost:5432", "tcp:localhost:5432", True),
        ("localhost:5432", "localhost:54321", False),
        ("localhost:5432", "localhost 5432", False),
        ("localhost:5432", "my-localhost:5432", False),
        ("-localhost:5432", "connection to localhost:5432 refused", False),
        ('host:"db 7"', "host:db 7 is away", True),
        ("t:-5", '{"t": -5}', True),
        ("t:-5", "t:-5 outside", True),
        ("c:\\temp", "no C:\\temp here", True),
        ('empty:""', '{"empty": ""}', True),
        ('empty:""', '{"empty": "x"}', False),
    ],
)
def test_a_name_with_a_value_is_a_field_with_just_that_value_or_that_text(text: str, line: str, *, found: bool) -> None:
    assert is_found(text, line) is found


@pytest.mark.parametrize(
    ("text", "line", "marked"),
    [
        ('event:"slow query"', '{"event": "slow query", "ms": 7}', ["slow query"]),
        ("user.id:42", '{"user": {"id": 42}, "n": 1420}', ["42"]),
        ("localhost:5432", "connection to localhost:5432 refused", ["localhost:5432"]),
        ("path:C:\\x", '{"path": "C:\\\\x"}', ["C:\\\\x"]),
        ('empty:""', '{"empty": ""}', []),
    ],
)
def test_what_was_found_of_a_field_is_marked(text: str, line: str, marked: list[str]) -> None:
    assert is_found(text, line)
    excerpt = search_for(text).excerpt(line)
    assert [excerpt.text[start:end] for start, end in excerpt.marks] == marked


@pytest.mark.parametrize(
    ("number", "level"),
    [(10, "debug"), (20, "debug"), (30, "info"), (40, "warning"), (50, "error"), (60, "critical"), (7, None)],
)
def test_levels_of_pino_are_numbers(number: int, level: str | None) -> None:
    line = json.dumps({"level": number, "msg": "x"})
    assert level_of(None, fields_of(line)) == level
    assert LogSearch(LogFilter(level="error")).means("stdout", None, line) is (level in ("error", "critical"))
    if level is not None:
        assert f"level={level}" in words_to_index([line], [None])


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("ms:1500.0", '{"ms": 1.5e3}'),
        ("ms:1.5", '{"ms": 1.50}'),
        ("user:ab", '{"user": "\\u0061b"}'),
        ("User:42", '{"user": 42}'),
        ('path:"a b"', '{"path": "A B"}'),
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
