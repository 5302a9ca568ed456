"""Tasks for the tests of running workers: each does one thing that a user may do."""

# Real time in real processes, also where it should not be used.
# ruff: noqa: TID251, ASYNC110, ASYNC240, ASYNC251

import asyncio
import logging
import os
import sys
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from tidewheel import App, Concurrency, Context, Fatal, Rate, Retry, RetryPolicy

SOON = RetryPolicy(max_attempts=3, delay=timedelta(milliseconds=10))
PATIENCE = 60.0
"""Seconds after which a task that nobody ended ends by itself, so that a broken test leaves nothing behind."""


@dataclass
class Visit:
    who: str
    at: datetime


def spin_until(path: str) -> None:
    """Hold the thread until a file is there."""
    latest = time.monotonic() + PATIENCE
    while not Path(path).exists() and time.monotonic() < latest:
        time.sleep(0.01)


async def wait_until(path: str) -> None:
    latest = time.monotonic() + PATIENCE
    while not Path(path).exists() and time.monotonic() < latest:
        await asyncio.sleep(0.01)


app = App()


# Results


@app.task(name="later.async")
async def later_async(visit: Visit, by: timedelta) -> Visit:
    return Visit(visit.who.upper(), visit.at + by)


@app.task(name="later.plain")
def later_plain(visit: Visit, by: timedelta) -> Visit:
    return Visit(visit.who.upper(), visit.at + by)


