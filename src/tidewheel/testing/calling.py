"""Calls a task in the process of a test, and says how that ended: as a worker would."""

import asyncio
import inspect
from typing import Any

from tidewheel.tasks.binding import Caller
from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import TaskDefinition
from tidewheel.tasks.ending import TOO_LONG, End, Ended, ended_by


async def call(task: TaskDefinition, caller: Caller, context: Context, args: str, seconds: float) -> Ended:
    """Call a task with its arguments, JSON text of an object, and end it when its time is over.

    It runs in an asyncio task of its own: what it raises to leave, and whom it cancels, is nothing to the test. A plain
    function cannot be ended from here, and is judged by the time that it took.
    """
    loop = asyncio.get_running_loop()
    latest = loop.time() + seconds
    calling = loop.create_task(_call(caller, context, args))
    try:
        await asyncio.wait({calling}, timeout=seconds)
        is_late = loop.time() > latest
        if not calling.done():
            context.request_stop()
            calling.cancel()
            await asyncio.wait({calling})
    finally:
        calling.cancel()  # if the test itself is to end
    if is_late and (calling.cancelled() or task.mode == "process"):
        return Ended(end=End.TIMEOUT, message=TOO_LONG)
    try:
        return calling.result()
    except asyncio.CancelledError as error:
        return ended_by(error)


async def _call(caller: Caller, context: Context, args: str) -> Ended:
    try:
        answer: Any = caller.call(context, args)
        text = caller.result_text(await answer if inspect.isawaitable(answer) else answer)
    except asyncio.CancelledError:
        raise
    except BaseException as error:  # noqa: BLE001 - whatever a task raises is its outcome, also to leave by sys.exit
        return ended_by(error)
    return Ended(end=End.RETURNED, result=text)
