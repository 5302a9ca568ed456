"""Tasks that speak in every way there is: by threads, pools, programs, bytes and fields."""

import asyncio
import logging
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from tests.worker.running_app import spin_until
from tidewheel import App, Context

app = App()
LOG: Final = logging.getLogger("shop")
POOL: Final = ThreadPoolExecutor(1)
"""One thread that serves all runs."""


def say(how: str, password: str) -> None:
    print(how, "printed", password)
    LOG.info("%s logged %s", how, password)


def in_a_thread(how: str, password: str) -> None:
    thread = threading.Thread(target=say, args=(how, password))
    thread.start()
    thread.join()


@app.task(name="voices.async", retry=False)
async def voices_async(password: str) -> None:
    in_a_thread("thread", password)
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, say, "executor", password)
    await loop.run_in_executor(POOL, say, "pool", password)
    await loop.run_in_executor(None, in_a_thread, "inner thread", password)


def go_on_speaking(password: str, until: str, over: str) -> None:
    for path in (until, over):
        while not Path(path).exists():
            print("later", password)
            LOG.warning("later %s", password)
            time.sleep(0.01)  # noqa: TID251 - in a real thread


@app.task(name="lingers.async", retry=False)
async def lingers_async(password: str, until: str, over: str) -> None:
    threading.Thread(target=go_on_speaking, args=(password, until, over), daemon=True).start()
    await asyncio.get_running_loop().run_in_executor(None, spin_until, until)


@app.task(name="programs.async", retry=False)
async def programs_async(password: str) -> None:
    subprocess.run(["echo", "inherited", password], check=True)  # noqa: ASYNC221 - as tasks do
    subprocess.run(["echo", "given", password], stdout=sys.stdout, check=True)  # noqa: ASYNC221
    subprocess.run(["sh", "-c", "echo $0 >&2", password], check=True)  # noqa: ASYNC221
    subprocess.run(["awk", 'BEGIN { for (i = 0; i < 50000; i++) print "flood" }'], check=True)  # noqa: ASYNC221
    process = await asyncio.create_subprocess_exec("echo", "asynchronous", password)
    await process.wait()
    os.write(1, f"written {password}\n".encode())
    print("done")


def speak_by_levels(ctx: Context) -> None:
    LOG.debug("a debug")
    LOG.info("an info")
    LOG.warning("a warning")
    ctx.log.debug("a debug by the context")
    ctx.log.info("an info by the context")


@app.task(name="levels.async", retry=False)
async def levels_async(ctx: Context) -> None:
    speak_by_levels(ctx)


@app.task(name="levels.plain", retry=False)
def levels_plain(ctx: Context) -> None:
    speak_by_levels(ctx)


def speak_otherwise(ctx: Context, password: str) -> None:
    sys.stdout.buffer.write(f"bytes {password}\n".encode())
    sys.stderr.buffer.flush()
    LOG.info("paid %d", 5, extra={"order": 42, "user": {"id": 7, "password": password}})
    ctx.log.warning("by the context", extra={"order": 43})


@app.task(name="otherwise.async", retry=False)
async def otherwise_async(ctx: Context, password: str) -> None:
    speak_otherwise(ctx, password)


@app.task(name="otherwise.plain", retry=False)
def otherwise_plain(ctx: Context, password: str) -> None:
    speak_otherwise(ctx, password)
