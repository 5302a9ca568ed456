"""Lines: the same whatever the chunks, harmless, and short."""

import re
import tracemalloc
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidewheel.logs.lines import CUT, MAX_LINE, LineCutter, lines_of_text
from tidewheel.logs.masks import MASK, Masks
from tidewheel.model.harmless_text import clean, is_odd, is_odd_text

HARMFUL = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")
SMALL = 8
SECRETS = ("hunter2!", "abcd", "cdef", "passwörd")

# Bytes that mean something are far more frequent than chance would have them.
PARTS = [b"\n", b"\r", b"\r\n", b"\x1b[31m", b"\x1b", b"[0m", b"\x1b]0;t\x07", b"\0", b"\xc3\xa4", b"\xc3", b"\xa4"]
PARTS += [b"\xe2\x80\xae", b"\xf0\x9f\x98\x80", b"\xff", b"abc", b"abcdef", b"hunter2!", b"hun", b"ter2!"]
PARTS += ["passwörd".encode(), b"pass", b"\x9b1m", b"\t", b"\x7f", b"\xe2\x80\xa8"]
output = st.lists(st.sampled_from(PARTS) | st.binary(max_size=20), max_size=30).map(b"".join)


def lines_of(data: bytes, cuts: list[int], together: tuple[bytes, ...] = (), max_line: int = SMALL) -> list[str]:
    cutter = LineCutter(together, max_line=max_line)
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    return [line for start, end in pairwise(places) for line in cutter.feed(data[start:end])] + cutter.flush()


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"one\ntwo\n", ["one", "two"]),
        (b"one\r\ntwo\r\n", ["one", "two"]),
        (b"\n\n", ["", ""]),
        (b"not ended", ["not ended"]),
        (b"10%\r20%\r100%\ndone\n", ["100%", "done"]),
        (b"10%\r20%\r", ["20%"]),
        (b"100%\r\r\r\n", ["100%"]),
        (b"\rabc\n", ["abc"]),
        (b"\r\n\r\n", ["", ""]),
        (b"abc\n\r", ["abc"]),
        (b"\xc3\xa4 \xff \xc3\n", ["ä \ufffd \ufffd"]),
        (b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07\x1b(B\x1b=x\n", ["red x"]),
        (b"\xc2\x9b31mred\xc2\x9d0;t\xc2\x9c.\n", ["red."]),
        (b"\x1bPq#0\x1b\\pic\n", ["pic"]),
        (b"bell\x07 nul\0 del\x7f esc\x1b\n", [r"bell\x07 nul\x00 del\x7f esc\x1b"]),
        (b"\x1b]0;never ended\n", [r"\x1b]0;never ended"]),
        ("abc\u202egpj.exe \u2066x\u2028y\n".encode(), [r"abc\u202egpj.exe \u2066x\u2028y"]),
        (b"a\tb\n", ["a\tb"]),
    ],
)
def test_examples(data: bytes, lines: list[str]) -> None:
    assert lines_of(data, [], max_line=MAX_LINE) == lines
    assert lines_of(data, list(range(len(data))), max_line=MAX_LINE) == lines


@given(output, st.lists(st.integers(min_value=0, max_value=1000), max_size=10), st.sampled_from([2, 3, 8, 20, 16384]))
@example(b"x" * 40 + b"\r" + b"y" * 30 + b"\r\r\nz", [41, 42, 70, 71, 72, 73], 8)
@example("ä€😀".encode() * 20, list(range(180)), 8)
def test_the_chunks_do_not_matter(data: bytes, cuts: list[int], max_line: int) -> None:
    whole = lines_of(data, [], max_line=max_line)

    assert lines_of(data, cuts, max_line=max_line) == whole
    assert lines_of(data, list(range(len(data))), max_line=max_line) == whole


@given(output, st.lists(st.integers(min_value=0, max_value=1000), max_size=10), st.sampled_from([12, 20, 16384]))
@example(b"x" * 15 + b"\r" + b"y" * 15 + b"\n", [], 12)
def test_the_chunks_do_not_matter_where_secrets_stay_together(data: bytes, cuts: list[int], max_line: int) -> None:
    raw = Masks(SECRETS).raw
    whole = lines_of(data, [], raw, max_line)

    assert lines_of(data, cuts, raw, max_line) == whole
    assert lines_of(data, list(range(len(data))), raw, max_line) == whole


