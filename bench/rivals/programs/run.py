"""Runs one verb of one contestant's program: `python -m bench.rivals.programs.run huey fill|steady|work …`."""

import asyncio
import importlib
import json
import logging
import sys
import time
from collections.abc import Sequence
from typing import Final

from bench.rivals.programs.program import Program, Send

BATCH: Final = 1_000
WARM: Final = 5
"""Jobs before those that count: connections and prepared statements are there."""


def main(words: Sequence[str]) -> None:
    """Run the verb with its numbers."""
    name, verb, *numbers = words
    logging.basicConfig(level=logging.ERROR)
    # Not as __main__: some name a task by its module, and all processes must mean the same one.
    program: Program = importlib.import_module(f"bench.rivals.programs.{name}").program
    if verb == "work":
        program.work()
    elif verb == "fill":
        asyncio.run(_fill(program, int(numbers[0])))
    else:
        first, count, rate = map(int, numbers)
        json.dump(asyncio.run(_steady(program, first, count, rate)), sys.stdout)


async def _fill(program: Program, count: int) -> None:
    """Make the place, and submit jobs from number 0 on."""
    await program.prepare()
    async with program.sending() as send:
        for first in range(0, count, BATCH):
            await send(range(first, min(first + BATCH, count)))


async def _steady(program: Program, first: int, count: int, rate: int) -> list[tuple[int, float, float]]:
    """Submit one job after the other; return of each when that was begun and when it was acknowledged."""
    answered = []
    async with program.sending() as send:
        for number in range(first, first + WARM):
            await send([number])
        begun = time.monotonic() + 1 / rate
        for place in range(count):
            await asyncio.sleep(begun + place / rate - time.monotonic())
            answered.append(await _one(send, first + WARM + place))
    return answered


async def _one(send: Send, number: int) -> tuple[int, float, float]:
    called = time.time()
    await send([number])
    return number, called, time.time()


if __name__ == "__main__":
    main(sys.argv[1:])
