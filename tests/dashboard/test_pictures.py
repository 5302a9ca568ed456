"""Pictures of the dashboard, for the docs; they also show that nothing is drawn outside of its frame."""

import re
from pathlib import Path
from typing import Literal, NamedTuple

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.show import play
from tests.dashboard.site import Site

LARGEST = 150_000


class Picture(NamedTuple):
    """What to take."""

    name: str
    path: str
    scheme: Literal["light", "dark"]
    width: int
    height: int


@pytest.mark.parametrize(
    "picture",
    [
        Picture("overview-light", "/ui", "light", 1180, 860),
        Picture("jobs-dark", "/ui/jobs?state=queued,blocked,running,dead", "dark", 1180, 560),
        Picture("job-light", "job", "light", 1180, 860),
        Picture("overview-phone", "/ui", "light", 390, 760),
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
    if path == "/ui":
        for points in ("[3-9]|[0-9]{2,}", "[5-9]|[0-9]{2,}", "[7-9]|[0-9]{2,}"):
            shown.run(play(shown.store))
            expect(page.locator("#charts")).to_have_attribute("data-points", re.compile(points))
    pictures.mkdir(exist_ok=True)
    target = pictures / f"{picture.name}.png"
    page.screenshot(path=target, animations="disabled")
    context.close()

    assert 10_000 < target.stat().st_size < LARGEST
