"""All that one run says, from bytes to numbered lines."""

from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.logs.scene import JOB, MOMENT, Scene
from tidewheel.logs import RunLog
from tidewheel.logs.handler import LARGE
from tidewheel.logs.quota import LAST_LINES
from tidewheel.logs.run_log import MOST_SAID
from tidewheel.model.log import MAX_LEVEL, LogLine
from tidewheel.model.log_piece import MAX_PIECE


async def test_lines_are_numbered_and_say_when_and_where_they_came_from(scene: Scene) -> None:
    run = scene.run()
    start = scene.clock.now()

    run.output("stdout", b"hello\nwor")
    run.log("warning", "careful")
    await scene.clock.advance(timedelta(seconds=5))
    run.output("stderr", b"oh\n")
    run.output("stdout", b"ld")
    await scene.ended(run)

    later = start + timedelta(seconds=5)
    assert scene.lines == [
        LogLine(JOB, 3, 1, start, "stdout", None, "hello"),
        LogLine(JOB, 3, 2, start, "log", "warning", "careful"),
        LogLine(JOB, 3, 3, later, "stderr", None, "oh"),
        LogLine(JOB, 3, 4, later, "stdout", None, "world"),
    ]


async def test_a_log_of_several_lines_becomes_several_lines(scene: Scene) -> None:
    run = scene.run()
    run.log("error", "Traceback:\n  here\x1b[0m\n")
    run.log("info", "")
    run.log("info", "x" * 20_000)

    texts = await scene.ended(run)

    assert texts[:3] == ["Traceback:", "  here", ""]
    assert [len(text) > 3000 for text in texts[3:]] == [True, True]


async def test_nothing_is_taken_after_the_end(scene: Scene) -> None:
    run = scene.run()
    run.output("stdout", b"last words")
    await scene.ended(run)

    run.output("stdout", b"from the grave\n")
    run.log("info", "boo")

    assert await scene.ended(run) == ["last words"]


@pytest.mark.parametrize("size", [1, 7, 1000])
async def test_secrets_are_masked_also_across_chunks(scene: Scene, size: int) -> None:
    run = scene.run(mask=["hunter2", "a\nlong-key\n", "abc"])
    data = b"password hunter2 and long-key, not abc\n" * 20 + b"x" * 16_380 + b"hunter2" + b"y" * 100

    for start in range(0, len(data), size):
        run.output("stdout", data[start : start + size])
    run.log("info", "logged hunter2")

    texts = await scene.ended(run)
    assert texts[:20] == ["password *** and ***, not abc"] * 20
    assert texts[20:] == ["x" * 16_380 + "… [line cut]", "logged ***", "***" + "y" * 100]


async def test_a_chatty_run_keeps_its_beginning_and_its_end(scene: Scene) -> None:
    run = scene.run(max_bytes=1000)
    for number in range(10_000):
        run.output("stdout", b"line %06d\n" % number)
        assert run.full == (number >= MOST_SAID - 1)
    run.output("stderr", b"fatal: out of ideas")

    texts = await scene.ended(run)

    head = [f"line {number:06}" for number in range(83)]
    last = [f"line {number:06}" for number in range(10_001 - LAST_LINES, 10_000)]
    left_out = 10_000 - 83 - (LAST_LINES - 1)
    assert texts[:84] == [*head, "[output cut: more than 1000 bytes]"]
    assert texts[84].startswith(f"[… {left_out - 1} lines, ")  # the last one, which was not ended, counts as shown
    assert texts[85:] == [*last, "fatal: out of ideas"]
    assert [line.number for line in scene.lines] == list(range(1, len(texts) + 1))
    assert {line.stream for line in scene.lines if line.text.startswith("[")} == {"system"}


@pytest.mark.parametrize(("token", "kept"), [(20, None), (21, "512 KiB"), (41, "256 KiB"), (300, "1 KiB")])
async def test_of_a_job_that_ran_often_less_is_kept_of_each_run(scene: Scene, token: int, kept: str | None) -> None:
    run = RunLog(JOB, token, scene.shipper, scene.clock)
    for _ in range(600):
        run.output("stdout", b"x" * 1023 + b"\n")
    texts = await scene.ended(run)
    marks = [text for text in texts if text.startswith("[output cut")]
    assert marks == ([] if kept is None else [f"[output cut: more than {kept}]"])
    assert (len(texts) == 600) is (kept is None)


async def test_a_line_that_was_begun_when_the_quota_was_used_up_is_whole_at_the_end(scene: Scene) -> None:
    run = scene.run(max_bytes=10)
    run.output("stderr", b"beg")
    run.output("stdout", b"0123456789\nhal")
    run.output("stderr", b"un\n")
    run.output("stdout", b"f\n")

    texts = await scene.ended(run)

    assert texts[0] == "[output cut: more than 10 bytes]"
    assert texts[1:] == ["0123456789", "begun", "half"]


