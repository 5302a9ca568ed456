"""Threads for what blocks while a message is sent: looks for names, and the clients of services.

They are none of those that all of a process share, which are few: a name server that does not answer would hold up
whatever else needs one of these, and the messages of everybody else.
"""

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

THREADS: Final = 64
"""More than twice as many as messages may be under way: one that was given up may hold its thread for a while."""


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that blocks."""
    call = functools.partial(copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool(), call)


@functools.cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tide-notify")


os.register_at_fork(after_in_child=_pool.cache_clear)  # threads are not inherited
