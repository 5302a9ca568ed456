"""Coroutines in slots: no turn of the loop for who does not wait, and a word at every step."""

import asyncio
import contextvars
import os
from collections.abc import Coroutine
from typing import Any

import pytest

from tidewheel.worker.slots import before_exit, in_steps

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


def test_who_wants_to_end_the_process_ends_it_though_nobody_can_be_told(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "_exit", ended.append)

    def tell() -> None:
        raise ValueError("mmap closed or invalid")

    before_exit(tell)
    with pytest.raises(ValueError, match="mmap"):  # only since this process goes on
        os._exit(3)
    assert ended == [3]
