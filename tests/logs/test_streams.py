"""What stands in for the streams has what streams of the standard library have, and keeps runs apart."""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO, cast

import pytest

from tests.logs.test_handler import Sink, logging_to
from tidewheel.logs.handler import LARGE, STDOUT
from tidewheel.logs.streams import RoutedStream, set_up_by_the_app


@pytest.fixture
def original() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8")


@pytest.fixture
def stream(original: io.TextIOWrapper) -> RoutedStream:
    return RoutedStream("stdout", original)


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    raw = stream.buffer
    assert isinstance(raw, io.BytesIO)
    return raw.getvalue().decode()


def test_bytes_are_noted_in_their_run_and_pass_outside(stream: RoutedStream, original: io.TextIOWrapper) -> None:
    sink = Sink()
    print("first", file=stream)
    stream.buffer.write(b"outside\n")
    with logging_to(sink):
        assert stream.buffer.write(b"\xff\n") == 2
        assert stream.buffer.write(memoryview(b"view")) == 4
        stream.buffer.write(b"x" * (LARGE + 1))
        stream.buffer.flush()
        with pytest.raises(TypeError, match="bytes-like"):
            stream.buffer.write("text")  # type: ignore[call-overload]

    assert written(original) == "first\noutside\n"
    assert sink.said[:6] == [17, STDOUT, b"\xff\n", 17, STDOUT, b"view"]
    assert sink.pressed == [b"x" * (LARGE + 1)]


def test_another_text_stream_may_be_put_over_the_bytes_and_closed(stream: RoutedStream) -> None:
    sink = Sink()
    with logging_to(sink):
        with io.TextIOWrapper(stream.buffer, encoding="latin-1", write_through=True) as other:
            other.write("ü")
        stream.close()
        print("still open", end="", file=stream)

    assert [item for item in sink.said[2::3] if item] == ["ü".encode("latin-1"), "still open"]
    assert not stream.closed


def test_it_has_what_a_text_stream_has(stream: RoutedStream, original: io.TextIOWrapper) -> None:
    missing = [name for name in dir(original) if not name.startswith("_") and not hasattr(stream, name)]
    assert missing == []
    stream.reconfigure(encoding="ascii", line_buffering=True)
    assert (stream.name, stream.mode, stream.encoding, stream.errors) == ("<stdout>", "w", "utf-8", "replace")
    assert (stream.buffer.name, stream.isatty(), stream.writable(), stream.readable()) == (
        "<stdout>",
        False,
        True,
        False,
    )
    assert (stream.fileno(), stream.buffer.fileno()) == (1, 1), "what programs inherit, not where the original goes"


@contextmanager
def a_root() -> Iterator[logging.Logger]:
    """Give a root whose handler is that of the process."""
    root, stderr = logging.getLogger(), sys.stderr
    before, level = root.handlers[:], root.level
    sys.stderr = cast("TextIO", RoutedStream("stderr", stderr))
    root.handlers[:] = [logging.NullHandler()]
    try:
        yield root
    finally:
        root.handlers[:] = before
        root.setLevel(level)
        sys.stderr = stderr


def test_what_an_app_sets_up_counts_but_nothing_is_told_twice() -> None:
    to_text, elsewhere = logging.StreamHandler(io.StringIO()), logging.NullHandler()
    with a_root() as root:
        own = root.handlers[0]
        with set_up_by_the_app():
            logging.basicConfig(level=logging.DEBUG)
            root.addHandler(to_text)
            root.addHandler(elsewhere)
        handlers, level = root.handlers[:], root.level

    assert handlers == [own, to_text, elsewhere]
    assert level == logging.DEBUG


def test_an_app_cannot_take_the_own_log_away_nor_by_failing() -> None:
    def load() -> None:
        logging.basicConfig(force=True)
        raise ValueError("broken")

    with a_root() as root:
        own = root.handlers[0]
        with pytest.raises(ValueError, match="broken"), set_up_by_the_app():
            load()
        handlers = root.handlers[:]

    assert handlers == [own]
