"""Batches on their way to the store."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from threading import Thread
from typing import Final
from uuid import UUID

import pytest

from tidewheel.errors import Invalid, Unavailable
from tidewheel.logs.shipper import LogShipper, ShipperSettings
from tidewheel.model.log import LogLine
from tidewheel.model.log_piece import Piece, lines_of, pieces_of
from tidewheel.testing import FakeClock

NOW: Final = datetime(2030, 1, 1, tzinfo=UTC)
JOB: Final = UUID(int=1)
OTHER: Final = UUID(int=2)
SECOND: Final = timedelta(seconds=1)
MOMENT: Final = timedelta(milliseconds=1)


class Log:
    """Takes batches, or fails."""

    def __init__(self) -> None:
        self.batches: list[list[LogLine]] = []
        self.fail: Callable[[], Exception] | None = None
        self.calls = 0

    async def append(self, pieces: Sequence[Piece]) -> None:
        self.calls += 1
        if self.fail is not None:
            raise self.fail()
        self.batches.append([line for p in pieces for line in lines_of(p.job_id, p.token, p.first, p.lines)])

    @property
    def lines(self) -> list[LogLine]:
        return [line for batch in self.batches for line in batch]

    def texts(self, job: UUID = JOB) -> list[str]:
        return [line.text for line in self.lines if line.job_id == job]


def put(shipper: LogShipper, first: int, count: int, job: UUID = JOB, text: str = "") -> None:
    """Put lines, each as a piece of its own."""
    for number in range(first, first + count):
        shipper.put(pieces_of([LogLine(job, 1, number, NOW, "stdout", None, text or str(number))]))


class Run:
    """Has one line to give at its end."""

    def __init__(self, shipper: LogShipper, job: UUID) -> None:
        self._shipper = shipper
        self._job = job

    def give(self) -> None:
        """Keep it for the end."""

    def end_all(self, runs: Sequence["Run"]) -> None:
        for run in runs:
            run.end()

    def end(self) -> None:
        put(self._shipper, 1, 1, self._job)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
async def shipper(log: Log, clock: FakeClock) -> AsyncIterator[LogShipper]:
    made = LogShipper(log.append, clock, ShipperSettings(batch_lines=10, buffer_lines=40, buffer_bytes=3000))
    yield made
    made._task.cancel()


async def test_lines_wait_a_tenth_of_a_second_for_company(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    put(shipper, 1, 1)
    await clock.advance(99 * MOMENT)
    put(shipper, 2, 1)
    assert log.batches == []

    await clock.advance(MOMENT)

    assert log.texts() == ["1", "2"]
    assert len(log.batches) == 1


async def test_many_lines_do_not_wait(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    put(shipper, 1, 9)
    await clock.advance(MOMENT)
    assert log.batches == []

    put(shipper, 10, 14)
    await clock.advance(MOMENT)
    assert [len(batch) for batch in log.batches] == [10, 10]

    await clock.advance(100 * MOMENT)
    assert [line.number for line in log.lines] == list(range(1, 24))


async def test_a_batch_is_bounded_in_bytes(log: Log, clock: FakeClock) -> None:
    shipper = LogShipper(log.append, clock, ShipperSettings(batch_bytes=150))
    put(shipper, 1, 5, text="x" * 60)

    assert await shipper.close() == 0
    assert [len(batch) for batch in log.batches] == [2, 2, 1]


async def test_a_flush_brings_all_lines_of_a_run_at_once(shipper: LogShipper, log: Log) -> None:
    put(shipper, 1, 25)

    assert await shipper.flush(JOB, 1)  # the clock stands still

    assert [line.number for line in log.lines] == list(range(1, 26))
    assert await shipper.flush(JOB, 1)


async def test_a_flush_gives_up_in_time_and_the_lines_come_later(
    shipper: LogShipper, log: Log, clock: FakeClock
) -> None:
    log.fail = lambda: Unavailable("down")
    put(shipper, 1, 3)

    flushing = asyncio.create_task(shipper.flush(JOB, 1, within=2 * SECOND))
    await clock.advance(1.9 * SECOND)
    assert not flushing.done()
    await clock.advance(0.2 * SECOND)
    assert not await flushing

    log.fail = None
    await clock.advance(10 * SECOND)
    assert log.texts() == ["1", "2", "3"]


async def test_who_waits_for_many_runs_is_told_in_time_without_a_task_for_each(
    shipper: LogShipper, log: Log, clock: FakeClock
) -> None:
    log.fail = lambda: Unavailable("down")
    told: list[bool] = []
    for number in range(3):
        shipper.finish(Run(shipper, UUID(int=number)), 1, told.append, 2 * SECOND)
        await clock.advance(SECOND)
    before = len(asyncio.all_tasks())
    assert told == [False, False]

    log.fail = None
    await clock.advance(SECOND)

    assert told == [False, False, True]
    assert len(asyncio.all_tasks()) <= before <= 4


async def test_runs_that_end_together_are_stored_together_and_told_then(
    shipper: LogShipper, log: Log, clock: FakeClock
) -> None:
    told: list[bool] = []
    for number in range(5):
        shipper.finish(Run(shipper, UUID(int=number)), 1, told.append)
    assert told == []

    await clock.advance(MOMENT)

    assert told == [True] * 5
    assert [[line.job_id.int for line in batch] for batch in log.batches] == [[0, 1, 2, 3, 4]]


async def test_runs_that_end_while_others_are_stored_are_stored_next_though_nobody_says_another_word(
    clock: FakeClock,
) -> None:
    told: list[bool] = []
    answers = [asyncio.Event(), asyncio.Event()]
    waiting = iter(answers)

    async def append(_: Sequence[Piece]) -> None:
        await next(waiting).wait()

    shipper = LogShipper(append, clock)
    shipper.finish(Run(shipper, JOB), 1, told.append)
    await clock.advance(MOMENT)
    shipper.finish(Run(shipper, OTHER), 1, told.append)
    for done, answer in enumerate(answers, 1):
        answer.set()
        await clock.advance(10 * MOMENT)
        assert told == [True] * done
    await shipper.close()


async def test_who_flushes_waits_for_runs_that_ended_before(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    told: list[bool] = []
    shipper.finish(Run(shipper, OTHER), 1, told.append)
    put(shipper, 1, 1)

    flushing = asyncio.ensure_future(shipper.flush(JOB, 1))
    await clock.advance(MOMENT)

    assert await flushing
    assert told == [True]
    assert {line.job_id for line in log.lines} == {JOB, OTHER}


async def test_runs_whose_lines_were_not_fetched_yet_count_as_what_is_behind(
    shipper: LogShipper, clock: FakeClock
) -> None:
    shipper.finish(Run(shipper, JOB), 30, lambda _: None)
    assert shipper.behind

    await clock.advance(MOMENT)
    assert not shipper.behind


async def test_a_run_that_said_nothing_more_is_told_at_once(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    class Silent(Run):
        def end(self) -> None:
            """Have nothing to give."""

    told: list[bool] = []
    shipper.finish(Silent(shipper, JOB), 0, told.append)
    await clock.advance(MOMENT)

    assert told == [True]
    assert log.batches == []


async def test_attempts_grow_rarer_while_the_store_is_away(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    log.fail = lambda: Unavailable("down")
    put(shipper, 1, 1)

    await clock.advance(timedelta(minutes=1))

    assert 10 < log.calls < 20


async def test_what_finds_no_room_is_dropped_and_counted_where_it_would_have_been(
    shipper: LogShipper, log: Log, clock: FakeClock
) -> None:
    log.fail = lambda: Unavailable("down")
    put(shipper, 1, 10)
    await clock.advance(MOMENT)  # under way, and no longer in the buffer
    for first in range(11, 71, 10):
        put(shipper, first, 10)
    put(shipper, 1, 5, OTHER)
    assert len(shipper._buffer) == 40
    assert shipper.behind

    log.fail = None
    await clock.advance(10 * SECOND)
    assert len(shipper._buffer) == 0
    put(shipper, 71, 1)
    assert await shipper.flush(JOB, 1)
    assert await shipper.flush(OTHER, 1)

    mark = "[… 20 lines lost: the log did not keep up, or was refused …]"
    assert log.texts() == [*map(str, range(1, 51)), mark, "71"]
    assert [line.number for line in log.lines if line.job_id == JOB] == [*range(1, 52), 71]
    assert log.texts(OTHER) == ["[… 5 lines lost: the log did not keep up, or was refused …]"]
    assert {line.stream for line in log.lines if line.text.startswith("[")} == {"system"}


async def test_the_buffer_is_bounded_in_bytes_too(shipper: LogShipper, log: Log, clock: FakeClock) -> None:
    log.fail = lambda: Unavailable("down")
    put(shipper, 1, 1)
    await clock.advance(SECOND)

    for number in range(2, 22):
        put(shipper, number, 1, text="x" * 900)

    assert len(shipper._buffer) == 3
    log.fail = None
    await clock.advance(10 * SECOND)
    assert await shipper.close() == 0
    assert log.texts()[1:] == ["x" * 900] * 3 + ["[… 17 lines lost: the log did not keep up, or was refused …]"]


async def test_lines_that_are_refused_hold_up_nothing_and_are_counted(
    shipper: LogShipper, log: Log, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    log.fail = lambda: Invalid("text", "bad")
    put(shipper, 1, 3)
    with caplog.at_level(logging.CRITICAL):
        await clock.advance(100 * MOMENT)
    assert log.calls == 1

    log.fail = None
    put(shipper, 4, 1)
    assert await shipper.flush(JOB, 1)

    assert log.texts() == ["[… 3 lines lost: the log did not keep up, or was refused …]", "4"]


async def test_a_store_that_refuses_everything_is_not_asked_for_ever(
    shipper: LogShipper, log: Log, clock: FakeClock
) -> None:
    log.fail = lambda: RuntimeError("a bug")
    put(shipper, 1, 3)

    await clock.advance(timedelta(hours=1))

    assert log.calls == 2  # the lines, and the line that says that they are lost


async def test_closing_ships_what_there_is(log: Log, clock: FakeClock) -> None:
    shipper = LogShipper(log.append, clock)
    put(shipper, 1, 3)

    assert await shipper.close() == 0

    assert log.texts() == ["1", "2", "3"]
    assert shipper._task.done()


async def test_closing_while_the_store_is_away_says_how_much_is_lost(log: Log, clock: FakeClock) -> None:
    log.fail = lambda: Unavailable("down")
    shipper = LogShipper(log.append, clock)
    put(shipper, 1, 3)

    closing = asyncio.create_task(shipper.close(SECOND))
    await clock.advance(2 * SECOND)

    assert await closing == 3


async def test_threads_may_put_lines(log: Log, clock: FakeClock) -> None:
    shipper = LogShipper(log.append, clock)

    def talk(job: int) -> None:
        for number in range(500):
            put(shipper, number, 1, UUID(int=job))

    threads = [Thread(target=talk, args=(job,)) for job in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)

    assert await shipper.close() == 0
    for job in range(4):
        assert log.texts(UUID(int=job)) == [str(number) for number in range(500)]


async def test_putting_after_the_loop_has_gone_does_not_raise(clock: FakeClock, log: Log) -> None:
    def elsewhere() -> LogShipper:
        async def make() -> LogShipper:
            return LogShipper(log.append, clock)

        return asyncio.run(make())

    shipper = await asyncio.to_thread(elsewhere)
    put(shipper, 1, 1)

    assert len(shipper._buffer) == 1
