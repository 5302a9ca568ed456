"""Coroutines in slots: no turn of the loop for who does not wait, and a word at every step."""

import asyncio
import contextvars
from collections.abc import Coroutine
from typing import Any

import pytest

from tests.builders import a_run
from tidewheel.model.priority import Priority
from tidewheel.worker.slots import MOST_AHEAD, Pace, Waiting, in_steps

NAME = contextvars.ContextVar("NAME", default="nobody")


class Steps:
    def __init__(self) -> None:
        self.heard: list[str] = []

    def entered(self) -> None:
        self.heard.append("entered")

    def suspended(self) -> None:
        self.heard.append("suspended")

    def left(self) -> None:
        self.heard.append("left")


async def run(coroutine: Coroutine[Any, Any, Any], steps: Steps | None = None) -> Any:
    return await in_steps(coroutine, contextvars.copy_context(), steps or Steps())


async def test_who_never_waits_costs_no_turn_of_the_loop() -> None:
    turns = 0

    def count() -> None:
        nonlocal turns
        turns += 1

    async def quick() -> int:
        return 7

    asyncio.get_running_loop().call_soon(count)
    steps = Steps()

    assert [await run(quick(), steps) for _ in range(100)] == [7] * 100
    assert turns == 0
    assert steps.heard == ["entered"] * 100


async def test_every_step_is_told() -> None:
    async def waits() -> str:
        for _ in range(2):
            await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop, not a span of time
        return "done"

    steps = Steps()
    assert await run(waits(), steps) == "done"
    assert steps.heard == ["entered", "suspended", "left", "entered", "left", "entered"]


async def test_values_of_a_context_stay_with_their_run() -> None:
    async def set_name() -> str:
        NAME.set("me")
        await asyncio.sleep(0)  # noqa: TID251
        return NAME.get()

    assert await run(set_name()) == "me"
    assert NAME.get() == "nobody"


async def test_an_exception_comes_through_and_can_be_handled_inside() -> None:
    async def fails() -> None:
        await asyncio.sleep(0)  # noqa: TID251
        raise KeyError("x")

    async def is_cancelled() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # noqa: TID251
            return "cleaned up"
        return ""

    with pytest.raises(KeyError):
        await run(fails())
    task = asyncio.ensure_future(run(is_cancelled()))
    await asyncio.sleep(0)  # noqa: TID251
    task.cancel()
    assert await task == "cleaned up"


async def test_a_timeout_of_the_task_itself_works_as_anywhere() -> None:
    async def gives_up() -> str:
        try:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
        except TimeoutError:
            return "gave up"
        return ""

    assert await run(gives_up()) == "gave up"


def test_what_waits_comes_out_by_priority_and_then_in_order() -> None:
    waiting = Waiting()
    low, high, other = a_run(priority=Priority.LOW), a_run(priority=Priority.HIGH), a_run(priority=Priority.HIGH)
    waiting.add([low, high, other])

    assert len(waiting) == 3
    assert waiting.take_out(lambda run: run is other) == [other]
    assert [waiting.pop(), waiting.pop(), waiting.pop()] == [high, low, None]


def test_no_more_is_claimed_ahead_than_a_few_milliseconds_of_work() -> None:
    pace = Pace(slots=100)
    assert pace.ahead() <= 1
    for _ in range(500):
        pace.note(1.0, suspended=True)  # a hundred at a time, a second each
    assert pace.ahead() in (1, 2)
    for _ in range(500):
        pace.note(0.000_01, suspended=False)
    assert pace.ahead() == MOST_AHEAD
    for _ in range(500):
        pace.note(0.05, suspended=False)
    assert pace.ahead() == 0
