"""Bodies of tasks for the chaos runs: kind ones that leave evidence, and every sort of unkind one, all bounded.

Each is given the folder for its evidence, and returns its token, so that the accepted result says whose it is.
"""

import asyncio
import contextlib
import os
import signal
import time
from typing import Final

from harness.witness import TICK, Evidence, boottime, tick_for, witnessed
from tidewheel.tasks.context import Context

MOST_FORKS: Final = 4000
MOST_MEBIBYTES: Final = 4096
MOST_SECONDS: Final = 120.0
"""No unkind body does more than this, even if nothing stops it."""

_MEBIBYTE = 1024 * 1024
_FILTH = b"\x00\xff\xfe\x1b[31m\r" + bytes(range(256))


# In the event loop of a runner


async def quick(ctx: Context, folder: str) -> int:
    """Do nothing, well."""
    with witnessed(folder, ctx.job_id, ctx.token):
        return ctx.token


async def doze(ctx: Context, folder: str, seconds: float) -> int:
    """Sleep in the event loop."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        await _tick_for(evidence, seconds)
    return ctx.token


async def block(ctx: Context, folder: str, seconds: float) -> int:
    """Block the event loop, as a careless task does."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        tick_for(evidence, min(seconds, MOST_SECONDS))
    return ctx.token


async def cling(ctx: Context, folder: str, seconds: float) -> int:
    """Swallow every cancellation and go on."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        until = boottime() + min(seconds, MOST_SECONDS)
        while (left := until - boottime()) > 0:
            with contextlib.suppress(asyncio.CancelledError):
                await _tick_for(evidence, left)
    return ctx.token


async def kill_runner(ctx: Context, folder: str) -> int:
    """Kill the process that runs it, each time: a poison pill."""
    with witnessed(folder, ctx.job_id, ctx.token):
        os.kill(os.getpid(), signal.SIGKILL)
    return ctx.token


async def _tick_for(evidence: Evidence, seconds: float) -> None:
    until = boottime() + seconds
    while (left := until - boottime()) > 0:
        evidence.tick()
        await asyncio.sleep(min(TICK, left))


# In a process of the pool


def nap(ctx: Context, folder: str, seconds: float) -> int:
    """Sleep in a process of its own."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        tick_for(evidence, seconds)
    return ctx.token


def stumble(ctx: Context, folder: str, times: int) -> int:
    """Fail in the first attempts."""
    with witnessed(folder, ctx.job_id, ctx.token):
        if ctx.number <= times:
            raise RuntimeError(f"failed on purpose, {ctx.number} of {times}")
    return ctx.token


def obey(ctx: Context, folder: str, seconds: float) -> int:
    """Sleep until asked to stop."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        until = boottime() + min(seconds, MOST_SECONDS)
        while boottime() < until:
            if ctx.cancelled:
                raise RuntimeError("stopped, as asked")
            tick_for(evidence, TICK)
    return ctx.token


def ignore(ctx: Context, folder: str, seconds: float) -> int:
    """Sleep on, whatever one asks."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        tick_for(evidence, min(seconds, MOST_SECONDS))
    return ctx.token


def spin(ctx: Context, folder: str, seconds: float) -> int:
    """Use all of a core and never yield."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        until, next_tick = boottime() + min(seconds, MOST_SECONDS), 0.0
        while (now := boottime()) < until:
            if now >= next_tick:
                evidence.tick()
                next_tick = now + TICK
    return ctx.token


def kill_parent(ctx: Context, folder: str) -> int:
    """Kill whoever started this process, each time: a poison pill."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        parent = os.getppid()
        if parent > 1:  # in a namespace of its own there is nobody to kill
            os.kill(parent, signal.SIGKILL)
        tick_for(evidence, 1.0)
    return ctx.token


def fork_bomb(ctx: Context, folder: str, forks: int) -> int:
    """Fork until it is refused or has had enough; the children only sleep."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        for _ in range(min(forks, MOST_FORKS)):
            if os.fork() == 0:
                time.sleep(MOST_SECONDS)
                os._exit(0)
        tick_for(evidence, 0.2)
    return ctx.token


def hog(ctx: Context, folder: str, mebibytes: int) -> int:
    """Use memory, all of it touched."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        held = []
        for _ in range(min(mebibytes, MOST_MEBIBYTES)):
            held.append(b"\x01" * _MEBIBYTE)
            evidence.tick()
        tick_for(evidence, 0.2)
    return ctx.token


def flood(ctx: Context, folder: str, mebibytes: int) -> int:
    """Write filth to the output as fast as it is taken."""
    with witnessed(folder, ctx.job_id, ctx.token):
        chunk = (_FILTH * (_MEBIBYTE // len(_FILTH) + 1))[:_MEBIBYTE]
        for _ in range(min(mebibytes, MOST_MEBIBYTES)):
            view = memoryview(chunk)
            while view:
                view = view[os.write(1, view) :]
    return ctx.token


def spawn_daemon(ctx: Context, folder: str, seconds: float) -> int:
    """Leave a process behind that hides, ignores signals and goes on, and wait with it until stopped."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        if os.fork() == 0:
            _hide()
            tick_for(evidence, min(seconds, MOST_SECONDS))
            os._exit(0)
        tick_for(evidence, min(seconds, MOST_SECONDS))
    return ctx.token


def abandon_daemon(ctx: Context, folder: str, seconds: float) -> int:
    """Leave such a process behind, and end well at once."""
    with witnessed(folder, ctx.job_id, ctx.token) as evidence:
        if os.fork() == 0:
            _hide()
            tick_for(evidence, min(seconds, MOST_SECONDS))
            os._exit(0)
        tick_for(evidence, 0.2)
    return ctx.token


def _hide() -> None:
    """Fork twice, leave the session, and be deaf to signals."""
    os.setsid()
    if os.fork():
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
