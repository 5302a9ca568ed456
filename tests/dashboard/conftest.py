"""One server, one world and one browser for all tests of the dashboard."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, sync_playwright

from tests.dashboard.site import Site, sites
from tests.dashboard.world import World, fill
from tidewheel.server.access import Keyless

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    with sites(tmp_path_factory.mktemp("sites"), Keyless.ALWAYS, Keyless.NEVER) as found:
        yield found


@pytest.fixture(scope="session")
def site(both: list[Site]) -> Site:
    """Where no key is needed."""
    return both[0]


@pytest.fixture(scope="session")
def locked(both: list[Site]) -> Site:
    """Where a key is needed."""
    return both[1]


@pytest.fixture(scope="session")
def world(site: Site) -> World:
    return site.run(fill(site.store))


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here, and it could not be installed: apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


class Watched:
    """What a page did that it should not."""

    def __init__(self, page: Page, allowed: str) -> None:
        self.complaints: list[str] = []
        page.on("console", lambda told: self._note(told.text, bad=told.type in ("error", "warning")))
        page.on("pageerror", lambda error: self._note(str(error), bad=True))
        page.on("request", lambda request: self._note(request.url, bad=not _is_own(request, allowed)))

    def _note(self, text: str, *, bad: bool) -> None:
        if bad:
            self.complaints.append(text)


def _is_own(request: Request, allowed: str) -> bool:
    return request.url.startswith((allowed, "data:"))


@pytest.fixture
def page(browser: Browser, site: Site, world: World) -> Iterator[Page]:
    """A fresh browser window on the open site; at its end nothing may have been complained about."""
    assert world
    context = browser.new_context(base_url=site.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(10_000)
    found = context.new_page()
    watched = Watched(found, site.url)
    yield found
    context.close()
    assert watched.complaints == []


@pytest.fixture(scope="session")
def pictures(request: pytest.FixtureRequest) -> Path | None:
    """Where pictures for the docs go, if they are wanted."""
    if not request.config.getoption("--pictures", default=False):
        return None
    return Path(__file__).parents[2] / "docs" / "images"
