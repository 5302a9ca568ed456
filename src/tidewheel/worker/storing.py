"""What a run leaves behind, on its way to where it is kept: a drain whose time is over breaks that off."""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Storing:
    """One run's way, or one after the other's. No task is made for it: most runs leave nothing that takes time."""

    def __init__(self) -> None:
        self._task: asyncio.Task[object] | None = None
        self._is_broken_off = False

    async def see_through(self, work: Awaitable[T]) -> T | None:
        """Wait for the work, and return what comes of it; None if it is broken off."""
        self._task, self._is_broken_off = asyncio.current_task(), False
        try:
            return await work
        except asyncio.CancelledError:
            if not self._is_broken_off or self._task is None:
                raise
            self._task.uncancel()
            return None
        finally:
            self._task = None

    def break_off(self) -> None:
        """Have the work end at once, if there is any."""
        if self._task is not None and not self._is_broken_off:
            self._is_broken_off = True
            self._task.cancel()
