"""Each page in a real browser: it says what it should, breaks no rule of access, and asks nobody else for anything."""

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from tests.dashboard.conftest import Watched
from tests.dashboard.places import PAGES
from tests.dashboard.site import Site
from tests.dashboard.world import World


class Visited(NamedTuple):
    """A page that was gone to, once for all that is to be seen there."""

    path: str
    page: Page
    watched: Watched


@pytest.fixture(scope="module", params=PAGES)
def visited(request: pytest.FixtureRequest, window: Page, site: Site, world: World) -> Iterator[Visited]:
    path = request.param.format(world=world)
    watched = Watched(window, site.url)
    window.emulate_media(color_scheme="light")
    window.set_viewport_size({"width": 1280, "height": 800})
    window.goto(path)
    yield Visited(request.param, window, watched)
    watched.stop()


def test_a_page_says_what_it_should(visited: Visited) -> None:
    for text in PAGES[visited.path]:
        expect(visited.page.locator("body")).to_contain_text(text)


def test_a_page_breaks_no_rule_of_accessibility(visited: Visited) -> None:
    broken = Axe().run(visited.page).response["violations"]

    assert [(each["id"], each["nodes"][0]["html"][:200]) for each in broken] == []


def test_a_page_has_enough_contrast_in_the_dark(visited: Visited) -> None:
    visited.page.emulate_media(color_scheme="dark")

    assert visited.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 28)"
    only = {"runOnly": {"type": "rule", "values": ["color-contrast"]}}
    broken = Axe().run(visited.page, options=only).response["violations"]
    assert [each["nodes"][0]["html"][:200] for each in broken] == []


def test_a_page_fits_on_a_phone(visited: Visited) -> None:
    visited.page.set_viewport_size({"width": 375, "height": 700})

    assert visited.page.evaluate("document.documentElement.scrollWidth") <= 375


def test_the_menu_is_seen_whole(visited: Visited) -> None:
    visited.page.set_viewport_size({"width": 1180, "height": 700})

    assert visited.page.evaluate(
        "[...document.querySelectorAll('.menu')].every((menu) => menu.scrollWidth <= menu.clientWidth)"
    )


def test_markup_in_what_users_wrote_stays_text(visited: Visited) -> None:
    assert visited.page.evaluate("window.hacked") is None
    assert visited.page.locator("main img, main script").count() == 0
    assert visited.page.get_by_text("49", exact=True).count() == 0


def test_a_page_asks_nobody_else_and_complains_of_nothing(visited: Visited) -> None:
    assert visited.watched.complaints == []


def test_the_theme_can_be_chosen_and_is_kept(page: Page) -> None:
    page.goto("/ui/queues")

    page.get_by_role("button", name="Dark theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto("/ui/jobs")

    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.get_by_role("button", name="Light theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_pages_can_be_read_without_javascript(browser: Browser, site: Site, world: World) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()

    page.goto("/ui/jobs")
    page.get_by_label("State").select_option("dead,expired")
    page.get_by_role("button", name="Apply").click()
    expect(page.get_by_role("link", name="thumbnail")).to_be_visible()
    page.get_by_role("link", name="thumbnail").click()
    expect(page.locator("h1")).to_have_text("thumbnail")
    page.goto(f"/ui/jobs/{world.done}?find=WROTE")
    expect(page.locator("#log li")).to_have_count(1)
    context.close()


def test_the_keyboard_leads_everywhere(page: Page) -> None:
    page.goto("/ui/jobs")

    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    page.keyboard.press("/")
    expect(page.get_by_label("Search")).to_be_focused()
