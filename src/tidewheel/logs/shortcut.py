"""Logging within a run without a record that nobody would look at.

Most of what a call of Python's logging costs is for its record: file, line, function, thread and process, which only
formats show. If all that becomes of it is a line of its run, the text is noted and that is it. Whoever looks at records
still gets them: any other handler, filter, kind of logger or record, and whoever has taken the place of a method of
logging. A call that says more than a text goes the whole way, too.
"""

import logging
from collections.abc import Mapping
from typing import Any, Final

from tidewheel.logs.handler import LARGE, RunHandler, RunSink, current_sink

_METHODS: Final = ("_log", "findCaller", "makeRecord", "handle", "filter", "callHandlers")
_PLAIN: Final = (logging.Logger, logging.RootLogger)
_POSITIONS: Final = 4
"""What else may be said by position: an exception, fields, whether to show the stack, how far up the call is."""


def shorten_logging(handler: RunHandler) -> None:
    """Take the short way from now on for what would come to this handler alone, of whatever a run logs.

    If someone has taken the place of a method of logging before, all goes the whole way.
    """
    shipped = logging.Logger.setLevel.__code__.co_filename
    if any(_file_of(getattr(logging.Logger, name)) != shipped for name in _METHODS):
        return
    whole_way = logging.Logger._log  # noqa: SLF001 - all that is logged comes through it, and nothing else does
    methods = _methods()

    def log(self: logging.Logger, level: int, msg: object, args: Any, *rest: Any, **more: Any) -> None:
        sink = current_sink.get()
        plain = type(msg) is str and not rest and not more
        if sink is not None and plain and _methods() == methods and _comes_to_it_alone(self, level, handler):
            text = _text(msg, args)
            if text is not None:
                _note(sink, level, text)
                return
        # A record tells the place of the call, which is not here.
        if len(rest) == _POSITIONS:
            rest = (*rest[:-1], rest[-1] + 1)
        else:
            more["stacklevel"] = more.get("stacklevel", 1) + 1
        whole_way(self, level, msg, args, *rest, **more)

    logging.Logger._log = log  # type: ignore[method-assign]  # noqa: SLF001


def _methods() -> tuple[Any, ...]:
    kind = logging.Logger
    return kind.findCaller, kind.makeRecord, kind.handle, kind.filter, kind.callHandlers


def _file_of(method: Any) -> str | None:
    code = getattr(method, "__code__", None)
    return None if code is None else code.co_filename


def _text(msg: Any, args: Any) -> str | None:
    """Return a text with its arguments, as a record would; None if they do not fit."""
    try:
        if not args:
            return str(msg)
        if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
            args = args[0]
        text: str = msg % args
    except Exception:  # noqa: BLE001 - code of the user's own, too; the whole way tells what is wrong
        return None
    return text


def _comes_to_it_alone(logger: logging.Logger, level: int, handler: RunHandler) -> bool:
    """Tell whether this handler is the only one that hears this logger, and nothing else would see a record."""
    at: logging.Logger | None = logger
    heard = False
    while at is not None:
        if handlers := at.handlers:
            if heard or len(handlers) > 1 or handlers[0] is not handler:
                return False
            heard = True
        at = at.parent if at.propagate else None
    if not heard or level < handler.level or type(logger) not in _PLAIN or logger.filters or logger.disabled:
        return False
    return logging.getLogRecordFactory() is logging.LogRecord


def _note(sink: RunSink, level: int, text: str) -> None:
    try:
        said = sink.said
        said += (sink.time(), logging.getLevelName(level), text)
        if len(said) > sink.room or len(text) > LARGE:
            sink.press(text)
    except Exception:  # noqa: BLE001 - as in `RunHandler`
        return
