"""One event loop in the background of a process, for code that has none: the synchronous face runs the async one there.

The thread starts with the first call and ends with the process. A process that was forked off gets a loop of its own;
what lived on the old one is neither used nor closed there, for its sockets and files are the parent's.
"""

import asyncio
import atexit
import concurrent.futures.thread  # noqa: F401 - its own hook at the end of the process must be registered before ours
import ctypes
import os
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

from tidewheel.errors import Conflict

T = TypeVar("T")

LOOK_EVERY: Final = 0.5
"""Seconds after which a wait is begun anew: a signal that comes just before a wait is noticed only at its end."""
CLOSE_WITHIN: Final = 10.0
"""Seconds that the end of the process waits for stores to close; what was committed is safe without."""


class Resident(Protocol):
    """Something that lives on the portal's loop."""

    async def leave(self) -> None:
        """Close what is open there."""
        ...


class Portal:
    """The background loop of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._residents: dict[int, Resident] = {}
        self.forbidden = threading.local()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, started if need be."""
        with self._lock:
            if self._loop is None:
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(target=self._loop.run_forever, name="tide-portal", daemon=True)
                self._thread.start()
            return self._loop

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its answer."""
        if why := self._why_not():
            work.close()
            raise Conflict(why)
        waiting = asyncio.run_coroutine_threadsafe(work, self.loop)
        try:
            while True:
                with suppress(TimeoutError):
                    return waiting.result(LOOK_EVERY)
                if waiting.done():
                    return waiting.result()
        except BaseException:
            waiting.cancel()  # Ctrl-C ends the wait, and with it the work
            raise

    async def arun(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its answer in another loop."""
        if asyncio.get_running_loop() is self.loop:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self.loop))

    def _why_not(self) -> str | None:
        if getattr(self.forbidden, "why", None):
            return str(self.forbidden.why)
        if self._thread is not None and threading.current_thread() is self._thread:
            return "a synchronous call would wait for itself here: await its async twin"
        return None

    def moved_in(self, resident: Resident) -> None:
        """Note who must leave before the process ends."""
        self._residents[id(resident)] = resident

    def moved_out(self, resident: Resident) -> None:
        """Note that one has left."""
        self._residents.pop(id(resident), None)

    def close(self) -> None:
        """Let all leave and end the loop."""
        if self._loop is None or self._thread is None:
            return
        with suppress(Exception):  # the process ends; what was committed is safe
            asyncio.run_coroutine_threadsafe(self._leave(), self._loop).result(CLOSE_WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_WITHIN)
        if not self._thread.is_alive():
            self._loop.close()

    async def _leave(self) -> None:
        for resident in list(self._residents.values()):
            with suppress(Exception):
                await resident.leave()


def leak(thing: object) -> None:
    """Keep something for good, so that it is never finalised: its finaliser would act on what is the parent's."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))


class _Current:
    portal: Portal = Portal()


def portal() -> Portal:
    """Return the portal of this process."""
    return _Current.portal


def _close_current() -> None:
    _Current.portal.close()


def _start_anew() -> None:
    leak(_Current.portal)
    _Current.portal = Portal()


os.register_at_fork(after_in_child=_start_anew)
# Thread pools, which stores use, refuse work once the hooks of `atexit` run; this hook comes before they do.
getattr(threading, "_register_atexit", atexit.register)(_close_current)
