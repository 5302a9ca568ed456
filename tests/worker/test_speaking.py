"""What a plain function logs and tells of its progress, from its process to the lines that the store gets."""

import io
import logging
import sys
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final, cast
from uuid import UUID

import pytest

from tests.builders import a_run
from tidewheel.model.log_piece import Piece, lines_of
from tidewheel.model.note import RunNote
from tidewheel.testing import FakeClock
from tidewheel.worker.launcher.messages import Logged, Progressed, Words
from tidewheel.worker.launcher.runner import hear_all
from tidewheel.worker.launcher.speaking import LONGEST, Speaker, SpeakingHandler
from tidewheel.worker.reports import Report, Reports

SECRET: Final = "hunter2-correct-horse-battery"
PART: Final = SECRET[:6]


class Heard(Speaker):
    """Keeps the words that it would send."""

    def __init__(self) -> None:
        self.words: list[Words] = []

    def say(self, words: Words) -> None:
        self.words.append(words)

    def pass_on(self, report: Report) -> None:
        """Do what the host does with them."""
        for words in self.words:
            if isinstance(words, Logged):
                report.log(words.level, words.text)
            elif isinstance(words, Progressed):
                report.progress(words.fraction, words.message)


class Kept:
    """Stands for the store."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.notes: list[RunNote] = []

    async def append_pieces(self, pieces: Sequence[Piece]) -> None:
        self.texts += [line.text for p in pieces for line in lines_of(p.job_id, p.token, p.first, p.lines)]

    async def note(self, _worker_id: UUID, notes: Sequence[RunNote]) -> None:
        self.notes += notes


class Scene:
    """A function that logs, and the report of its run at the host."""

    def __init__(self) -> None:
        self.heard, self.kept = Heard(), Kept()
        self.reports = Reports(cast("Any", self.kept), UUID(int=1), FakeClock())
        self.report = self.reports.open(a_run())
        self.report.hide([SECRET])
        self.logger = logging.Logger("of a function")  # noqa: LOG001 - of no other test
        self.logger.addHandler(SpeakingHandler(self.heard))

    async def stored(self) -> list[str]:
        self.heard.pass_on(self.report)
        await self.report.close()
        return self.kept.texts


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    made = Scene()
    yield made
    await made.reports.shipper.close()


@pytest.mark.parametrize("before", [0, 4_000, 16 * 1024 - 20, 16 * 1024 - 1, 100_000, LONGEST - 20, LONGEST - 1])
async def test_no_part_of_a_secret_is_shown_wherever_in_a_long_record_it_is(scene: Scene, before: int) -> None:
    scene.logger.info("%s%s tail of the record", "x" * before, SECRET)

    shown = "".join(await scene.stored())

    assert PART not in shown
    assert "battery" not in shown
    assert shown.count("x") > before - 2 * len(SECRET)
    assert shown.endswith("tail of the record" if before < LONGEST - 100 else "…")


async def test_a_record_of_many_lines_keeps_them_all(scene: Scene) -> None:
    lines = [f"frame {number} {'y' * 60}" for number in range(1000)]
    scene.logger.info("\n".join(lines))

    assert await scene.stored() == lines


@pytest.mark.parametrize("end", ["", "\n", "\n\n"])
async def test_a_record_of_several_frames_is_cut_at_the_ends_of_lines_and_loses_none(scene: Scene, end: str) -> None:
    lines = [f"{number:07} {'y' * 500}\n" for number in range(5 * LONGEST // 509)]
    scene.logger.info("%s\n%s", "".join(lines), end)

    sent = [words.text for words in scene.heard.words if isinstance(words, Logged)]

    assert len(sent) > 4
    assert all(text.endswith("\n") for text in sent)
    assert max(map(len, sent)) <= LONGEST + 1
    assert "".join(sent) == "".join(lines) + "\n" + end


async def test_of_a_line_that_fills_the_quota_alone_the_rest_is_not_sent_but_the_next_lines_are(scene: Scene) -> None:
    scene.logger.info("first\n%s\nlast", "x" * (3 * LONGEST))

    sent = [words.text for words in scene.heard.words if isinstance(words, Logged)]

    assert [len(text) for text in sent] == [6, LONGEST, 4]
    assert sent[1].endswith("…")
    assert (await scene.stored())[-1] == "last"


async def test_half_pairs_do_not_make_a_record_vanish(scene: Scene) -> None:
    scene.logger.info("half \ud800 of a pair")

    assert await scene.stored() == ["half \ufffd of a pair"]


@pytest.mark.parametrize("times", [1, 16 * 1024 // len(SECRET), LONGEST // len(SECRET)])
async def test_no_part_of_a_secret_is_shown_in_a_message_of_progress(scene: Scene, times: int) -> None:
    scene.report.hide([SECRET * 500, SECRET])
    scene.heard.progress(0.5, SECRET * times + PART + SECRET * 30)

    await scene.stored()

    message = scene.kept.notes[-1].message
    assert PART not in message.replace(f"***{PART}***", "")
    assert len(message) <= 1000


async def test_a_message_of_progress_that_ends_in_dots_is_shown_whole(scene: Scene) -> None:
    scene.heard.progress(0.5, "loading…")

    await scene.stored()

    assert scene.kept.notes[-1].message == "loading…"


def test_what_is_logged_is_heard_once_also_if_the_app_writes_it_to_where_it_is_captured() -> None:
    root = logging.Logger("root", logging.DEBUG)  # noqa: LOG001 - like the root, and not the one of these tests
    file, nobody = logging.StreamHandler(io.StringIO()), logging.NullHandler()
    for other in (logging.StreamHandler(sys.__stderr__), logging.StreamHandler(sys.__stdout__), file):
        root.addHandler(other)
    hear_all(root, nobody)
    assert root.handlers == [file, nobody]
    assert root.level == logging.DEBUG


def test_an_app_that_set_nothing_up_logs_what_matters() -> None:
    root, nobody = logging.Logger("root", logging.WARNING), logging.NullHandler()  # noqa: LOG001
    hear_all(root, nobody)
    assert (root.handlers, root.level) == ([nobody], logging.INFO)
