"""Hints through LISTEN and NOTIFY: one connection that listens while anyone does, one that tells after commits."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from tidewheel.clock import Clock
from tidewheel.errors import Unavailable
from tidewheel.store.bell import Bell
from tidewheel.store.postgres.connection import CONNECT_TIMEOUT, LOST, SQL, Dial, RawConnection

CHANNEL: Final = "tidewheel"
PAUSE: Final = 0.005
"""Seconds between two notifications of a process at least."""
AFTER_AN_ERROR: Final = 1.0
CHECK_EVERY: Final = 30.0
"""Seconds until a connection on which nothing came is asked whether it is still there."""
FIRST_DELAY: Final = 0.05
LONGEST_DELAY: Final = 5.0
GOODBYE: Final = 2.0
GUESSES: Final = (0.005, 0.02, 0.1, 0.3, 1.0)
"""Seconds after which a transaction that nobody here sees the end of may have committed."""


class Hints:
    """What a store tells and hears."""

    def __init__(self, dial: Dial, clock: Clock) -> None:
        self._teller = Teller(dial, clock)
        self._listener = Listener(dial, clock, self._teller)
        self._clock = clock

    def send(self) -> None:
        """Let all who listen know, here at once and elsewhere soon. Waits for nothing; call it after the commit."""
        self._listener.ring()
        self._teller.tell()

    def send_for_a_while(self) -> None:
        """Send some hints over the next second."""
        for seconds in GUESSES:
            asyncio.get_running_loop().call_later(seconds, self.send)

    @asynccontextmanager
    async def listen(self) -> AsyncIterator[Bell]:
        """See `store.base.HintStore.listen`."""
        bell = Bell(self._clock)
        await self._listener.add(bell)
        try:
            yield bell
        finally:
            await self._listener.remove(bell)

    async def close(self) -> None:
        """End both connections; what was to be told is told if it takes no longer than a moment."""
        await self._listener.close()
        await self._teller.close()


class Teller:
    """Notifies the other processes: the first time at once, then once for all that came up in a few milliseconds."""

    def __init__(self, dial: Dial, clock: Clock) -> None:
        self._dial = dial
        self._clock = clock
        self._connection: RawConnection | None = None
        self._task: asyncio.Task[None] | None = None
        self._pending = False
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The number of its session."""
        return None if self._connection is None else self._connection.get_server_pid()

    def tell(self) -> None:
        self._pending = not self._closed
        if self._pending and self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tell())
            self._task.add_done_callback(self._done)

    async def close(self) -> None:
        self._closed = True
        task = self._task
        if task is not None:
            await asyncio.wait([task], timeout=GOODBYE)
            task.cancel()
            await asyncio.wait([task])
        connection, self._connection = self._connection, None
        await hang_up(connection)

    def _done(self, task: "asyncio.Task[None]") -> None:
        self._task = None
        if not task.cancelled() and task.exception() is not None:
            self._connection = None
        if self._pending:  # it came up after the last look of the task, and before this
            self.tell()

    async def _tell(self) -> None:
        while self._pending:
            self._pending = False
            told = await self._notify() or await self._notify()  # a connection that was cut while idle shows only now
            if not self._closed:
                await self._clock.sleep(PAUSE if told else AFTER_AN_ERROR)

    async def _notify(self) -> bool:
        try:
            if self._connection is None:
                self._connection = await self._dial()
            await self._connection.execute(SQL["notify"], timeout=CONNECT_TIMEOUT)
        except LOST:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.terminate()
            return False
        return True


class Listener:
    """Hears what others tell, over a connection that there is while anyone listens."""

    def __init__(self, dial: Dial, clock: Clock, teller: Teller) -> None:
        self._dial = dial
        self._clock = clock
        self._teller = teller
        self._bells: set[Bell] = set()
        self._task: asyncio.Task[None] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._tried = asyncio.Event()
        self._healthy = False
        self._closed = False
        self._random = random.Random()  # noqa: S311 - spreads retries, guards nothing

    def ring(self) -> None:
        for bell in self._bells:
            bell.ring()

    async def add(self, bell: Bell) -> None:
        """Let a bell ring from now on; if there is no connection yet, wait for the first try to make one."""
        if self._closed:
            raise Unavailable("the store was closed")
        self._bells.add(bell)
        bell.healthy = self._healthy
        if self._task is None:
            self._tried.clear()
            self._task = asyncio.get_running_loop().create_task(self._stay_connected())
        try:
            await self._tried.wait()
        except BaseException:
            await self.remove(bell)
            raise

    async def remove(self, bell: Bell) -> None:
        self._bells.discard(bell)
        if not self._bells:
            await self._stop()

    async def close(self) -> None:
        self._closed = True
        await self._stop()
        self._note_health(healthy=False)

    async def _stop(self) -> None:
        task, self._task, self._healthy = self._task, None, False
        if task is not None:
            task.cancel()
            self._ending.add(task)
            task.add_done_callback(self._ending.discard)
        if self._ending:
            await asyncio.wait(self._ending)

    async def _stay_connected(self) -> None:
        delay = FIRST_DELAY
        while True:
            with suppress(*LOST):
                async with self._connected() as loss:
                    delay = FIRST_DELAY
                    await loss.wait()
            self._note_health(healthy=False)
            self._tried.set()
            await self._clock.sleep(delay * self._random.uniform(0.5, 1.0))
            delay = min(2 * delay, LONGEST_DELAY)

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator["Loss"]:
        """Listen on a new connection; rings once, for what was missed before."""
        connection = await self._dial()
        loss = Loss(connection, self._clock)
        try:
            await connection.add_listener(CHANNEL, self._hear)
            self._teller.tell()  # whoever does not hear even itself, as behind some poolers, must not rely on it
            self.ring()
            self._tried.set()
            yield loss
        finally:
            await hang_up(connection)

    def _hear(self, _connection: Any, pid: int, _channel: str, _payload: object) -> None:
        if pid != self._teller.pid:  # who told it has rung its own bells already
            self.ring()
        elif not self._healthy:
            self._note_health(healthy=True)

    def _note_health(self, *, healthy: bool) -> None:
        self._healthy = healthy
        for bell in self._bells:
            bell.healthy = healthy
            bell.ring()


class Loss:
    """Notices when a connection is lost, also one that fell silent without a word."""

    def __init__(self, connection: RawConnection, clock: Clock) -> None:
        self._connection = connection
        self._ended = Bell(clock)
        connection.add_termination_listener(self._end)

    async def wait(self) -> None:
        """Return when the connection has ended, or raise one of `LOST`."""
        while not await self._ended.wait(CHECK_EVERY):
            await self._connection.fetchval(SQL["still_there"], timeout=CONNECT_TIMEOUT)

    def _end(self, _connection: object) -> None:
        self._ended.ring()


async def hang_up(connection: RawConnection | None) -> None:
    """Close a connection in good order, if that is possible within a moment."""
    if connection is not None and not connection.is_closed():
        try:
            await connection.close(timeout=GOODBYE)
        except LOST:
            connection.terminate()
