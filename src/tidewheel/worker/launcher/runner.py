"""The body of a tree that runs plain functions, one after the other, and cleans up after each."""

import _thread
import contextlib
import gc
import logging
import os
import resource
import select
import signal
import socket
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Final, NamedTuple, TextIO
from uuid import UUID

import msgspec

from tidewheel.observe.tracing import inside
from tidewheel.tasks.binding import Caller
from tidewheel.tasks.context import Context
from tidewheel.tasks.registry import Registry
from tidewheel.worker.launcher.bearing import Bearing, bearing, getsignal
from tidewheel.worker.launcher.calls import call
from tidewheel.worker.launcher.frames import read_frames
from tidewheel.worker.launcher.messages import Done, Job, Ready
from tidewheel.worker.launcher.speaking import Speaker, SpeakingHandler
from tidewheel.worker.launcher.variables import Variables
from tidewheel.worker.sandbox import environment, kernel, tree
from tidewheel.worker.sandbox.limits import allow_data
from tidewheel.worker.sandbox.place import is_as_given

MAX_JOBS: Final = 1_000
MAX_RESIDENT: Final = 512 * 1024 * 1024
"""A runner that has had so many jobs, or has become so large, is replaced by a fresh one."""
BEGINS_WITHIN: Final = 2
"""Milliseconds for a thread to begin that was started."""


class _Used(NamedTuple):
    """What this process and its children have used since it was forked."""

    cpu_seconds: float
    peak: int


