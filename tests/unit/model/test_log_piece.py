"""Lines are read back from pieces as they were put together."""

from datetime import timedelta
from typing import Final
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.model.ids import EPOCH
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import MAX_PIECE, columns_of, lines_of, pieces_of

JOB: Final = UUID(int=7)

lines: Final = st.builds(
    LogLine,
    st.just(JOB),
    st.integers(1, 2),
    st.integers(1, 4),
    st.timedeltas(timedelta(), timedelta(days=80_000)).map(lambda since: EPOCH + since),
    st.sampled_from(("stdout", "stderr", "log", "system")),
    st.none() | st.sampled_from(("debug", "info", "warning", "error", "critical", "i", "")) | st.text(max_size=3),
    st.text() | st.sampled_from(("", "\n", "a\nb", "[1]\n")),
)


@given(st.lists(lines))
def test_every_line_comes_back_as_it_was(given_lines: list[LogLine]) -> None:
    pieces = pieces_of(given_lines)
    found = [line for piece in pieces for line in lines_of(piece.job_id, piece.token, piece.first, piece.lines)]
    assert sorted(found, key=repr) == sorted(given_lines, key=repr)


@pytest.mark.parametrize(("level", "many"), [("info", True), ("odd", True), ("info", False)])
def test_a_piece_tells_what_its_lines_are(level: str, *, many: bool) -> None:
    texts = ["one", "two"] if many else ["one"]
    said = [LogLine(JOB, 1, number, EPOCH, "log", level, text) for number, text in enumerate(texts, 1)]
    (piece,) = pieces_of(said)
    columns = columns_of(piece.lines)
    assert (list(columns.streams), list(columns.levels)) == (["log"] * len(texts), [level] * len(texts))
    assert columns.texts == texts


def test_many_long_lines_are_several_pieces() -> None:
    said = [LogLine(JOB, 1, number, EPOCH, "stdout", None, "x" * 1000) for number in range(1, 301)]
    pieces = pieces_of(said)
    assert [(piece.first, piece.last) for piece in pieces] == [(1, 132), (133, 264), (265, 300)]
    assert all(len(piece.lines) < 2 * MAX_PIECE for piece in pieces)
