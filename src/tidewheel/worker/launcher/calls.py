"""Calling the function of a task, and saying how that ended."""

import asyncio
import inspect
import traceback
from typing import Any, Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_json, clean_text
from tidewheel.tasks.context import Context
from tidewheel.tasks.definition import TaskDefinition
from tidewheel.tasks.durations import parse_duration
from tidewheel.tasks.signals import Fatal, Retry
from tidewheel.worker.launcher.frames import MAX_RESULT
from tidewheel.worker.launcher.messages import Done

_MESSAGE: Final = 2_000
_TRACEBACK: Final = 16 * 1024


def call(task: TaskDefinition, args: str, context: Context) -> Done:
    """Call a task with its arguments, JSON text of an object."""
    arguments: dict[str, Any] = msgspec.json.decode(args)
    if task.context in arguments:
        return Done(end="fatal", message=f"wrong arguments: {task.context!r} is given by the worker")
    if task.context is not None:
        arguments[task.context] = context
    try:
        inspect.signature(task.function).bind(**arguments)
    except TypeError as error:
        return Done(end="fatal", message=f"wrong arguments: {error}")
    try:
        result = _result_of(task, arguments)
    except MemoryError:
        return Done(end="oom", message="it ran out of the memory that it was given")
    except BaseException as error:  # noqa: BLE001 - also what a task raises to leave, such as SystemExit
        return _raised(error)
    return _returned(result)


def _result_of(task: TaskDefinition, arguments: dict[str, Any]) -> object:
    if inspect.iscoroutinefunction(task.function):
        return asyncio.run(task.function(**arguments))
    return task.function(**arguments)


def _returned(result: object) -> Done:
    try:
        text = check_json("result", result, max_bytes=MAX_RESULT)
    except Invalid as error:
        return Done(end="fatal", message=str(error))
    return Done(end="returned", result=msgspec.Raw(text.encode()))


def _raised(error: BaseException) -> Done:
    if isinstance(error, Fatal):
        return Done(end="fatal", message=_words_of(error, with_type=False))
    if not isinstance(error, Retry):
        return Done(end="error", message=_words_of(error, with_type=True), detail=_traceback_of(error))
    try:
        after = None if error.after is None else parse_duration(error.after, "after").total_seconds()
    except Invalid as invalid:
        return Done(end="fatal", message=f"Retry was raised with a wrong wait: {invalid}")
    return Done(end="retry", message=_words_of(error, with_type=False), after=after)


def _words_of(error: BaseException, *, with_type: bool) -> str:
    try:
        text = str(error)
    except Exception:  # noqa: BLE001 - the text of an error is user code, too
        text = "(its text cannot be shown)"
    name = type(error).__name__
    return clean_text((f"{name}: {text}" if text else name) if with_type else text, _MESSAGE)


def _traceback_of(error: BaseException) -> str:
    """Return the traceback from the task's own code on, the end of it if it is long."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception:  # noqa: BLE001 - as above
        text = "".join(traceback.format_tb(frames))
    text = clean_text(text, len(text))
    return text if len(text) <= _TRACEBACK else "…" + text[1 - _TRACEBACK :]
