"""What a run logs takes a short way to its lines, unless someone would see the record."""

import logging
from collections.abc import Callable
from typing import Any, Final

import pytest

from tests.logs.test_handler import Sink, logging_to
from tidewheel.logs import RunHandler
from tidewheel.logs.handler import current_sink
from tidewheel.logs.shortcut import shorten_logging

SHORT: Final = 17.0
"""When a sink says that it is; a record takes its time from the machine."""


class Scene:
    """A logger below another one, whose handler is that of runs."""

    def __init__(self) -> None:
        self.handler = RunHandler()
        self.top = logging.Logger("shop")  # noqa: LOG001 - without a parent, and so without pytest's handlers
        self.top.addHandler(self.handler)
        self.logger = logging.Logger("shop.till")  # noqa: LOG001
        self.logger.parent = self.top
        self.sink = Sink()

    def say(self, *args: Any, **kwargs: Any) -> None:
        with logging_to(self.sink):
            self.logger.info(*args, **kwargs)

    @property
    def was_short(self) -> list[bool]:
        return [at == SHORT for at in self.sink.said[0::3]]

    @property
    def texts(self) -> list[str]:
        return self.sink.said[2::3]


class Seen(logging.Handler):
    """Keeps the records that come to it."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    made = Scene()
    monkeypatch.setattr(logging.Logger, "_log", logging.Logger._log)  # as it is to be afterwards
    shorten_logging(made.handler)
    return made


ORDINARY: Final[dict[str, tuple[Any, ...]]] = {
    "a text": ("ready",),
    "a sign that is no format": ("100 % done",),
    "arguments": ("%s of %d", "two", 3),
    "names": ("%(name)s came", {"name": "Ada"}),
    "an empty mapping": ("%s", {}),
    "several lines": ("one\ntwo",),
    "nothing": ("",),
}


@pytest.mark.parametrize("call", ORDINARY)
def test_the_line_is_the_same_as_by_the_whole_way(scene: Scene, call: str) -> None:
    scene.say(*ORDINARY[call])
    assert scene.was_short == [True]

    scene.logger.addFilter(lambda _: True)
    scene.say(*ORDINARY[call])
    assert scene.was_short == [True, False]
    assert scene.sink.said[1:3] == scene.sink.said[4:6]


def test_levels_are_called_what_they_are_called(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(logging._levelToName, 25, "NOTICE")
    with logging_to(scene.sink):
        for level in (logging.DEBUG, logging.CRITICAL, 25, 7):
            scene.logger.log(level, "x")
    assert scene.sink.said[1::3] == ["DEBUG", "CRITICAL", "NOTICE", "Level 7"]


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        (("%d apples", "two"), {}, "its arguments cannot be shown: TypeError"),
        ((17,), {}, "17"),
        (("careful",), {"stack_info": True}, "careful\nStack (most recent call last):"),
        (("careful",), {"exc_info": ValueError("bad")}, "careful\nValueError: bad"),
        (("careful",), {"extra": {"till": 3}}, "careful"),
    ],
)
def test_a_call_that_says_more_than_a_text_goes_the_whole_way(
    scene: Scene, args: Any, kwargs: Any, expected: str
) -> None:
    scene.say(*args, **kwargs)
    assert scene.was_short == [False]
    assert expected in scene.texts[0]


def test_a_bad_call_fails_as_it_does_elsewhere(scene: Scene) -> None:
    with pytest.raises(KeyError, match="Attempt to overwrite 'message'"):
        scene.say("careful", extra={"message": "mine"})


def _add_handler(scene: Scene) -> Callable[[], bool]:
    seen = Seen()
    scene.logger.addHandler(seen)
    return lambda: bool(seen.records)


def _add_handler_beside(scene: Scene) -> Callable[[], bool]:
    seen = Seen()
    scene.top.addHandler(seen)
    return lambda: bool(seen.records)


def _add_filter(scene: Scene) -> Callable[[], bool]:
    class Watch(logging.Filter):
        seen = False

        def filter(self, record: logging.LogRecord) -> bool:
            self.seen = True
            return super().filter(record)

    watch = Watch()
    scene.logger.addFilter(watch)
    return lambda: watch.seen


def _be_of_another_kind(scene: Scene) -> Callable[[], bool]:
    seen: list[Any] = []

    class Own(logging.Logger):
        def handle(self, record: logging.LogRecord) -> None:
            seen.append(record)
            super().handle(record)

    scene.logger.__class__ = Own
    return lambda: bool(seen)


@pytest.mark.parametrize("look", [_add_handler, _add_handler_beside, _add_filter, _be_of_another_kind])
def test_whoever_looks_at_records_gets_them(scene: Scene, look: Callable[[Scene], Callable[[], bool]]) -> None:
    has_seen = look(scene)
    scene.say("hello")
    assert has_seen()
    assert (scene.was_short, scene.texts) == ([False], ["hello"])


@pytest.mark.parametrize("method", ["findCaller", "makeRecord", "handle", "filter", "callHandlers"])
def test_whoever_took_the_place_of_a_method_of_logging_is_called(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    """As tools do that watch over errors."""
    original, called = getattr(logging.Logger, method), []

    def watch(*args: Any, **kwargs: Any) -> Any:
        called.append(method)
        return original(*args, **kwargs)

    monkeypatch.setattr(logging.Logger, method, watch)
    scene.say("hello")
    assert called
    assert (scene.was_short, scene.texts) == ([False], ["hello"])


@pytest.mark.parametrize("method", ["_log", "findCaller", "makeRecord", "handle", "filter", "callHandlers"])
def test_so_is_whoever_had_taken_it_before(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    scene, original, called = Scene(), getattr(logging.Logger, method), []

    def watch(*args: Any, **kwargs: Any) -> Any:
        called.append(method)
        return original(*args, **kwargs)

    monkeypatch.setattr(logging.Logger, "_log", logging.Logger._log)
    monkeypatch.setattr(logging.Logger, method, watch)
    shorten_logging(scene.handler)
    scene.say("hello")
    assert called
    assert (scene.was_short, scene.texts) == ([False], ["hello"])


class Positional(logging.Logger):
    """Hands on what it was given by position, as some kinds of loggers do."""

    def _log(self, level: Any, msg: Any, args: Any, exc_info: Any = None, extra: Any = None, *rest: Any) -> None:
        super()._log(level, msg, args, exc_info, extra, *rest)


@pytest.mark.parametrize("rest", [(), (False,), (False, 2)])
def test_what_is_said_by_position_is_taken(scene: Scene, rest: tuple[Any, ...]) -> None:
    seen = Seen()
    made = Positional("own")
    made.addHandler(seen)
    for sink in (None, scene.sink):
        token = current_sink.set(sink)
        made._log(logging.INFO, "careful %s", ("now",), None, {"till": 3}, *rest)
        current_sink.reset(token)
    assert [(record.getMessage(), vars(record)["till"]) for record in seen.records] == 2 * [("careful now", 3)]
    if rest == (False, 2):  # one for the kind of logger, one for this call
        assert {record.funcName for record in seen.records} == {"test_what_is_said_by_position_is_taken"}


def test_arguments_are_shown_once(scene: Scene) -> None:
    class Counted:
        shown = 0

        def __str__(self) -> str:
            self.shown += 1
            return "x"

    told = Counted()
    scene.logger.addHandler(Seen())  # which does not look
    scene.handler.setLevel(logging.ERROR)
    scene.say("%s", told)
    assert told.shown == 0


def test_records_of_ones_own_are_made(scene: Scene) -> None:
    factory, made = logging.getLogRecordFactory(), []

    def make(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made.append(factory(*args, **kwargs))
        return made[-1]

    logging.setLogRecordFactory(make)
    try:
        scene.say("hello")
    finally:
        logging.setLogRecordFactory(factory)
    assert [record.getMessage() for record in made] == scene.texts == ["hello"]


def test_a_record_tells_the_place_of_the_call(scene: Scene) -> None:
    seen = Seen()
    scene.logger.addHandler(seen)
    with logging_to(scene.sink):
        scene.logger.warning("here")
    scene.logger.warning("and outside of runs")
    assert {(record.filename, record.funcName) for record in seen.records} == {
        ("test_shortcut.py", "test_a_record_tells_the_place_of_the_call")
    }


@pytest.mark.parametrize(
    "silence",
    [
        lambda scene: scene.handler.setLevel(logging.ERROR),
        lambda scene: setattr(scene.logger, "disabled", True),
        lambda scene: scene.logger.setLevel(logging.ERROR),
        lambda scene: scene.logger.addFilter(lambda _: False),
    ],
)
def test_who_is_silenced_stays_silent(scene: Scene, silence: Callable[[Scene], object]) -> None:
    silence(scene)
    scene.say("hush")
    assert scene.texts == []


def test_a_logger_that_nobody_hears_comes_to_no_run(scene: Scene, capsys: pytest.CaptureFixture[str]) -> None:
    scene.logger.propagate = False
    with logging_to(scene.sink):
        scene.logger.warning("into the void")
    assert scene.texts == []
    assert capsys.readouterr().err == "into the void\n"  # as Python does it where there is no handler


def test_one_that_two_loggers_share_hears_it_twice(scene: Scene) -> None:
    scene.logger.addHandler(scene.handler)
    scene.say("again")
    assert scene.texts == ["again", "again"]


def test_outside_of_runs_nothing_changes(scene: Scene) -> None:
    seen = Seen()
    scene.top.handlers[:] = [RunHandler([seen])]
    scene.logger.info("of the process")
    assert [record.getMessage() for record in seen.records] == ["of the process"]
