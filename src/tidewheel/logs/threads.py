"""Threads of a run: what they print and log is the run's, as what its coroutines do."""

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import partial
from typing import Any

from tidewheel.logs.handler import current_sink


def carry_runs_into_threads() -> None:
    """Have threads that a run starts know it from now on, as `asyncio.to_thread` does it, and Python 3.14 if asked to.

    What is handed to a pool knows whoever handed it over: the threads of a pool serve one run after the other.
    """
    start, submit = threading.Thread.start, ThreadPoolExecutor.submit

    def start_knowing(self: threading.Thread) -> None:
        if current_sink.get() is not None:
            _make_known(self)
        start(self)

    def submit_knowing(self: ThreadPoolExecutor, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        return submit(self, partial(copy_context().run, fn), *args, **kwargs)

    threading.Thread.start = start_knowing  # type: ignore[method-assign]
    ThreadPoolExecutor.submit = submit_knowing  # type: ignore[method-assign, assignment]


def _make_known(thread: threading.Thread) -> None:
    context, run = copy_context(), thread.run

    def run_knowing() -> None:
        del thread.run  # which holds on to the thread
        context.run(run)

    thread.run = run_knowing  # type: ignore[method-assign]
