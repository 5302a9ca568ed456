"""One server and one world for all tests of the dashboard, and one browser for each file of them."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, expect, sync_playwright

from tests.dashboard.site import Site, sites
from tests.dashboard.world import World, fill
from tidewheel.server.access import Keyless

CHROMIUM = shutil.which("chromium")


@pytest.fixture(scope="session")
def all_sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Site]]:
    with sites(tmp_path_factory.mktemp("sites"), Keyless.ALWAYS, Keyless.NEVER, Keyless.ALWAYS) as found:
        yield found


@pytest.fixture(scope="session")
def site(all_sites: list[Site]) -> Site:
    """Where no key is needed."""
    return all_sites[0]


@pytest.fixture(scope="session")
def locked(all_sites: list[Site]) -> Site:
    """Where a key is needed."""
    return all_sites[1]


@pytest.fixture(scope="session")
def shown(all_sites: list[Site]) -> Site:
    """Where pictures are taken."""
    return all_sites[2]


@pytest.fixture(scope="session")
def world(site: Site, tmp_path_factory: pytest.TempPathFactory) -> World:
    return site.run(fill(site.store, site.blobs, tmp_path_factory.mktemp("world")))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser for a file of tests: while it is open this thread has a loop, and no asynchronous test can run."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here, and it could not be installed: apt-get install chromium")
    with sync_playwright() as playwright:
        expect.set_options(timeout=20_000)
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


class Watched:
    """What a page did that it should not."""

    def __init__(self, page: Page, allowed: str) -> None:
        self.complaints: list[str] = []
        self._page = page
        self._allowed = allowed
        page.on("console", self._console)
        page.on("pageerror", self._error)
        page.on("request", self._request)

    def stop(self) -> None:
        self._page.remove_listener("console", self._console)
        self._page.remove_listener("pageerror", self._error)
        self._page.remove_listener("request", self._request)

    def _console(self, told: ConsoleMessage) -> None:
        if told.type in ("error", "warning") and "status of 422" not in told.text:  # that a form was refused is told
            self.complaints.append(told.text)

    def _error(self, error: Error) -> None:
        self.complaints.append(str(error))

    def _request(self, request: Request) -> None:
        if not request.url.startswith((self._allowed, "data:")):
            self.complaints.append(f"asked {request.url}")


@pytest.fixture(scope="module")
def window(browser: Browser, site: Site, world: World) -> Iterator[Page]:
    """One window on the open site for all; opening one for each test would take most of the time."""
    assert world is not None
    context = browser.new_context(base_url=site.url, viewport={"width": 1280, "height": 800})
    context.set_default_timeout(20_000)
    yield context.new_page()
    context.close()


@pytest.fixture
def page(window: Page, site: Site) -> Iterator[Page]:
    """The window as if it were fresh; at the end nothing may have been complained about."""
    window.context.clear_cookies()
    window.emulate_media(color_scheme="light")
    window.set_viewport_size({"width": 1280, "height": 800})
    watched = Watched(window, site.url)
    yield window
    watched.stop()
    assert watched.complaints == []


@pytest.fixture(scope="session")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where pictures go: into the docs if someone wants them anew (`make pictures`)."""
    wanted = os.environ.get("TIDE_PICTURES") == "1"
    return Path(__file__).parents[2] / "docs" / "images" if wanted else tmp_path_factory.mktemp("pictures")
