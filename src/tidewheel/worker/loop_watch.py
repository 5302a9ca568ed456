"""What the supervisor makes of the event loop of a child, told the time: whether it is stuck, and because of whom.

The page tells whose own code has the loop, but not whose code a run left to the loop, as with `asyncio.gather`. So a
loop that has been silent for longer than any of its runs may take is asked who has it: a signal, which Python handles
in the middle of whatever code runs. Who does not even answer that is stopped, or deep inside some C code.
"""

import signal
from collections.abc import Callable
from typing import Final, NamedTuple

from tidewheel.worker.page import Current, Page

TURN_EVERY: Final = 1.0
"""Seconds between two words of a child that its loop turns."""
SILENCE: Final = 3.0
"""Seconds without such a word after which a loop does not turn."""
LONGEST_SILENCE: Final = 30.0
"""Seconds that a loop may be silent which has nothing to run, or runs no user code, or whose process is stopped."""
WHO_HAS_THE_LOOP: Final = signal.SIGRTMIN + 7
"""The question to a child; far from the signals that programs use."""


class Stuck(NamedTuple):
    """A loop that must be ended with its process."""

    run: Current | None
    """The run that should have ended; None if it cannot be told, or if there is none."""


class LoopWatch:
    """Looks at the page of one child, some times a second."""

    def __init__(self, page: Page, ask: Callable[[], None], is_stopped: Callable[[], bool]) -> None:
        self._page = page
        self._ask = ask
        self._is_stopped = is_stopped
        self._asked = False
        self._suspect: Stuck | None = None
        self.stop_by: float | None = None
        """When the grace of a run is over that was asked to stop; who is stopped itself can end none."""

    def look(self, now: float) -> Stuck | None:
        """Tell whether the loop is stuck; only what is seen twice is believed."""
        if (blamed := self._page.blamed) is not None:
            return Stuck(blamed)
        before, self._suspect = self._suspect, self._seen(now)
        return self._suspect if self._suspect == before else None

    def _seen(self, now: float) -> Stuck | None:
        pulse = self._page.pulse
        silent = now - pulse.turned if pulse.turned else 0.0
        if silent > self._longest_silence(now) and self._is_stopped():
            return Stuck(None)
        current = self._page.current
        if current is not None:
            return Stuck(current) if current.deadline <= now else None
        if silent < SILENCE or now < pulse.until:
            self._asked = False
            return None
        if not self._asked:
            self._asked = True
            self._ask()
            return None
        return Stuck(pulse.due)

    def _longest_silence(self, now: float) -> float:
        return SILENCE if self.stop_by is not None and now > self.stop_by else LONGEST_SILENCE
