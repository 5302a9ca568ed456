"""The descriptors 1 and 2 of a process that serves many runs: what programs print to them is of nobody knows whom."""

import logging
import os
import sys
import threading
from typing import Final, TextIO

_CHUNK: Final = 64 * 1024
_AGAIN_AT: Final = 10
"""How many times as much must have come until that is told again."""

_log = logging.getLogger(__name__)


def keep_descriptors_apart() -> None:
    """Have the streams of this process go where they went, and what else comes to their descriptors go nowhere.

    It may be of any run and hold its secrets, so only how much it was is told. Before anything else uses the streams.
    """
    sys.stdout, sys.stderr = _moved(sys.stdout), _moved(sys.stderr)
    read_end, write_end = os.pipe()
    for number in (1, 2):
        os.dup2(write_end, number)
    os.close(write_end)
    # A thread: someone may wait for a program in the event loop, and the program for room in the pipe.
    threading.Thread(target=_drop_all, args=(read_end,), name="output of no run", daemon=True).start()


def _moved(stream: TextIO) -> TextIO:
    """Return a stream to the same place by a descriptor that is not inherited."""
    stream.flush()
    return open(os.dup(stream.fileno()), "w", buffering=1, encoding=stream.encoding, errors=stream.errors)  # noqa: PTH123


def _drop_all(read_end: int) -> None:
    total, tell_at = 0, 1
    while data := os.read(read_end, _CHUNK):
        total += len(data)
        if total >= tell_at:
            tell_at = total * _AGAIN_AT
            _log.warning(
                "programs that async functions started have printed %d bytes that are dropped, as it is not known of"
                " which run they are: have them print to a pipe, or start them in a plain function",
                total,
            )
