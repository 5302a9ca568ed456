"""The end of runs: alone or together, whatever was said and by whoever still speaks."""

import logging
from collections.abc import Sequence
from datetime import timedelta
from threading import Thread
from typing import Any, Final
from uuid import UUID

import msgspec
import pytest

from tests.logs.scene import JOB, Scene
from tidewheel.logs import LogShipper, RunLog
from tidewheel.logs.handler import LARGE, RunHandler, current_sink

PRINTED: Final = [
    ("stdout", "a"),
    ("stdout", "\n"),
    ("stdout", ""),
    ("stdout", "\n"),
    ("stderr", "☃"),
    ("stderr", "\n"),
]
LOGGED: Final = [("info", "one"), ("error", "")]
SPEECHES: Final[dict[str, Sequence[tuple[str, str | bytes]]]] = {
    "logs": LOGGED,
    "prints": PRINTED,
    "both": [*PRINTED, *LOGGED],
    "nothing": [],
    "odd": [("info", "red \x1b[31mink\x07")],
    "several lines": [("warning", "first\nsecond")],
    "own level": [("Loud", "hear")],
    "bytes": [("stdout", b"raw\nand torn")],
    "half a line": [("stdout", "torn")],
    "two halves": [("stdout", "a"), ("stderr", "\n")],
    "a log, then halves": [("info", "one"), ("stdout", "a"), ("stdout", "b")],
    "prints, then a log of nothing": [*PRINTED, ("info", "one"), ("info", "\n")],
    "long": [("info", "x" * (LARGE + 1))],
    "much": [("info", "x" * LARGE)] * 100,
}


def hold(run: RunLog, speech: str) -> None:
    for what, words in SPEECHES[speech]:
        match what:
            case "stdout" | "stderr":
                run.output(what, words)
            case level:
                run.log(level, str(words))


@pytest.mark.parametrize("others", [["logs"], ["prints"], ["odd", "both"], sorted(SPEECHES)])
@pytest.mark.parametrize("speech", SPEECHES)
async def test_a_run_that_ends_with_others_has_the_same_lines_as_alone(
    scene: Scene, speech: str, others: list[str]
) -> None:
    alone = scene.run()
    hold(alone, speech)
    alone.end()
    assert await scene.shipper.flush(JOB, 3)
    expected, scene.lines = scene.lines, []

    told: list[bool] = []
    for number, name in enumerate([*others, speech, *others]):
        run = RunLog(UUID(int=number), 3, scene.shipper, scene.clock)
        hold(run, name)
        run.end_soon(told.append)
    assert await scene.shipper.flush(JOB, 3)

    assert told == [True] * (2 * len(others) + 1)
    mine = [msgspec.structs.replace(line, job_id=JOB) for line in scene.lines if line.job_id == UUID(int=len(others))]
    assert mine == expected


async def test_secrets_and_quotas_hold_for_runs_that_end_together(scene: Scene) -> None:
    for run in (scene.run(mask=["hunter2"]), scene.run(max_bytes=10), scene.run()):
        run.log("info", "hunter2 is no word")
        run.end_soon(lambda _: None)
    assert await scene.shipper.flush(JOB, 3)
    assert sorted(line.text for line in scene.lines) == [
        "*** is no word",
        "[output cut: more than 10 bytes]",
        "hunter2 is no word",
        "hunter2 is no word",
    ]


@pytest.mark.parametrize("created", [0.0, 1e300, float("nan"), float("inf"), -1.0, "now", None])
@pytest.mark.parametrize("together", [True, False])
async def test_a_record_with_an_impossible_time_was_written_now(scene: Scene, created: Any, *, together: bool) -> None:
    run = scene.run()
    record = logging.makeLogRecord({"msg": "from elsewhere", "levelname": "Notice", "created": created})
    plain = logging.makeLogRecord({"msg": "as well", "levelname": "INFO", "created": created})
    mark = current_sink.set(run)
    for one in (record, plain) if not together else (plain,):
        RunHandler().handle(one)
    current_sink.reset(mark)
    if together:
        run.end_soon(lambda _: None)
    else:
        run.end()
    assert await scene.shipper.flush(JOB, 3)
    levels = ["info"] if together else ["notice", "info"]
    assert [(line.level, line.at) for line in scene.lines] == [(level, scene.clock.now()) for level in levels]


