"""The app that the measured workers load: tasks that do nothing, one that says when it began, and some that talk."""

import logging
import os
import random
import time
from pathlib import Path
from typing import Final

from bench.logs.lines import text_of
from tidewheel import App

LONG: Final = 3600.0
"""Seconds; longer than anything is measured."""
SENT: Final = {"sent": True, "n": 17}
_CHANCE: Final = random.Random(1)
_LINES: Final = [text_of(number, _CHANCE) for number in range(1, 11)]
"""What a run says: ten lines of about 90 characters with their levels, one of them JSON."""
_LOGGED: Final = [(logging.getLevelNamesMapping()[level.upper()], text) for level, text in _LINES]

_heard = logging.getLogger("bench.heard")
_heard.setLevel(logging.DEBUG)
_unheard = logging.getLogger("bench.unheard")
_unheard.setLevel(logging.DEBUG)
_unheard.propagate = False
_unheard.addHandler(logging.NullHandler())
_nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - as long as the process

app = App()


@app.task(name="mail.send")
async def send(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001 - a row like real ones
    return SENT


@app.task(name="mail.render")
def render(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001
    return SENT


@app.task(name="mail.stamp")
async def stamp(to: str, template: str, attempt: str) -> float:  # noqa: ARG001
    return time.time()


@app.task(name="mail.linger", preempt="pause", timeout="1h")
def linger(to: str, template: str, attempt: str) -> None:  # noqa: ARG001
    time.sleep(LONG)


@app.task(name="mail.hurry")
def hurry(to: str, template: str, attempt: str) -> float:  # noqa: ARG001
    return time.time()


@app.task(name="mail.log")
async def log(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001
    for level, text in _LOGGED:
        _heard.log(level, text)
    return SENT


@app.task(name="mail.log_to_nobody")
async def log_to_nobody(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001
    for level, text in _LOGGED:
        _unheard.log(level, text)
    return SENT


@app.task(name="mail.print")
async def print_lines(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001
    for _, text in _LINES:
        print(text)
    return SENT


@app.task(name="mail.print_to_nobody")
async def print_to_nobody(to: str, template: str, attempt: str) -> dict[str, int]:  # noqa: ARG001
    for _, text in _LINES:
        print(text, file=_nowhere)
    return SENT