@app.task(name="text.async", retry=SOON)
async def text_async(length: int) -> str:
    return "ä" * (length // 2)


@app.task(name="text.plain", retry=SOON)
def text_plain(length: int) -> str:
    return "ä" * (length // 2)


@app.task(name="odd.async", retry=SOON)
async def odd_async() -> Any:
    return {"when": {1, 2}}


@app.task(name="odd.plain", retry=SOON)
def odd_plain() -> Any:
    return {"when": {1, 2}}


@app.task(name="add")
async def add(a: int, b: int) -> int:
    return a + b


@app.task(name="trace.async")
async def trace_async(ctx: Context) -> str | None:
    return ctx.traceparent


@app.task(name="trace.plain")
def trace_plain(ctx: Context) -> list[str | None]:
    return [ctx.traceparent, os.environ.get("TRACEPARENT"), os.environ.get("TRACESTATE")]


@app.task(name="sum")
def total(numbers: list[int]) -> int:
    return sum(numbers)


@app.task(name="echo")
async def echo(value: Any) -> Any:
    return value


# Errors


def raised(how: str, number: int) -> str:
    if how == "retry" and number == 1:
        raise Retry("not yet", after="10ms")
    if how == "fatal":
        raise Fatal("no such order")
    if how == "error" or (how == "twice" and number < 3):
        raise ValueError(f"attempt {number} broke")
    return f"attempt {number}"


@app.task(name="end.async", retry=SOON)
async def end_async(ctx: Context, how: str) -> str:
    return raised(how, ctx.number)


@app.task(name="end.plain", retry=SOON)
def end_plain(ctx: Context, how: str) -> str:
    return raised(how, ctx.number)


# Words


def speak(ctx: Context) -> None:
    print("printed")
    print("complained", file=sys.stderr)
    print("\x1b[31mred\x1b[0m \x1b]0;title\x07bell\x07")
    logging.getLogger("shop").warning("logged %d", 7)
    ctx.log.info("by the context")


@app.task(name="speak.async")
async def speak_async(ctx: Context, until: str) -> None:
    speak(ctx)
    await wait_until(until)


@app.task(name="speak.plain")
def speak_plain(ctx: Context, until: str) -> None:
    speak(ctx)
    spin_until(until)


@app.task(name="flood.async")
async def flood_async(lines: int, width: int) -> None:
    for number in range(lines):
        print(f"{number:08}".ljust(width, "."))
        if number % 1000 == 0:
            await asyncio.sleep(0)


@app.task(name="flood.plain")
def flood_plain(lines: int, width: int) -> None:
    for number in range(lines):
        print(f"{number:08}".ljust(width, "."))


@app.task(name="know.async", retry=SOON)
async def know_async(ctx: Context, end: str, until: str) -> dict[str, Any]:
    save(ctx)
    await wait_until(until)
    return go_on(ctx, end)


@app.task(name="know.plain", retry=SOON)
def know_plain(ctx: Context, end: str, until: str) -> dict[str, Any]:
    save(ctx)
    spin_until(until)
    return go_on(ctx, end)


def save(ctx: Context) -> None:
    if ctx.saved is None:
        ctx.checkpoint({"page": 3})


def go_on(ctx: Context, end: str) -> dict[str, Any]:
    if ctx.number == 1:
        if end == "retry":
            raise Retry("once more", after=0)
        os.kill(os.getpid(), 9)
    return {"attempt": list(ctx.attempt), "token": ctx.token, "number": ctx.number, "saved": ctx.saved}


@app.task(name="progress.async")
async def progress_async(ctx: Context, until: str) -> None:
    ctx.progress(0.25, "a quarter")
    await wait_until(until)


@app.task(name="progress.plain")
def progress_plain(ctx: Context, until: str) -> None:
    ctx.progress(0.25, "a quarter")
    spin_until(until)


# Secrets


def tell(ctx: Context, password: str, how: str) -> Any:
    """Tell a secret at every occasion."""
    sys.stdout.write(password[:9])
    sys.stdout.flush()
    sys.stdout.write(f"{password[9:]} in two pieces\n")
    print("complained about", password, file=sys.stderr)
    logging.getLogger("shop").warning("logged %s", password)
    ctx.log.info(password)
    ctx.progress(0.5, f"with {password}")
    ctx.checkpoint({"password": [password]})
    if how == "error":
        raise ValueError(f"{password} was refused")
    if how == "long":
        raise Fatal("x" * 1990 + password)
    if how == "deep":
        raise ValueError("y" * 16_345 + password + "z" * 30)
    if how == "large":
        return [password] * 20_000
    return {"length": len(password), "it": password, password: [password]}


@app.task(name="tell.async", retry=RetryPolicy(max_attempts=1))
async def tell_async(ctx: Context, password: str, how: str) -> Any:
    return tell(ctx, password, how)


@app.task(name="tell.plain", retry=RetryPolicy(max_attempts=1))
def tell_plain(ctx: Context, password: str, how: str) -> Any:
    return tell(ctx, password, how)


@app.task(name="build.reference")
async def build_reference() -> dict[str, str]:
    return {"$secret": "password"}


@app.task(name="stumble.async")
async def stumble_async() -> list[str]:
    return [name for name in os.environ if name.startswith("TIDE_SECRET")]


@app.task(name="stumble.plain")
def stumble_plain() -> list[str]:
    return [name for name in os.environ if name.startswith("TIDE_SECRET")]


# What does not end by itself


@app.task(name="wait.async")
async def wait_async(until: str) -> str:
    try:
        await wait_until(until)
    except asyncio.CancelledError:
        print("cancelled")
        raise
    return "waited"


@app.task(name="wait.looks")
def wait_looks(ctx: Context, until: str) -> str:
    latest = time.monotonic() + PATIENCE
    while not Path(until).exists() and not ctx.cancelled and time.monotonic() < latest:
        time.sleep(0.01)
    print("cancelled" if ctx.cancelled else "not cancelled")
    return "looked"


@app.task(name="wait.plain")
def wait_plain(until: str) -> str:
    spin_until(until)
    return "waited"


@app.task(name="block", retry=False)
async def block(seconds: float) -> None:
    time.sleep(seconds)


@app.task(name="block.below", retry=False)
async def block_below(seconds: float) -> None:
    async def below() -> None:
        time.sleep(seconds)

    await asyncio.wait_for(below(), 2 * seconds)


@app.task(name="cling", retry=False)
async def cling() -> None:
    print("begun")
    for _ in range(int(PATIENCE)):
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            print("never")


# What asks for more, and what leaves


@app.task(name="again.async", retry=False)
async def again_async(times: int) -> list[str]:
    """Be enqueued again and again; return the ids of all that follow."""
    if not times:
        return []
    follower = await again_async.aenqueue(times - 1)
    return [str(follower.id), *await follower.aresult("60s")]


@app.task(name="again.plain", retry=False)
def again_plain(times: int) -> None:
    again_plain.enqueue(times - 1)


@app.task(name="leave", retry=False)
async def leave(how: str) -> None:
    """End the program, as a library might, in a task of its own."""

    async def go() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt if how == "interrupt" else SystemExit(3)

    if how == "group":
        async with asyncio.TaskGroup() as group:
            group.create_task(go())
    await asyncio.gather(go(), asyncio.sleep(0))


@app.task(name="fork.async", retry=False)
async def fork_async(*, suspends: bool) -> int:
    """Fork, come back in the copy as well, and return how that one ended."""
    pid = os.fork()
    if pid == 0:
        if suspends:
            await asyncio.sleep(PATIENCE)
        return 0
    _, status = await asyncio.to_thread(os.waitpid, pid, 0)
    return os.waitstatus_to_exitcode(status)


class Leaving(Exception):
    def __str__(self) -> str:
        raise SystemExit(3)


@app.task(name="leave.told", retry=False)
async def leave_told() -> None:
    raise Leaving


# Sharing


def stay(until: str) -> tuple[float, float]:
    began = time.monotonic()
    spin_until(until)
    return began, time.monotonic()


@app.task(name="all.cpu", resources={"cpu": 2}, retry=SOON)
def all_cpu(seconds: float) -> tuple[float, float]:
    began = time.monotonic()
    time.sleep(seconds)
    return began, time.monotonic()


@app.task(name="cpu.end", resources={"cpu": 2}, retry=False)
def cpu_end(how: str) -> None:
    if how == "crash":
        os.kill(os.getpid(), 9)
    if how == "failure":
        raise ValueError(how)
    if how in ("cancel", "timeout"):
        time.sleep(PATIENCE)


@app.task(name="hog", resources={"memory": "64MiB"}, retry=SOON)
def hog(mebibytes: int) -> int:
    return len(b"x" * (mebibytes << 20))


@app.task(name="small", resources={"cpu": 1})
def small(until: str) -> None:
    spin_until(until)


@app.task(name="alone", concurrency=1)
async def alone(seconds: float) -> tuple[float, float]:
    began = time.monotonic()
    await asyncio.sleep(seconds)
    return began, time.monotonic()


@app.task(name="paced", rate=Rate("20/s", burst=1))
async def paced() -> float:
    return time.monotonic()


@app.task(name="low.pause", preempt="pause", priority="low")
def low_pause(until: str) -> tuple[float, float]:
    return stay(until)


@app.task(name="low.requeue", preempt="requeue", priority="low")
def low_requeue(until: str) -> tuple[float, float]:
    return stay(until)


@app.task(name="low.shared", preempt="pause", priority="low", concurrency=Concurrency(2, name="shared"))
def low_shared(until: str) -> tuple[float, float]:
    return stay(until)


@app.task(name="urgent.shared", priority="high", concurrency=Concurrency(2, name="shared"))
def urgent_shared(until: str) -> tuple[float, float]:
    return stay(until)


@app.task(name="urgent", priority="high")
def urgent(until: str) -> tuple[float, float]:
    return stay(until)


# Endings

ONCE_MORE = RetryPolicy(max_attempts=2, delay=timedelta(hours=1), jitter="none")


@app.task(name="ends.plain", retry=ONCE_MORE)
def ends_plain(how: str) -> Any:
    if how == "timeout":
        time.sleep(1)
    return _end(how)


@app.task(name="ends.async", retry=ONCE_MORE)
async def ends_async(how: str) -> Any:
    if how == "timeout":
        await asyncio.sleep(1)
    if how == "cancels itself":
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await asyncio.sleep(0)
    return _end(how)


def _end(how: str) -> Any:
    endings: dict[str, BaseException] = {
        "retry": Retry("not now", after=60),
        "fatal": Fatal("never"),
        "error": ValueError("wrong"),
        "exit": SystemExit(3),
        "exit with words": SystemExit("enough"),
        "interrupt": KeyboardInterrupt(),
        "cancelled": asyncio.CancelledError("why"),
        "no memory": MemoryError(),
    }
    if how in endings:
        raise endings[how]
    return {"large": "x" * 100_000, "too large": "x" * (65 << 20), "not JSON": object(), "null": None}.get(how, [how])
