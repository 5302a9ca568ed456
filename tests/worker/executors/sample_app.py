"""An app for the tests of the executors: one task for each thing that can happen."""

import _thread
import asyncio
import contextlib
import ctypes
import gc
import importlib
import json
import locale
import logging
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import TaskDefinition, TaskOptions
from tidewheel.tasks.registry import Registry
from tidewheel.tasks.signals import Fatal, Retry


class App:
    def __init__(self) -> None:
        self.registry = Registry()


app = App()
not_an_app = 42
IMPORTED_BY = os.getpid()


def task(context: str | None = None, **options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def declare(function: Callable[..., Any]) -> Callable[..., Any]:
        app.registry.add(
            TaskDefinition(
                kind=function.__name__,
                function=function,
                mode="process",
                context=context,
                options=TaskOptions(**options),
            )
        )
        return function

    return declare


# Ends


@task()
def nothing() -> None:
    pass


WAYS_TO_SPOIL: dict[str, Callable[[], Any]] = {
    "closed stream": lambda: getattr(sys, "stdout").close(),  # noqa: B009 - as it is then
    "closed output": lambda: os.close(1),
    "other output": lambda: os.dup2(0, 2),
    "closed input": lambda: os.close(0),
    "umask": lambda: os.umask(0o111),
    "nice": lambda: os.nice(1),
    "ignored signal": lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    "handler": lambda: signal.signal(signal.SIGUSR1, lambda *_: None),
    "blocked signal": lambda: signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR2]),
    "alarm": lambda: signal.alarm(600),
    "open files": lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (50, 50)),
    "processor time": lambda: resource.setrlimit(resource.RLIMIT_CPU, (600, 600)),
    "processes": lambda: resource.setrlimit(resource.RLIMIT_NPROC, (7, 7)),
    "data": lambda: resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 40)),
    "stack": lambda: resource.setrlimit(resource.RLIMIT_STACK, (1 << 20, 1 << 20)),
    "processors": lambda: os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}),
    "many files": lambda: [os.dup(2) for _ in range(100)],
    "trace": lambda: sys.setprofile(lambda *_: None),
    "collector": gc.disable,
    "locale": lambda: locale.setlocale(locale.LC_ALL, "C.UTF-8" if locale.setlocale(locale.LC_ALL) == "C" else "C"),
}


@task()
def spoil(how: str) -> None:
    """Change something that whoever comes next would have to live with."""
    WAYS_TO_SPOIL[how]()


@task()
def print_and_go(text: str) -> None:
    print(text)


@task()
def add(a: int, b: int = 10) -> int:
    return a + b


@task()
async def add_later(a: int, b: int) -> int:
    await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
    return a + b


@task(context="ctx")
def who(ctx: Context) -> dict[str, Any]:
    return {
        "job": str(ctx.job_id),
        "number": ctx.number,
        "attempt": list(ctx.attempt),
        "saved": ctx.saved,
        "cwd": str(Path.cwd()),
        "environment": dict(os.environ),
        "policy": os.sched_getscheduler(0),
    }


@task()
def fail(message: str) -> None:
    raise ValueError(message)


@task()
def fail_with_type_error() -> None:
    len(3)  # type: ignore[arg-type]


@task()
def give_up(message: str) -> None:
    raise Fatal(message)


@task()
def again(after: Any = None) -> None:
    raise Retry("not yet", after=timedelta(seconds=7) if after == "timedelta" else after)


@task()
def leave(code: int) -> None:
    sys.exit(code)


@task()
def leave_hard(code: int) -> None:
    os._exit(code)


@task()
def kill_self(number: int) -> None:
    os.kill(os.getpid(), number)
    threading.Event().wait()


@task()
def crash() -> None:
    ctypes.string_at(0)


@task()
def odd(what: str) -> Any:
    loop: list[Any] = []
    loop.append(loop)
    return {"nan": float("nan"), "set": {1}, "object": object(), "deep": loop, "nul": "a\0b", "huge": 10**30}[what]


@task()
def long_result(length: int) -> str:
    return "x" * length


# Words


@task(context="ctx")
def talk(ctx: Context) -> None:
    ctx.progress(0.5, "half")
    ctx.checkpoint({"seen": 3})
    ctx.log.info("by the context")
    logging.getLogger("some.library").warning("by %s", "logging")
    print("to stdout")
    print("to stderr", file=sys.stderr)
    os.write(1, b"by the descriptor\n")
    ctypes.CDLL(None).puts(b"by C")
    subprocess.run(["/bin/echo", "by a child"], check=True)


@task(context="ctx")
def report_and_return(ctx: Context) -> bool:
    ctx.progress(1.0, "nearly there")
    return ctx.cancelled


@task()
def print_blocks(count: int) -> None:
    for _ in range(count):
        os.write(1, b"x" * 40_000)


@task()
def flood(megabytes: int) -> None:
    block = b"y" * (1 << 20)
    for _ in range(megabytes):
        os.write(1, block)


