"""The app that the measured workers load: tasks that do nothing, and one that says when it began."""

import time
from typing import Final

from tidewheel import App

SENT: Final = {"sent": True, "n": 17}

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
