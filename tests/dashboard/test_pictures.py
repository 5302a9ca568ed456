"""Pictures of the dashboard, for the docs; they also show that nothing is drawn outside of its frame."""

import asyncio
import re
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.past import live_through
from tests.dashboard.show import play, six_hours_until
from tests.dashboard.site import CLOCK, Site

LARGEST = 150_000


class Picture(NamedTuple):
    """What to take."""

    name: str
    path: str
    scheme: Literal["light", "dark"]
    width: int
    height: int


@pytest.fixture(scope="module", autouse=True)
def past(shown: Site) -> None:
    asyncio.run(live_through(shown.file, six_hours_until(CLOCK.now())))


@pytest.mark.parametrize(
    "picture",
    [
        Picture("overview-light", "/ui?range=6h", "light", 1180, 860),
        Picture("jobs-dark", "/ui/jobs?state=queued,blocked,running,dead", "dark", 1180, 560),
        Picture("job-light", "job", "light", 1180, 860),
        Picture("overview-phone", "/ui?range=6h", "light", 390, 760),
    ],
    ids=lambda picture: picture.name,
)
def test_a_picture_is_taken(browser: Browser, shown: Site, pictures: Path, picture: Picture) -> None:
    path = picture.path
    job = shown.run(play(shown.store))
    context = browser.new_context(
        base_url=shown.url,
        viewport={"width": picture.width, "height": picture.height},
        color_scheme=picture.scheme,
    )
    page = context.new_page()
    page.goto(f"/ui/jobs/{job}" if path == "job" else path)
    expect(page.locator("#pulse-light")).to_have_text("live")
    if path.startswith("/ui?range"):
        expect(page.locator("#history canvas")).to_have_count(4)
        for points in ("[3-9]|[0-9]{2,}", "[5-9]|[0-9]{2,}", "[7-9]|[0-9]{2,}"):
            shown.run(play(shown.store))
            expect(page.locator("#charts")).to_have_attribute("data-points", re.compile(points))
    pictures.mkdir(exist_ok=True)
    target = pictures / f"{picture.name}.png"
    page.screenshot(path=target, animations="disabled")
    context.close()

    assert 10_000 < target.stat().st_size < LARGEST
