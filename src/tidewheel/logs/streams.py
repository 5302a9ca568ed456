"""What tasks print in a process that serves many: each piece goes to the run that is under way."""

import io
import sys
from typing import Literal, TextIO, cast

from tidewheel.logs.handler import LARGE, NUMBERS, current_sink


class RoutedStream(io.TextIOBase):
    """Stands in for `sys.stdout` or `sys.stderr`; outside of runs it is the stream it stands for."""

    def __init__(self, name: Literal["stdout", "stderr"], original: TextIO) -> None:
        self._number = NUMBERS[name]
        self._original = original

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return "utf-8"

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
        return self._original.fileno()


def _text_of(given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"write() argument must be str, not {type(given).__name__}")
    return "".join(given)


def route_output() -> None:
    """Have everything that is printed from now on routed."""
    sys.stdout = cast("TextIO", RoutedStream("stdout", sys.stdout))
    sys.stderr = cast("TextIO", RoutedStream("stderr", sys.stderr))