class Odd:
    """What fails whatever it is asked for."""

    def _fail(self, *_: object) -> Any:
        raise RuntimeError("odd")

    __eq__ = __hash__ = __lt__ = __gt__ = __str__ = __repr__ = _fail


@pytest.mark.parametrize(
    "odd",
    [
        [{"levelname": Odd()}],
        [{"created": Odd()}, {"created": Odd()}],
        [{}, {"created": float("inf")}, {"created": float("nan")}, {}],
        [{"levelname": None}],
        [{"levelname": ["INFO"]}],
    ],
)
@pytest.mark.parametrize("first", ["logged", "printed"])
async def test_no_record_stops_the_shipper_of_all_runs(scene: Scene, odd: list[dict[str, Any]], first: str) -> None:
    run, other = scene.run(), RunLog(UUID(int=8), 3, scene.shipper, scene.clock)
    hold(run, "logs" if first == "logged" else "prints")
    mark = current_sink.set(run)
    for one in odd:
        RunHandler().handle(logging.makeLogRecord({"msg": "odd", "levelname": "INFO", "created": 1.9e9, **one}))
    current_sink.reset(mark)
    other.log("info", "fine")
    for ending in (run, other):
        ending.end_soon(lambda _: None)

    assert await scene.shipper.flush(JOB, 3)
    assert [line.text for line in scene.lines if line.job_id != JOB] == ["fine"]
    assert [line.text for line in scene.lines].count("odd") == len(odd)


async def test_words_that_come_while_a_run_ends_take_none_with_them(scene: Scene) -> None:
    """A thread may speak up at any moment, also when the run has ended and no line was made of its words yet."""
    run = scene.run()
    run.log("info", "before")
    said = run.end_plainly()
    run.log("info", "x" * (LARGE + 1))
    assert said is not None
    run.give_last(said)
    assert await scene.ended(run) == ["before"]


@pytest.mark.parametrize("masked", [False, True])
async def test_a_thread_that_still_speaks_when_a_run_ends_harms_nothing(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, *, masked: bool
) -> None:
    run = scene.run(mask=["secret"] if masked else ())
    run.log("info", "the last word")
    held = run.said  # as of a thread that is stopped in the middle of saying something
    take_in = RunLog._take_in

    def speak_then_take_in(self: RunLog, said: list[Any]) -> None:
        held.append("half")
        take_in(self, said)

    monkeypatch.setattr(RunLog, "_take_in", speak_then_take_in)
    if not masked:
        said = run.end_plainly()
        assert said is not None
        run.give_last(said)

    assert await scene.ended(run) == ["the last word"]


@pytest.mark.parametrize("moment", [(RunLog, "_take_in"), (LogShipper, "_has_room")])
async def test_words_of_what_is_collected_while_lines_are_made_stand_in_no_ones_way(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, moment: tuple[Any, str]
) -> None:
    """Python may collect garbage at any moment, and what is collected may log, at length, in the middle of a word."""
    run = scene.run()
    done = getattr(*moment)

    def collect_then_do(*args: Any) -> Any:
        monkeypatch.setattr(*moment, done)
        run.log("error", "never awaited " + "x" * LARGE)
        return done(*args)

    monkeypatch.setattr(*moment, collect_then_do)
    speaking = Thread(target=run.log, args=("info", "y" * (LARGE + 1)), daemon=True)
    speaking.start()
    speaking.join(5)
    assert not speaking.is_alive()

    await scene.clock.advance(timedelta(seconds=1))
    assert [line.text[:5] for line in scene.lines] == ["yyyyy", "never"]


async def test_who_speaks_while_a_run_ends_does_not_bring_it_back(scene: Scene) -> None:
    run = scene.run()

    class Interrupted(list[Any]):
        def __iadd__(self, more: Any) -> Any:  # type: ignore[misc]
            run.end()
            return super().__iadd__(more)

    run.said = Interrupted()
    run.log("info", "in the middle of the end")
    run.log("info", "later")

    assert len(run.said) == 0  # what nobody hears is not kept
