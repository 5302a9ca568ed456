import asyncio
import time
from datetime import UTC, datetime, timedelta

import pytest

from tidewheel.clock import Clock, SystemClock
from tidewheel.testing import FakeClock

MINUTE = timedelta(minutes=1)


async def test_the_system_clock_tells_the_machines_time() -> None:
    clock: Clock = SystemClock()

    before, told, after = datetime.now(UTC), clock.now(), datetime.now(UTC)

    assert before <= told <= after
    assert told.utcoffset() == timedelta()


async def test_the_system_clock_counts_the_time_since_boot_where_it_can() -> None:
    source = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

    assert SystemClock().monotonic() == pytest.approx(time.clock_gettime(source), abs=1)


async def test_the_system_clock_sleeps() -> None:
    clock = SystemClock()
    start = clock.monotonic()

    await clock.sleep(0.01)

    assert clock.monotonic() - start >= 0.009


async def test_a_fake_clock_stands_still() -> None:
    start = datetime(2031, 5, 1, tzinfo=UTC)
    clock = FakeClock(start)

    assert (clock.now(), clock.monotonic()) == (start, 0.0)
    assert clock.now() == start


async def test_sleepers_wake_in_the_order_of_their_deadlines_and_at_them() -> None:
    clock = FakeClock()
    woken: list[tuple[str, float]] = []

    async def sleeper(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        woken.append((name, clock.monotonic()))

    async with asyncio.TaskGroup() as group:
        for name, seconds in (("c", 30), ("a", 10), ("b", 20), ("b2", 20), ("now", 0)):
            group.create_task(sleeper(name, seconds))
        await clock.advance(MINUTE)

    assert woken == [("now", 0), ("a", 10), ("b", 20), ("b2", 20), ("c", 30)]
    assert clock.monotonic() == 60


async def test_a_sleep_ends_not_before_its_deadline() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(60))

    await clock.advance(MINUTE - timedelta(microseconds=1))
    assert not task.done()
    assert clock.sleepers == 1

    await clock.advance(timedelta(microseconds=1))
    assert task.done()
    assert clock.sleepers == 0


async def test_a_loop_turns_at_every_deadline_on_the_way() -> None:
    clock = FakeClock()
    ticks: list[datetime] = []

    async def tick() -> None:
        while True:
            await clock.sleep(60)
            ticks.append(clock.now())

    task = asyncio.create_task(tick())
    start = clock.now()
    await clock.set(start + timedelta(hours=1))
    task.cancel()

    assert ticks == [start + n * MINUTE for n in range(1, 61)]


async def test_what_a_sleeper_starts_runs_before_time_moves_on() -> None:
    clock = FakeClock()
    seen: list[float] = []

    async def nested(depth: int) -> None:
        if depth:
            await asyncio.create_task(nested(depth - 1))
        else:
            seen.append(clock.monotonic())

    async def sleeper(seconds: float) -> None:
        await clock.sleep(seconds)
        await nested(10)

    async with asyncio.TaskGroup() as group:
        group.create_task(sleeper(1))
        group.create_task(sleeper(2))
        await clock.advance(MINUTE)

    assert seen == [1, 2]


async def test_a_cancelled_sleeper_is_forgotten() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.advance(timedelta())

    task.cancel()
    await clock.advance(MINUTE)

    assert task.cancelled()
    assert clock.sleepers == 0


async def test_a_step_of_the_wall_clock_wakes_nobody() -> None:
    clock = FakeClock()
    task = asyncio.create_task(clock.sleep(1))
    await clock.advance(timedelta())
    before = clock.now()

    clock.step(-timedelta(hours=1))

    assert clock.now() == before - timedelta(hours=1)
    assert (clock.monotonic(), task.done()) == (0, False)
    await clock.advance(timedelta(seconds=1))
    assert task.done()


async def test_time_does_not_run_backwards() -> None:
    clock = FakeClock()

    with pytest.raises(ValueError, match="backwards"):
        await clock.advance(-MINUTE)


def test_a_naive_start_is_refused() -> None:
    with pytest.raises(ValueError, match="aware"):
        FakeClock(datetime(2030, 1, 1))  # noqa: DTZ001 - the point of the test
