"""Calling the function of a task, and saying how that ended."""

import asyncio
import inspect

import msgspec

from tidewheel.tasks.binding import Caller
from tidewheel.tasks.context import Context
from tidewheel.tasks.ending import ended_by
from tidewheel.worker.launcher.messages import Done, DoneEnd


def call(caller: Caller, args: str, context: Context | None) -> Done:
    """Call a task with its arguments, JSON text of an object."""
    try:
        result = caller.call(context, args)
        if inspect.iscoroutine(result):
            result = asyncio.run(result)
        text = caller.result_text(result)
    except BaseException as error:  # noqa: BLE001 - also what a task raises to leave, such as SystemExit
        return _raised(error)
    return Done(end="returned", result=msgspec.Raw(b"null" if text is None else text.encode()))


def _raised(error: BaseException) -> Done:
    ended = ended_by(error)
    after = None if ended.after is None else ended.after.total_seconds()
    return Done(end=msgspec.convert(ended.end, DoneEnd), message=ended.message, detail=ended.detail, after=after)