async def test_what_is_logged_over_the_quota_is_among_the_last_lines(scene: Scene) -> None:
    run = scene.run(max_bytes=10, mask=["hunter2"])
    run.output("stdout", b"0123456789\n" * 1000)
    run.log("error", "gave up, hunter2")
    run.output("stdout", b"hunter2 again")

    texts = await scene.ended(run)

    assert texts[-2:] == ["gave up, ***", "*** again"]
    assert [line.level for line in scene.lines[-2:]] == ["error", None]


async def test_a_flood_is_thrown_away_with_little_held(scene: Scene) -> None:
    run = scene.run()
    chunk = b"y\n" * 32_768

    for _ in range(2000):  # 131 MB
        run.output("stdout", chunk)
        if not run.full:
            await scene.shipper.flush(JOB, 3)

    assert run.full
    assert run._tail is not None
    assert run._tail._held_bytes <= 128 * 1024
    texts = await scene.ended(run)
    assert texts[-LAST_LINES:] == ["y"] * LAST_LINES
    assert texts[-LAST_LINES - 1].startswith("[… 6")  # of 65 million, half a million are kept


@pytest.mark.parametrize("lines", [1, 10, 2 * MOST_SAID + 7])
async def test_what_is_said_together_is_one_piece_and_every_line_has_its_own_time(scene: Scene, lines: int) -> None:
    for say in (_logs, _prints):
        run, start = scene.run(), scene.clock.now()
        for number in range(lines):
            say(run, f"line {number}")
            scene.clock.step(MOMENT)
        scene.lines.clear()
        scene.pieces.clear()

        await scene.ended(run)

        assert [line.text for line in scene.lines] == [f"line {number}" for number in range(lines)]
        assert [line.number for line in scene.lines] == [*range(1, lines + 1)]
        last = scene.lines[-1]
        assert last.at == start + (lines - 1) * MOMENT
        assert len(scene.pieces) <= 1 + 2 * lines // MOST_SAID
        assert {piece.lane for piece in scene.pieces} == {11}


def _logs(run: RunLog, text: str) -> None:
    run.log("info", text)


def _prints(run: RunLog, text: str) -> None:
    for chunk in (text, "\n"):  # as `print` does
        run.output("stdout", chunk)


ODD = [
    "plain",
    "tab\there",
    "größer ☃",
    "\x1b[31mred\x1b[0m",
    "two\nlines",
    "",
    "half \udc80",
    "x" * 5000,
    "a\rb",
    "\0",
]


@pytest.mark.parametrize("mask", [(), ("plain",)])
@pytest.mark.parametrize("stream", ["log", "stdout", "mixed"])
async def test_all_at_once_gives_the_same_lines_as_one_by_one(scene: Scene, stream: str, mask: Sequence[str]) -> None:
    def say(run: RunLog, number: int, text: str) -> None:
        if stream == "log" or (stream == "mixed" and number % 2):
            run.log("info", text)
        else:
            run.output("stdout", text)
            run.output("stdout", "\n")

    for texts in (["plain"] * 5, ODD, *([text, "plain"] for text in ODD)):
        found = []
        for apart in (False, True):
            run = scene.run(mask=mask)
            for number, text in enumerate(texts):
                say(run, number, text)
                if apart:
                    run.give()
            scene.lines.clear()
            await scene.ended(run)
            found.append([(line.number, line.stream, line.text) for line in scene.lines])
        assert found[0] == found[1]


async def test_lines_are_given_while_the_run_goes_on(scene: Scene) -> None:
    run = scene.run()
    run.output("stdout", "begun\nhal")
    await scene.clock.advance(timedelta(milliseconds=99))
    assert scene.lines == []
    await scene.clock.advance(timedelta(milliseconds=2))
    assert [line.text for line in scene.lines] == ["begun"]

    run.output("stdout", "f\n")
    await scene.clock.advance(timedelta(milliseconds=101))
    assert [line.text for line in scene.lines] == ["begun", "half"]


async def test_much_at_once_does_not_wait_and_is_cut_into_pieces(scene: Scene) -> None:
    run = scene.run()
    run.output("stdout", "x" * LARGE + "\n" + "y" * 8000 + "\n")
    assert scene.shipper._lines == 2
    for _ in range(40):
        run.output("stdout", b"z" * 8000 + b"\n")

    await scene.ended(run)

    assert len(scene.lines) == 42
    run = scene.run()
    run.log("info", "\n".join(["w" * 8000] * 40))
    scene.pieces.clear()
    await scene.ended(run)
    assert len(scene.pieces) == 3
    assert all(len(piece.lines) < MAX_PIECE + 10_000 for piece in scene.pieces)


async def test_levels_are_bounded(scene: Scene) -> None:
    run = scene.run()
    run.log("x" * 100, "odd")
    run.log("LOUD\0", "odd")
    await scene.ended(run)
    assert [line.level for line in scene.lines] == ["x" * (MAX_LEVEL - 1) + "…", "LOUD\ufffd"]
