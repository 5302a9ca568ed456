"""The beginning and the end of a run's output are kept."""

import pytest

from tidewheel.logs.masks import Masks
from tidewheel.logs.quota import LAST_BYTES, LAST_LINES, Line, Quota, Tail

NOW = 1_900_000_000 * 10**9
SECOND = 10**9


def texts(lines: list[Line]) -> list[str]:
    return [line.text for line in lines]


def test_lines_fit_until_the_quota_is_used_up() -> None:
    quota = Quota(10)

    assert quota.fit(["123", "12"]) == 2  # with their ends, seven bytes
    assert not quota.full
    assert quota.fit(["12", "", ""]) == 1
    assert quota.full


def test_bytes_count_and_not_characters() -> None:
    quota = Quota(5)

    assert quota.fit(["ää", ""]) == 1


def test_the_number_of_lines_is_bounded_too() -> None:
    quota = Quota(1000, max_lines=3)

    assert quota.fit(["", ""]) == 2
    assert quota.fit(["a", "b", "c"]) == 1
    assert quota.full
    assert quota.mark == "[output cut: more than 3 lines]"
    assert Quota().fit([""] * 20_000) == 10_000


@pytest.mark.parametrize(
    ("size", "words"), [(1024**2, "1 MiB"), (1536 * 1024, "1536 KiB"), (1000, "1000 bytes"), (2 * 1024**3, "2 GiB")]
)
def test_the_mark_says_how_much_was_allowed(size: int, words: str) -> None:
    assert Quota(size).mark == f"[output cut: more than {words}]"


def test_the_last_lines_of_all_streams_are_kept_in_order_with_their_times() -> None:
    tail = Tail(Masks())
    tail.take_line(Line(NOW, "log", "info", "logged"))
    tail.take_raw(NOW + SECOND, "stdout", b"begun ")
    tail.take_raw(NOW + 2 * SECOND, "stderr", b"error 1\nerr")
    tail.take_raw(NOW + 3 * SECOND, "stdout", b"and done\n")
    tail.take_raw(NOW + 4 * SECOND, "stderr", b"or 2")

    assert tail.end() == (
        None,
        [
            Line(NOW, "log", "info", "logged"),
            Line(NOW + 2 * SECOND, "stderr", None, "error 1"),
            Line(NOW + 3 * SECOND, "stdout", None, "begun and done"),
            Line(NOW + 4 * SECOND, "stderr", None, "error 2"),
        ],
    )


def test_what_is_left_out_is_counted() -> None:
    tail = Tail(Masks())
    lines = [f"line {number:05}" for number in range(10_000)]
    for start in range(0, 10_000, 7):
        tail.take_raw(NOW, "stdout", "".join(line + "\n" for line in lines[start : start + 7]).encode())

    left_out, last = tail.end()

    assert texts(last) == lines[-LAST_LINES:]
    assert left_out == f"[… {10_000 - LAST_LINES} lines, {11 * (10_000 - LAST_LINES)} bytes left out …]"


def test_one_chunk_larger_than_what_is_held_is_counted_too() -> None:
    tail = Tail(Masks())
    tail.take_raw(NOW, "stdout", b"0123456\n" * 100_000)

    left_out, last = tail.end()

    assert texts(last) == ["0123456"] * LAST_LINES
    assert left_out == f"[… {100_000 - LAST_LINES} lines, {8 * (100_000 - LAST_LINES)} bytes left out …]"


def test_long_last_lines_are_bounded_by_their_bytes() -> None:
    tail = Tail(Masks())
    for number in range(100):
        tail.take_raw(NOW, "stdout", b"%03d" % number + b"x" * 996 + b"\n")

    _, last = tail.end()

    assert len(last) == LAST_BYTES // 1000
    assert last[-1].text.startswith("099")


def test_a_line_whose_beginning_is_gone_is_not_shown() -> None:
    tail = Tail(Masks())
    tail.take_raw(NOW, "stdout", b"10%\r" * 100_000 + b"100%\nlast\n")

    assert texts(tail.end()[1]) == ["last"]


def test_the_end_of_one_endless_line_is_shown_without_what_may_be_half_a_secret() -> None:
    tail = Tail(Masks(["secret-of-20-letters"]))
    tail.take_raw(NOW, "stdout", b"secret-of-20-letters" * 5000 + b"x")
    tail.take_raw(NOW, "stdout", b"end")

    shown = "".join(texts(tail.end()[1]))

    assert shown.endswith("xend")
    assert "letters" not in shown


def test_a_last_line_without_its_beginning_does_not_end_a_secret() -> None:
    tail = Tail(Masks(["secret-of-20-letters"]))
    tail.take_raw(NOW, "stdout", b"secret-of-")
    tail.take_raw(NOW, "stderr", b"e\n" * 32_768)
    tail.take_raw(NOW, "stdout", b"20-letters and, at the end")

    assert tail.end()[1][-1].text == "…he end"


def test_what_is_held_is_bounded() -> None:
    tail = Tail(Masks())
    for _ in range(1000):
        tail.take_raw(NOW, "stderr", bytes(5000))
        tail.take_line(Line(NOW, "log", None, "x" * 1000))

    assert tail._held_bytes == sum(5000 if len(item) == 3 else 1001 for item in tail._held)
    assert tail._held_bytes < 64 * 1024 + 5000