@task()
def log_flood() -> None:
    while True:
        logging.getLogger().warning("x" * 1000)


@task()
def speak_nonsense() -> None:
    for fd in range(3, 64):
        try:
            channel = socket.socket(fileno=os.dup(fd))
        except OSError:
            continue
        channel.sendall(b"\x00\x00\x00\x03{{{")
    threading.Event().wait()


# Leftovers


def _daemon(mark: str) -> None:
    """Leave a process behind that has its own session, no parent, and no ear for SIGTERM."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(number, signal.SIG_IGN)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(600)", mark])
        os._exit(0)
    os.wait()


@task(context="ctx")
def leave_daemon(ctx: Context, mark: str, *, stay: bool) -> str:
    _daemon(mark)
    while stay:
        ctx.progress(0.1, "up")
        threading.Event().wait()
    return mark


@task()
def leave_thread() -> int:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
    return os.getpid()


@task()
def leave_low_thread() -> None:
    """Leave a thread behind that `threading` does not know."""
    _thread.start_new_thread(threading.Event().wait, ())


@task()
def use_threads() -> None:
    threads = [threading.Thread(target=os.getpid) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class _Unhashable(list[Any]):
    """A stream that is no key of anything."""

    def __init__(self, stream: Any) -> None:
        self.write, self.flush = stream.write, stream.flush


class _Leaving(_Unhashable):
    def __init__(self, stream: Any) -> None:
        super().__init__(stream)
        self.flush = sys.exit


ODD_STREAMS: dict[str, Callable[[], Any]] = {
    "unhashable": lambda: setattr(sys, "stdout", _Unhashable(sys.stdout)),
    "leaving": lambda: setattr(sys, "stdout", _Leaving(sys.stdout)),
    "detached": lambda: getattr(sys, "stdout").detach(),  # noqa: B009 - as it is then
    "none": lambda: delattr(sys, "stdout"),
}


@task()
def put_odd_stream(how: str) -> str:
    print(how)
    ODD_STREAMS[how]()
    return how


@task()
def run_shell(script: str) -> None:
    subprocess.run(["/bin/sh", "-c", script], check=True)


@task()
def leave_file(name: str, text: str) -> None:
    Path(name).write_text(text)


@task()
def leave_output(name: str, text: str) -> None:
    path = Path(os.environ["TIDE_OUTPUT_DIR"], name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.with_name("link").symlink_to("/etc/passwd")


@task()
def spoil_environment() -> None:
    os.environ["SPOILED"] = "yes"
    os.environ["PATH"] = "/nowhere"
    del os.environ["TIDE_OUTPUT_DIR"]
    os.chdir("/")
    sys.stdout = None


# Staying


@task(context="ctx")
def until_cancelled(ctx: Context) -> str:
    ctx.progress(0.1, "up")
    while not ctx.cancelled:
        threading.Event().wait(0.01)
    return "saw it"


@task(context="ctx")
def deaf(ctx: Context) -> None:
    ctx.progress(0.1, "up")
    while True:
        threading.Event().wait(1)


@task(context="ctx")
def spin(ctx: Context) -> None:
    ctx.progress(0.1, "up")
    while True:
        pass


# Confinement


def _tried(what: Callable[[], Any]) -> str:
    try:
        return f"allowed: {what()!r}"
    except OSError as error:
        return f"refused: {error.strerror}"


@task()
def write_to(path: str) -> str:
    return _tried(lambda: Path(path).write_text("x"))


@task()
def read_from(path: str) -> str:
    return _tried(lambda: Path(path).read_bytes()[:100].decode(errors="replace"))


@task()
def import_module(name: str) -> str:
    return importlib.import_module(name).__name__


@task()
def signal_to(pid: int, number: int) -> str:
    return _tried(lambda: os.kill(pid, number))


@task()
def connect_to(port: int) -> str:
    with socket.socket() as any_socket:
        return _tried(lambda: any_socket.connect(("127.0.0.1", port)))


@task()
def status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


@task()
def visible_processes() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


# Hogs


@task()
def hog(megabytes: int) -> int:
    return len(bytearray(megabytes << 20))


_kept: list[bytearray] = []


@task()
def grow(megabytes: int) -> None:
    _kept.append(bytearray(b"x") * (megabytes << 20))


@task()
def hog_in_children(megabytes: int, children: int) -> None:
    code = f"import threading; block = b'x' * ({megabytes} << 20); threading.Event().wait()"
    for _ in range(children):
        subprocess.Popen([sys.executable, "-c", code])
    threading.Event().wait()


@task()
def bomb() -> None:
    for _ in range(11):  # 2 048 processes that go after a minute: no danger to the machine if nobody stops them
        with contextlib.suppress(OSError):
            os.fork()
    time.sleep(60)  # noqa: TID251 - a bomb has no clock


@task()
def imported_by() -> str:
    return json.dumps({"importer": IMPORTED_BY, "pid": os.getpid()})
