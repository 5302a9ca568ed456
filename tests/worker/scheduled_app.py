"""An app whose code declares schedules; a newer code of it has forgotten one and changed another."""

import os

from tidewheel import App

app = App()
NEWER = "TIDE_TEST_NEWER" in os.environ


@app.task(name="tick", every="1s", overlap="allow")
async def tick() -> None:
    """End at once."""


@app.task(name="tidy", cron="0 5 * * *", timezone="Asia/Tokyo" if NEWER else "Europe/Berlin")
def tidy() -> None:
    """Is declared with another zone later."""


if not NEWER:

    @app.task(name="old", schedule="forgotten", cron="0 6 * * *")
    async def old() -> None:
        """Is gone later."""