@given(output)
def test_no_line_contains_what_could_do_harm(data: bytes) -> None:
    for line in lines_of(data, [], max_line=16384) + lines_of(data, []):
        assert not HARMFUL.search(line)


@given(st.text(st.characters(), max_size=50))
def test_text_is_made_harmless_whatever_it_is(text: str) -> None:
    lines = lines_of_text(text)

    assert lines
    for line in [*lines, clean(text)]:
        assert not HARMFUL.search(line)
        line.encode()


@given(st.text(st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"]), max_size=100))
def test_plain_text_stays_as_it_is(text: str) -> None:
    assert lines_of_text(text) == [text]
    assert lines_of(text.encode() + b"\n", [], max_line=MAX_LINE) == [text]


@given(
    st.lists(st.sampled_from([1, 3, 7, 8, 9, 50, 1000]), max_size=20), st.sampled_from([b"x", b"\r", b"\xa4", b"ab\r"])
)
def test_little_is_held_however_long_a_line_is(sizes: list[int], part: bytes) -> None:
    cutter = LineCutter((b"12345",), max_line=SMALL)

    for size in sizes:
        cutter.feed(part * size)
        assert len(cutter._pending) <= SMALL + 4 + 1


def test_a_line_of_many_megabytes_takes_little_memory_and_loses_nothing() -> None:
    cutter = LineCutter()
    chunk = b"0123456789abcdef" * 4096
    length = 0
    tracemalloc.start()
    try:
        for _ in range(400):
            length += sum(len(line) - len(CUT) for line in cutter.feed(chunk))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert length + len(cutter.flush()[0]) == 400 * len(chunk)
    assert peak < 2_000_000


def test_a_long_line_is_cut_visibly_and_not_within_a_character() -> None:
    data = "ä".encode() * MAX_LINE  # twice as many bytes
    odd = b"x" + data

    assert lines_of(data, [], max_line=MAX_LINE) == ["ä" * (MAX_LINE // 2) + CUT, "ä" * (MAX_LINE // 2)]
    assert "".join(line.removesuffix(CUT) for line in lines_of(odd, [], max_line=MAX_LINE)) == odd.decode()


def test_a_line_of_just_the_greatest_length_is_not_cut() -> None:
    assert lines_of(b"x" * MAX_LINE + b"\n", [], max_line=MAX_LINE) == ["x" * MAX_LINE]
    assert len(lines_of(b"x" * (MAX_LINE + 1) + b"\n", [], max_line=MAX_LINE)) == 2


@given(st.integers(min_value=0, max_value=60), st.integers(min_value=0, max_value=60), st.integers(min_value=1))
def test_a_secret_is_masked_wherever_a_long_line_is_cut(before: int, after: int, cut: int) -> None:
    masks = Masks(["hunter2!"])
    data = b"x" * before + b"hunter2!" + b"y" * after + b"\n"

    pieces = [masks.hide(line).removesuffix(CUT) for line in lines_of(data, [cut], masks.raw, 20)]

    assert "".join(pieces) == "x" * before + MASK + "y" * after


def test_what_is_odd_is_the_same_in_plain_text_and_in_any_other() -> None:
    for character in map(chr, range(0x80)):
        assert is_odd(f"a{character}") == is_odd(f"é{character}") == (clean(f"é{character}") != f"é{character}")
        assert is_odd_text(f"a{character}") == is_odd_text(f"é{character}") == (is_odd(character) and character != "\n")


def test_a_carriage_return_in_what_is_logged_hides_nothing() -> None:
    """In a terminal it begins the line anew; a record that has one was given it, perhaps to hide what it says."""
    assert lines_of_text("login of mallory failed\radmin logged in") == ["login of mallory failed\\x0dadmin logged in"]
    assert lines_of_text("one\r\ntwo\r\n") == ["one", "two"]
