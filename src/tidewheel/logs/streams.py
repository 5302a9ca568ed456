"""What tasks print in a process that serves many: each piece goes to the run that is under way."""

import io
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO, Literal, TextIO, cast

from tidewheel.logs.handler import LARGE, NUMBERS, RunSink, current_sink

_ENCODING = "utf-8"
_ERRORS = "replace"
Name = Literal["stdout", "stderr"]


class RoutedStream(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr`; outside of runs it is the stream it stands for."""

    encoding = _ENCODING
    errors = _ERRORS
    mode = "w"
    line_buffering = True
    write_through = True

    def __init__(self, name: Name, original: TextIO) -> None:
        self._number = NUMBERS[name]
        self._original = original
        self.name = f"<{name}>"
        self.buffer = cast("BinaryIO", RoutedBytes(name, original))

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        sink = current_sink.get()
        if sink is None:
            return self._original.write(text)
        if type(text) is not str:
            text = _text_of(text)
        said = sink.said
        said += (sink.time(), self._number, text)
        size = len(text)
        if len(said) > sink.room or size > LARGE:
            sink.press(text)
        return size

    def flush(self) -> None:
        self._original.flush()

    def fileno(self) -> int:
        """Return what a program would inherit, which is not the original (see `keep_descriptors_apart`)."""
        return self._number

    def reconfigure(self, **_: Any) -> None:
        """Change nothing: others print here, too."""

    def close(self) -> None:
        """Stay open, for the same reason."""


class RoutedBytes(io.BufferedIOBase):
    """Stands in for the buffer of such a stream."""

    mode = "wb"

    def __init__(self, name: Name, original: TextIO) -> None:
        self._number = NUMBERS[name]
        self._original = original
        self.name = f"<{name}>"

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        sink = current_sink.get()
        if sink is None:
            self._original.flush()
            return self._original.buffer.write(data)
        given = bytes(memoryview(data))
        _note(sink, self._number, given)
        return len(given)

    def flush(self) -> None:
        self._original.flush()

    def fileno(self) -> int:
        return self._number

    def close(self) -> None:
        """Stay open: others print here, too."""


def _note(sink: RunSink, number: int, data: bytes) -> None:
    said = sink.said
    said += (sink.time(), number, data)
    if len(said) > sink.room or len(data) > LARGE:
        sink.press(data)


def _text_of(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"write() argument must be str, not {type(given).__name__}")
    return "".join(given)


def route_output() -> None:
    """Have everything that is printed from now on routed."""
    sys.stdout = cast("TextIO", RoutedStream("stdout", sys.stdout))
    sys.stderr = cast("TextIO", RoutedStream("stderr", sys.stderr))


@contextmanager
def set_up_by_the_app() -> Iterator[None]:
    """Let an app set logging up as in a process of its own: `basicConfig` does nothing where there are handlers.

    Of what it sets up, levels stay and handlers, but for those that write to the streams: they would tell all twice.
    """
    root = logging.getLogger()
    own = root.handlers[:]
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = [*own, *(one for one in root.handlers if not _is_routed(one))]


def _is_routed(handler: logging.Handler) -> bool:
    return type(handler) is logging.StreamHandler and isinstance(handler.stream, RoutedStream)
