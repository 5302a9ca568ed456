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

_METHODS: Final = ("findCaller", "makeRecord", "handle", "filter", "callHandlers")
_AS_SHIPPED: Final = tuple(getattr(logging.Logger, name) for name in _METHODS)
_PLAIN: Final = (logging.Logger, logging.RootLogger)


def shorten_logging(handler: RunHandler) -> None:
    """Take the short way from now on for what would come to this handler alone, of whatever a run logs."""
    whole_way = logging.Logger._log  # noqa: SLF001 - all that is logged comes through it, and nothing else does

    def log(self: logging.Logger, level: int, msg: object, args: Any, **more: Any) -> None:
        sink = current_sink.get()
        if sink is not None and not more and type(msg) is str:
            text = _text(msg, args) if args else msg
            if text is not None and level >= handler.level and _comes_to_it_alone(self, handler):
                _note(sink, level, text)
                return
        more["stacklevel"] = more.get("stacklevel", 1) + 1  # a record tells the place of the call, which is not here
        whole_way(self, level, msg, args, **more)

    logging.Logger._log = log  # type: ignore[assignment,method-assign]  # noqa: SLF001


def _text(msg: str, args: Any) -> str | None:
    """Return a text with its arguments, as a record would; None if they do not fit."""
    try:
        if len(args) == 1 and isinstance(args[0], Mapping) and args[0]:
            args = args[0]
        text: str = msg % args
    except Exception:  # noqa: BLE001 - code of the user's own, too; the whole way tells what is wrong
        return None
    return text


def _comes_to_it_alone(logger: logging.Logger, handler: RunHandler) -> bool:
    """Tell whether this handler is the only one that hears this logger, and nothing else would see a record."""
    at: logging.Logger | None = logger
    heard = False
    while at is not None:
        if handlers := at.handlers:
            if heard or len(handlers) > 1 or handlers[0] is not handler:
                return False
            heard = True
        at = at.parent if at.propagate else None
    if not heard or type(logger) not in _PLAIN or logger.filters or logger.disabled:
        return False
    kind = logging.Logger
    as_is = kind.findCaller, kind.makeRecord, kind.handle, kind.filter, kind.callHandlers
    return as_is == _AS_SHIPPED and logging.getLogRecordFactory() is logging.LogRecord


def _note(sink: RunSink, level: int, text: str) -> None:
    try:
        said = sink.said
        said += (sink.time(), logging.getLevelName(level), text)
        if len(said) > sink.room or len(text) > LARGE:
            sink.press(text)
    except Exception:  # noqa: BLE001 - as in `RunHandler`
        return
