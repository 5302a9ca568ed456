"""The slots of a runner: long-lived tasks of the event loop, each serving one run after the other.

A coroutine that never suspends costs no turn of the loop and no new task: the slot that has the loop simply awaits one
after the other. Only when one suspends is the next slot woken to go on with what is waiting.
"""

import asyncio
import contextvars
import os
import types
from collections.abc import Callable, Coroutine, Generator
from datetime import timedelta
from typing import Any, Final, NoReturn, Protocol

from tidewheel.logs.handler import current_sink
from tidewheel.model.job import Run
from tidewheel.model.outcome import NO_DELAY
from tidewheel.tasks.context import Context
from tidewheel.tasks.ending import End
from tidewheel.worker.page import Page
from tidewheel.worker.storing import Storing

COPY: Final = 70
"""The exit code of a copy of a runner that a task made by forking."""


class SlotOwner(Protocol):
    """Who has the slots."""

    page: Page
    overtime: float

    def on_suspended(self, slot: "Slot") -> None:
        """Code of this slot's run let go of the loop for the first time."""


class Reporting(Protocol):
    """Where a run speaks."""

    def speak_up(self) -> None:
        """Have what it says stored from now on while it runs."""


class Slot:
    """One of the tasks; `run` is what it serves now."""

    def __init__(self, owner: SlotOwner) -> None:
        self._owner = owner
        self._page = owner.page
        self._timer: asyncio.TimerHandle | None = None
        self._key = b""
        self._token = 0
        self.must_end_by = 0.0
        """When the supervisor ends this process, if the run has not ended by then."""
        self.task: asyncio.Task[None] | None = None
        self.run: Run | None = None
        self.context: Context | None = None
        self.report: Reporting | None = None
        self.ending: End | None = None
        """Why its coroutine was cancelled, if that was our doing."""
        self.released = False
        """Whether to give the run back instead of reporting an end."""
        self.again_after = NO_DELAY
        """How long it then waits at least."""
        self.disowned = False
        self.storing = Storing()
        self.was_cancelled = False
        """Whether its task was asked to end since that was last shaken off; it may not have heard of it yet."""
        self.deadline = 0.0
        self.has_suspended = False
        self._over = False

    def begin(self, run: Run, deadline: float) -> None:
        """Take a run to be served."""
        self.run, self.deadline, self.ending = run, deadline, None
        self.released = self.disowned = self.has_suspended = self._over = False
        self.context = self.report = None
        self.again_after = NO_DELAY
        self._key, self._token = run.job_id.bytes, run.token
        self.must_end_by = deadline + self._owner.overtime

    def body_ended(self) -> None:
        """Note that the code of the run has ended; from now on it cannot be cancelled any more."""
        self._over = True
        if self.has_suspended:
            self._page.over(self._key, self._token)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.task is not None and (self.ending is not None or self.has_suspended):
            while self.task.uncancel():  # also what its own code or that of an earlier run has asked for
                pass

    def put_off(self, after: timedelta) -> None:
        """Have the run given back, which could not begin, to be tried again after a while."""
        self.released, self.again_after = True, after

    def finish(self) -> None:
        """Be free again. Only when the outcome was handed over: until then the run is held here."""
        self.run = self.context = self.report = None

    def entered(self) -> None:
        """Note that the code of this run has the loop."""
        self._page.enter(self._key, self._token, self.must_end_by)

    def left(self) -> None:
        """Note that nobody's code has the loop."""
        self._page.leave()

    @property
    def waits(self) -> bool:
        """Whether code of its run has let go of the loop, and is to get it again."""
        return self.run is not None and self.has_suspended and not self._over

    def is_expected(self) -> None:
        """Note that the loop may be silent until this run must have ended, and no longer."""
        self._page.expect(self.must_end_by, self._key, self._token)

    def suspended(self) -> None:
        """Note the first time that the code lets go of the loop."""
        self.has_suspended = True
        if self.report is not None:
            self.report.speak_up()
        self._page.begun(self._key, self._token)
        self._owner.on_suspended(self)

    def call_after(self, seconds: float, call: "Callable[[Slot], None]") -> None:
        """Have something done to this run after a while, unless it ends before."""
        if self._over:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(max(seconds, 0.0), call, self)

    def cancel(self, end: End) -> bool:
        """Cancel the coroutine of the run, if that was not done before: the first reason stands."""
        if self._over or self.ending is not None:
            return False
        if self.context is not None:
            self.context.request_stop()
        self.ending = end
        if self.task is not None:
            self.task.cancel()
        return True

    def blame(self) -> None:
        """Ask the supervisor to end this process, since the run does not end."""
        self._page.blame(self._key, self._token)


class SlotTask(asyncio.Task[None]):
    """The task of a slot. Code of a run may keep it, as in a timeout of its own; it can cancel that run alone by it."""

    def __init__(self, slot: Slot, work: Coroutine[Any, Any, None]) -> None:
        super().__init__(work)
        self._slot = slot

    def cancel(self, msg: Any | None = None) -> bool:
        """Cancel it, unless what an earlier run has left behind asks for that."""
        asking: object = current_sink.get()
        if asking is not None and asking is not self._slot.report:
            return False
        self._slot.was_cancelled = True
        return super().cancel(msg)


def end_copies() -> None:
    """Have a copy that a task makes of this process, by `os.fork`, end when it comes back from the code of the task.

    It shares all connections with the original, to the store and to the supervisor, and must not touch them. Whether
    the code of a task waits, returns or raises, one of these methods is called next; the original pays nothing for it.
    """

    def end(_: Slot) -> None:
        os._exit(COPY)

    def make_them_end() -> None:
        for method in ("suspended", "left", "body_ended"):
            setattr(Slot, method, end)

    os.register_at_fork(after_in_child=make_them_end)


def before_exit(tell: Callable[[], None]) -> None:
    """Have someone told before code of a task ends this process by `os._exit`.

    It may do so in a task or a thread of its own, which no slot sees. Copies of this process may end as they like.
    """
    original, leave = os.getpid(), os._exit

    def leave_known(status: int) -> NoReturn:
        try:
            if os.getpid() == original:
                tell()
        finally:  # nobody comes back from here
            leave(status)

    os._exit = leave_known


class Steps(Protocol):
    """Whom to tell how a coroutine comes along."""

    def entered(self) -> None:
        """Its code gets the loop."""

    def suspended(self) -> None:
        """Its code let go of the loop for the first time."""

    def left(self) -> None:
        """Its code let go of the loop, and waits."""


@types.coroutine
def in_steps(
    coroutine: Coroutine[Any, Any, Any], context: contextvars.Context, steps: Steps
) -> Generator[Any, Any, Any]:
    """Await a coroutine in a context of its own, telling when its code has the loop and when not."""
    steps.entered()
    try:
        waits_for = context.run(coroutine.send, None)
    except StopIteration as end:
        return end.value
    steps.suspended()
    while True:
        steps.left()
        try:
            value = yield waits_for
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # noqa: BLE001 - it is the coroutine's to handle
            step: Callable[[Any], Any] = coroutine.throw
            given: Any = error
        else:
            step, given = coroutine.send, value
        steps.entered()
        try:
            waits_for = context.run(step, given)
        except StopIteration as end:
            return end.value
