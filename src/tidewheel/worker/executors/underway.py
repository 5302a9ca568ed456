"""A run under way in a tree of processes: what functions and commands have in common."""

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, Protocol

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.outcome import Usage
from tidewheel.tasks.ending import TOO_LONG, End, Ended
from tidewheel.worker.execution import Order
from tidewheel.worker.executors import scratch
from tidewheel.worker.launcher.messages import BodyEnded, Word
from tidewheel.worker.sandbox import tree
from tidewheel.worker.sandbox.limits import MAX_PROCESSES

_OOM_KILL: Final = -signal.SIGKILL

_log = logging.getLogger(__name__)

Kills = Callable[[], int]
"""Returns how many processes of a run the kernel has killed for want of memory."""


class Holder(Protocol):
    """What a run is in."""

    @property
    def pid(self) -> int | None:
        """The root of its processes, once it is known."""

    def tell(self, word: Word) -> None:
        """Pass a word on to it; nothing happens if it has ended."""


class Underway:
    """Implements `Execution`. However the body ends once it was asked to stop, that is how the run ended."""

    def __init__(self, order: Order, holder: Holder, kills: Kills | None = None) -> None:
        self.order = order
        self.holder = holder
        self.kills = kills
        """Counts what the kernel killed of it for want of memory; None if nothing counts that for it alone."""
        self._left: str | None = None
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ended] = self._loop.create_future()
        self._asked: End | None = None
        self._killed: tuple[End, str] | None = None
        self._was_paused = False
        self._used = (0.0, 0)
        """Seconds of CPU and bytes of memory, as seen when it had to be killed."""
        self._deadline: asyncio.TimerHandle | None = None

    async def wait(self) -> Ended:
        """Return how it ended, once it and every process that it left behind are gone."""
        return await self._ended

    def stop(self, end: End, grace: float) -> None:
        """Ask it to end, and kill all of it if it has not within `grace` seconds. A second call may shorten that."""
        if self._ended.done():
            return
        if self._asked is None:
            self._asked = end
            self.holder.tell("stop")
        if self._deadline is not None and self._deadline.when() <= self._loop.time() + grace:
            return  # it was asked before, and may be asked ever again
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = self._loop.call_later(grace, self._end_by_force)

    def kill(self, end: End, why: str) -> None:
        """End it at once for a reason of the worker's own."""
        if not self._ended.done() and self._killed is None:
            self._killed = (end, why)
            self._end_by_force()

    def _end_by_force(self) -> None:
        """Kill it; what it used is looked at before, for whoever is killed cannot tell."""
        try:
            if (root := self.holder.pid) is not None:
                pids = list(islice(tree.descendants(root), MAX_PROCESSES))
                self._used = (sum(map(tree.cpu_seconds, pids)), sum(map(tree.resident, pids)))
        finally:
            self.holder.tell("kill")

    def pause(self) -> None:
        """Stop all of its processes where they are."""
        if not self._ended.done():
            self._was_paused = True
            self.holder.tell("pause")

    def resume(self) -> None:
        """Let them go on."""
        if not self._ended.done():
            self.holder.tell("resume")

    def close(self) -> None:
        """Remove its scratch directory; after `wait`."""
        if self._left is not None:
            scratch.remove(self._left)

    @property
    def was_disturbed(self) -> bool:
        """Whether it was told anything that may reach its process after its end."""
        return self._was_paused or self._asked is not None or self._killed is not None

    @contextlib.contextmanager
    def sure_to_end(self) -> Iterator[None]:
        """End it whatever is raised while its end is seen to: a run that nobody ends would keep its slot for good."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - as it says
            _log.exception("the end of job %s could not be seen to", self.order.job_id)
            self.holder.tell("kill")
            if not self._ended.done():
                self.finish(Ended(end=End.ERROR, message=f"the worker could not see to its end: {error}"), None)

    def finish(self, ended: Ended, left: str | None) -> None:
        """Note how it ended by itself, where what was done to it counts more, and where that is which it left."""
        self._left = left
        if self._deadline is not None:
            self._deadline.cancel()
        ended = msgspec.structs.replace(ended, usage=self._known(ended.usage))
        if self._killed is not None:
            ended = Ended(end=self._killed[0], message=self._killed[1], usage=ended.usage, files=ended.files)
        elif self._asked is not None:
            ended = Ended(
                end=self._asked,
                result=ended.result,
                message=TOO_LONG if self._asked is End.TIMEOUT else ended.message,
                detail=ended.detail,
                exit_code=ended.exit_code,
                usage=ended.usage,
                files=ended.files,
            )
        if not self._ended.done():
            self._ended.set_result(ended)

    def _known(self, usage: Usage) -> Usage:
        """Return what a run said of its use, or what was seen of it last."""
        cpu, resident = self._used
        return msgspec.structs.replace(
            usage, cpu_seconds=usage.cpu_seconds or cpu, peak_rss_bytes=usage.peak_rss_bytes or resident
        )


class EndedAtOnce:
    """Implements `Execution` for a run that could not be started."""

    def __init__(self, ended: Ended) -> None:
        self._ended = ended

    async def wait(self) -> Ended:
        """Return why."""
        return self._ended

    def stop(self, end: End, grace: float) -> None:
        """Do nothing."""

    def pause(self) -> None:
        """Do nothing."""

    def resume(self) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def with_files(ended: Ended, left: str | None) -> Ended:
    """Return the end of a run with the output files that it left; what cannot be taken is fatal."""
    if left is None:
        return ended
    try:
        return msgspec.structs.replace(ended, files=scratch.output_files(left))
    except Invalid as error:
        return Ended(end=End.FATAL, message=str(error), exit_code=ended.exit_code, usage=ended.usage)


def end_of_tree(body: BodyEnded | None, usage: Usage, *, oom_kills: Callable[[], int]) -> Ended:
    """Judge the end of a run whose whole tree is gone before it could say anything."""
    if body is None:
        return Ended(end=End.SIGNAL, message="its processes were killed from outside", usage=usage)
    if body.status is None:
        return Ended(end=End.ERROR, message=f"its process could not be set up: {body.broken}", usage=usage)
    return end_by_signal(body.status, usage, oom_kills=oom_kills) or Ended(
        end=End.ERROR,
        message=f"its process ended with exit code {body.status}",
        exit_code=body.status,
        usage=usage,
    )


def end_by_signal(status: int, usage: Usage, *, oom_kills: Callable[[], int]) -> Ended | None:
    """Judge the end of a process that was ended by a signal; None if it exited."""
    if status == _OOM_KILL and oom_kills():
        return Ended(end=End.OOM, message="the kernel killed it for want of memory", usage=usage)
    if status < 0:
        return Ended(end=End.SIGNAL, message=f"killed by {_signal_name(-status)}", usage=usage)
    return None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
