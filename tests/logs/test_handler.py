"""Python's logging goes to the run that is under way."""

import asyncio
import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tidewheel.logs import RunHandler
from tidewheel.logs.handler import LARGE, STDERR, RunSink, current_sink, keep_runs_apart
from tidewheel.logs.shortcut import shorten_logging
from tidewheel.logs.streams import RoutedStream


@contextmanager
def logging_to(sink: RunSink) -> Iterator[None]:
    token = current_sink.set(sink)
    try:
        yield
    finally:
        current_sink.reset(token)


class Sink:
    room = 1000

    def __init__(self) -> None:
        self.said: list[Any] = []
        self.pressed: list[bytes | str] = []

    @property
    def lines(self) -> list[tuple[str, str]]:
        return [(level.lower(), text) for level, text in zip(self.said[1::3], self.said[2::3], strict=True)]

    def time(self) -> float:
        return 17.0

    def press(self, text: bytes | str) -> None:
        self.pressed.append(text)


class Broken(Sink):
    room = 0

    def press(self, text: bytes | str) -> None:
        raise RuntimeError(text)


@pytest.fixture(params=["by the whole way", "by the short way"])
def logger(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> logging.Logger:
    made = logging.Logger("alone")  # noqa: LOG001 - without a parent, and so without pytest's handlers
    handler = RunHandler()
    made.addHandler(handler)
    if request.param == "by the short way":
        monkeypatch.setattr(logging.Logger, "_log", logging.Logger._log)  # as it is to be afterwards
        shorten_logging(handler)
    return made


async def test_each_run_gets_its_own_lines_also_from_its_tasks_and_threads(logger: logging.Logger) -> None:
    async def task(sink: Sink, name: str) -> None:
        with logging_to(sink):
            logger.info("task %s", name)
            await asyncio.to_thread(logger.warning, "thread %s", name)
            await asyncio.create_task(asyncio.to_thread(logger.error, "inner %s", name))

    sinks = {name: Sink() for name in "abc"}
    await asyncio.gather(*(task(sink, name) for name, sink in sinks.items()))
    logger.info("outside")

    for name, sink in sinks.items():
        assert sink.lines == [("info", f"task {name}"), ("warning", f"thread {name}"), ("error", f"inner {name}")]


def test_an_exception_is_shown_with_its_traceback(logger: logging.Logger) -> None:
    sink = Sink()

    with logging_to(sink):
        try:
            int("this one")
        except ValueError:
            logger.exception("it failed")

    [(level, text)] = sink.lines
    assert level == "error"
    assert text.startswith("it failed\nTraceback (most recent call last):\n")
    assert text.endswith("ValueError: invalid literal for int() with base 10: 'this one'")


def test_a_bad_call_is_shown_and_fails_nothing(logger: logging.Logger) -> None:
    class Nasty:
        def __str__(self) -> str:
            raise RuntimeError("no")

    sink = Sink()

    with logging_to(sink):
        logger.info("%d apples", "two")
        logger.info("%s", Nasty())
        logger.info(Nasty())

    assert [text.rpartition(" (")[2] for _, text in sink.lines] == [
        "its arguments cannot be shown: TypeError)",
        "its arguments cannot be shown: RuntimeError)",
        "its arguments cannot be shown: RuntimeError)",
    ]
    assert "apples" in sink.lines[0][1]


def test_a_sink_is_told_when_it_holds_much_or_something_large(logger: logging.Logger) -> None:
    sink = Sink()
    sink.room = 6
    with logging_to(sink):
        for text in ("one", "two", "three", "x" * (LARGE + 1)):
            logger.info(text)
            if text == "three":
                sink.said.clear()

    assert sink.pressed == ["three", "x" * (LARGE + 1)]


def test_what_is_printed_reaches_the_run_and_only_text_is_taken() -> None:
    sink, original = Sink(), io.StringIO()
    stream = RoutedStream("stderr", original)
    print("outside", file=stream)
    with logging_to(sink):
        print("inside", file=stream)
        with pytest.raises(TypeError, match="must be str, not bytes"):
            stream.write(b"raw")  # type: ignore[arg-type]

    assert original.getvalue() == "outside\n"
    assert sink.said == [17, STDERR, "inside", 17, STDERR, "\n"]


class Nameless:
    def __str__(self) -> str:
        raise RuntimeError


def test_fields_of_a_record_are_kept_as_json_before_its_traceback(logger: logging.Logger) -> None:
    sink, endless = Sink(), dict[str, Any]()
    endless["self"] = endless
    with logging_to(sink):
        logger.info("plain", extra={})
        logger.info("paid %s", "5", extra={"order": 42, "at": {1: None}})
        logger.error("failed", extra={"order": 43}, exc_info=ValueError("broken"))
        logger.info("%d apples", "two", extra={"order": 44})
        logger.info("odd", extra={"order": Nameless()})
        logger.info("endless", extra=endless)

    texts = [text for _, text in sink.lines]
    assert texts[:3] == [
        "plain",
        '{"msg":"paid 5","order":42,"at":{"1":null}}',
        '{"msg":"failed","order":43}\nValueError: broken',
    ]
    assert '"order":44' in texts[3]
    assert texts[4:] == [
        "odd (its fields cannot be shown: RuntimeError)",
        "endless (its fields cannot be shown: RecursionError)",
    ]


def test_a_broken_sink_fails_nothing(logger: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    with logging_to(Broken()):
        logger.info("lost")

    assert capsys.readouterr() == ("", "")


def test_what_a_run_logs_is_not_in_the_log_of_the_process_too(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    before = list(root.handlers)
    sink = Sink()
    try:
        keep_runs_apart()
        with logging_to(sink):
            logging.getLogger("shop").warning("of a run")
        logging.getLogger("shop").warning("of the process")
    finally:
        for handler in root.handlers:
            if handler in before:
                handler.filters.clear()
        root.handlers[:] = before
    assert sink.lines == [("warning", "of a run")]
    assert [record.getMessage() for record in caplog.records] == ["of the process"]