class Runner:
    """Lives in a process of its own, from the fork to the end."""

    def __init__(self, registry: Registry, channel: socket.socket, init: int | None) -> None:
        self._registry = registry
        self._channel = channel
        self._init = init
        """The pid of the tree's root if the tree is not a namespace, and leftovers must be looked for below it."""
        self._speaker = Speaker(channel)
        self._decode = msgspec.json.Decoder(Job).decode
        self._variables = Variables()
        self._streams = (_line_buffered(1), _line_buffered(2))
        self._told_to_stop = False
        self._context: Context | None = None
        self._callers: dict[str, Caller] = {}
        self._jobs = 0
        self._used = _used_so_far()
        self._bearing: Bearing | None = None
        self._threads = 0

    def serve(self, layers: tuple[str, ...]) -> None:
        """Run jobs until this runner is used up, or the host is gone."""
        hear_all(logging.getLogger(), SpeakingHandler(self._speaker))
        gc.enable()
        self._bearing, self._threads = bearing(), _kernel_threads()
        self._speaker.say(Ready((*layers, "scratch", "environment", "shared-process")))
        for data in read_frames(self._channel):
            done = self._carry_out(self._decode(data))
            self._speaker.say(done)
            if done.last:
                return

    def _carry_out(self, job: Job) -> Done:
        self._jobs += 1
        with self._place_of(job):
            done = self._call_within(job)
            self._tidy_up()
        before, self._used = self._used, _used_so_far()
        resident = tree.resident_here()
        return msgspec.structs.replace(
            done,
            cpu_seconds=self._used.cpu_seconds - before.cpu_seconds,
            peak_rss=self._used.peak if self._used.peak > before.peak else resident,
            untidy=not is_as_given(job.scratch),
            last=self._is_used_up(done, resident),
        )

    def _call_within(self, job: Job) -> Done:
        """Call the task with no more memory than it was given."""
        if job.memory is None:
            return self._call(job)
        allow_data(job.memory)
        try:
            return self._call(job)
        except MemoryError:  # it could not even say so
            return Done(end="oom", message="it ran out of the memory that it was given")
        finally:
            allow_data(None)

    def _call(self, job: Job) -> Done:
        caller = self._caller(job.kind)
        if caller is None:
            return Done(end="unknown", message=f"the app has no task {job.kind!r}")
        if getsignal(signal.SIGTERM) != self.on_stop:
            signal.signal(signal.SIGTERM, self.on_stop)
        self._context = self._context_of(job) if caller.wants_context else None
        if self._told_to_stop and self._context is not None:
            self._context.request_stop()
        with inside(job.trace):
            return call(caller, job.args, self._context)

    def _context_of(self, job: Job) -> Context:
        return Context(
            job_id=UUID(job.job_id),
            token=job.token,
            epoch=job.epoch,
            attempt=job.attempt,
            saved=job.saved,
            reporter=self._speaker,
            trace=job.trace,
        )

    def _caller(self, kind: str) -> Caller | None:
        """Return how to call a task, looked up once: most runners serve few kinds."""
        if kind not in self._callers and (task := self._registry.get(kind)) is not None:
            self._callers[kind] = Caller(task.function, task.context)
        return self._callers.get(kind)

    def on_stop(self, _number: int, _frame: FrameType | None) -> None:
        """Let the task see that it was asked to stop."""
        self._told_to_stop = True
        if self._context is not None:
            self._context.request_stop()

    @contextlib.contextmanager
    def _place_of(self, job: Job) -> Iterator[None]:
        """Be in the scratch directory and in the environment of a job."""
        os.chdir(job.scratch)
        told = environment.of_job(
            job_id=job.job_id,
            attempt=job.attempt,
            epoch=job.epoch,
            token=job.token,
            scratch=job.scratch,
            trace=job.trace,
        )
        self._variables.make(told)
        sys.stdout, sys.stderr = self._streams
        try:
            yield
        finally:
            os.chdir("/")

    def _tidy_up(self) -> None:
        """Write out what is buffered, and end every process that the task left behind."""
        for stream in (*self._streams, getattr(sys, "stdout", None), getattr(sys, "stderr", None)):
            with contextlib.suppress(BaseException):  # the task may have put anything there, or nothing
                stream.flush()  # type: ignore[union-attr]
        kernel.flush_c_streams()
        if self._init is None:
            _end_namespace_but_self()
        else:
            tree.kill_all(self._init, keep=os.getpid())

    def _is_used_up(self, done: Done, resident: int) -> bool:
        return (
            self._jobs >= MAX_JOBS
            or self._told_to_stop
            or done.end == "oom"
            or self._has_threads()
            or resident > MAX_RESIDENT
            or any(_is_closed(stream) for stream in self._streams)
            or bearing() != self._bearing
        )

    def _has_threads(self) -> bool:
        """Tell whether code in Python still runs, also in a thread that `threading` does not know.

        One that has not begun yet is known to the kernel alone. What libraries in C have started stays, and may.
        """
        now = _kernel_threads()
        if now > self._threads and not _thread._count():  # noqa: SLF001 - of all that run Python
            select.poll().poll(BEGINS_WITHIN)
            self._threads = now
        return _thread._count() > 0  # noqa: SLF001


def _end_namespace_but_self() -> None:
    """Kill all other processes of the namespace but its init, and wait until they are gone."""
    while os.getppid() == 1:  # in a namespace of its own; anywhere else this would reach all processes of the user
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            return
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        os.sched_yield()
    raise RuntimeError("the init of this namespace is gone")


def hear_all(root: logging.Logger, handler: logging.Handler) -> None:
    """Let a handler hear all, in place of those that write to what is captured anyway, as of `logging.basicConfig`."""
    if not root.handlers:  # the app set nothing up
        root.setLevel(logging.INFO)
    for other in list(root.handlers):
        if type(other) is logging.StreamHandler and other.stream in (sys.__stdout__, sys.__stderr__):
            root.removeHandler(other)
    root.addHandler(handler)


def _kernel_threads() -> int:
    """Return a number that grows with each thread of this process, whoever started it; 0 if there is no /proc."""
    try:
        return os.stat("/proc/self/task").st_nlink  # noqa: PTH116 - one call, and no listing, after each function
    except OSError:
        return 0


def _is_closed(stream: TextIO) -> bool:
    try:
        return stream.closed
    except ValueError:  # the task took its buffer away
        return True


def _line_buffered(fd: int) -> TextIO:
    return open(fd, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _used_so_far() -> _Used:
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return _Used(
        own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime,
        max(own.ru_maxrss, children.ru_maxrss) * 1024,
    )
