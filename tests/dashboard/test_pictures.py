"""Pictures of the dashboard, for the docs; they also show that nothing is drawn outside of its frame."""

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.show import play
from tests.dashboard.site import Site

LARGEST = 150_000


@pytest.mark.parametrize(
    ("name", "path", "scheme", "width"),
    [
        ("overview-light", "/ui", "light", 1280),
        ("jobs-dark", "/ui/jobs", "dark", 1280),
        ("job-light", "job", "light", 1280),
        ("overview-phone", "/ui", "light", 390),
    ],
)
def test_a_picture_is_taken(
    browser: Browser, shown: Site, pictures: Path, name: str, path: str, scheme: str, width: int
) -> None:
    job = shown.run(play(shown.store))
    context = browser.new_context(
        base_url=shown.url,
        viewport={"width": width, "height": 860},
        color_scheme="dark" if scheme == "dark" else "light",
    )
    page = context.new_page()
    page.goto(f"/ui/jobs/{job}" if path == "job" else path)
    expect(page.locator("#pulse-light")).to_have_text("live")
    if path == "/ui":
        page.wait_for_function("Number(document.getElementById('charts').dataset.points) > 3")
    pictures.mkdir(exist_ok=True)
    target = pictures / f"{name}.png"
    page.screenshot(path=target, animations="disabled")
    context.close()

    assert 10_000 < target.stat().st_size < LARGEST
