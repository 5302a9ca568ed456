"""How a runner speaks to its host: from any thread of the task, and only from the process that was started for it."""

import logging
import os
import socket
import threading
from collections.abc import Iterator
from typing import Final

import msgspec

from tidewheel.model.checks import clean_text
from tidewheel.tasks.log_fields import USUAL_COUNT, with_fields
from tidewheel.worker.launcher.frames import frame
from tidewheel.worker.launcher.messages import Logged, Progressed, Saved, Words

LONGEST: Final = 1024 * 1024
"""Characters of a line that are sent: as many as are kept of all that a run says. What is longer is cut, marked by `…`,
and the host must take what is before that for half a secret. It alone knows secrets, and nothing else is cut here."""
_CUT: Final = "…"
_LEVELS: Final = (
    (logging.CRITICAL, "critical"),
    (logging.ERROR, "error"),
    (logging.WARNING, "warning"),
    (logging.INFO, "info"),
)


class Speaker:
    """Implements `tasks.context.Reporter`."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._encode = msgspec.json.Encoder().encode

    def say(self, words: Words) -> None:
        """Send words to the host; a process that a task forked has no voice."""
        if os.getpid() != self._pid:
            return
        data = frame(self._encode(words))
        with self._lock:
            self._channel.sendall(data)

    def log(self, level: str, text: str) -> None:
        for piece in _pieces(clean_text(text, len(text))):
            self.say(Logged(level, piece))

    def progress(self, fraction: float, message: str) -> None:
        self.say(Progressed(fraction, clean_text(message, LONGEST)))

    def checkpoint(self, data: str) -> None:
        self.say(Saved(data))


class SpeakingHandler(logging.Handler):
    """Sends log records to the host."""

    def __init__(self, speaker: Speaker) -> None:
        super().__init__()
        self._speaker = speaker

    def emit(self, record: logging.LogRecord) -> None:
        try:
            level = next((name for number, name in _LEVELS if record.levelno >= number), "debug")
            has_fields, text = len(record.__dict__) > USUAL_COUNT, self.format(record)
            self._speaker.log(level, with_fields(record, text) if has_fields else text)
        except Exception:  # noqa: BLE001 - a record that cannot be formatted must not end the task
            self.handleError(record)


def _pieces(text: str) -> Iterator[str]:
    """Give a record in pieces that end with a line, so that each is one frame of bounded length."""
    start = 0
    while len(text) - start > LONGEST:
        end = text.rfind("\n", start, start + LONGEST + 1) + 1
        if end > 0:
            yield text[start:end]
        else:
            yield text[start : start + LONGEST - 1] + _CUT
            end = text.find("\n", start + LONGEST) + 1 or len(text)
        start = end
    if start < len(text) or not text:
        yield text[start:]
