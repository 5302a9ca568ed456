"""Open pages follow what happens, within about a second and without a reload."""

import re

from playwright.sync_api import Locator, Page, expect

from tests.builders import a_claim, a_job, a_worker, outcome_of
from tests.dashboard.site import Site
from tests.dashboard.world import write
from tidewheel.clock import SystemClock
from tidewheel.model.job import Run
from tidewheel.model.priority import Priority


def number_in(element: Locator) -> int:
    return int(element.inner_text())


CLOCK = SystemClock()
EVIL_LINE = "<img src=x onerror='window.hacked=1'> live"


def start(site: Site, kind: str) -> tuple[Run, object]:
    async def work() -> tuple[Run, object]:
        worker = await site.store.register(a_worker(f"{kind}/runner-0", queues=(kind,)))
        await site.store.submit([a_job(kind, queue=kind)])
        [run] = (await site.store.claim(a_claim(worker.id, 1, queues=(kind,)))).runs
        return run, worker.id

    return site.run(work())


def test_a_list_of_jobs_follows_and_keeps_what_was_ticked(page: Page, site: Site) -> None:
    [first] = site.run(site.store.submit([a_job("followed", queue="followed")]))
    page.goto("/ui/jobs?kind=followed")
    expect(page.locator("#pulse-light")).to_have_text("live")
    page.locator(f"#tick-{first.job_id}").check()

    [second] = site.run(site.store.submit([a_job("followed", queue="followed")]))

    expect(page.locator(f"#job-{second.job_id}")).to_be_visible()
    expect(page.locator(f"#tick-{first.job_id}")).to_be_checked()
    site.run(site.store.cancel(first.job_id))
    expect(page.locator(f"#job-{first.job_id} .state")).to_contain_text("cancelled")
    expect(page.locator(f"#tick-{first.job_id}")).to_be_checked()


def test_what_happens_is_on_an_open_page_within_a_second(page: Page, site: Site) -> None:
    """The quickest of some: how busy the machine is says nothing about the page."""
    page.goto("/ui/jobs?kind=prompt")
    expect(page.locator("#pulse-light")).to_have_text("live")
    took = []
    for _ in range(5):
        [job] = site.run(site.store.submit([a_job("prompt", queue="prompt")]))
        submitted = CLOCK.monotonic()
        page.locator(f"#job-{job.job_id}").wait_for(timeout=20_000)
        took.append(CLOCK.monotonic() - submitted)

    assert min(took) < 1.0


def test_the_page_of_a_job_follows_its_log_and_its_end(page: Page, site: Site) -> None:
    run, worker = start(site, "talks")
    site.run(write(site.store, run, "before"))
    page.goto(f"/ui/jobs/{run.job_id}")
    expect(page.locator("#log li")).to_have_count(1)

    site.run(write(site.store, run, "needle", EVIL_LINE, first=1))
    expect(page.locator("#log li")).to_have_count(3)
    assert page.evaluate("window.hacked") is None
    page.get_by_label("Find in the log").fill("NEEDLE")
    expect(page.locator("#log li:visible")).to_have_count(1)
    site.run(site.store.settle(worker, [outcome_of(run)]))  # type: ignore[arg-type]

    expect(page.locator(".title .state")).to_contain_text("succeeded")
    expect(page.locator("#log li")).to_have_count(3)


def test_a_long_log_shows_its_end_and_follows_also_while_something_is_searched_for(page: Page, site: Site) -> None:
    run, _ = start(site, "chatters")
    site.run(write(site.store, run, "needle zero", *(f"line {number}" for number in range(1, 600))))
    page.goto(f"/ui/jobs/{run.job_id}")
    expect(page.locator("#log li")).to_have_count(500)
    expect(page.locator("#log li").last).to_contain_text("line 599")

    site.run(write(site.store, run, "line 600", first=600))
    expect(page.locator("#log li").last).to_contain_text("line 600")
    page.locator("#log").scroll_into_view_if_needed()
    expect(page.locator("#log li").last).to_be_in_viewport()
    page.get_by_label("Find in the log").fill("needle")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("find=needle"))
    expect(page.locator("#log li")).to_have_count(1)
    expect(page.locator("#log li")).to_contain_text("needle zero")
    site.run(write(site.store, run, "dull", "another needle", first=601))

    expect(page.locator("#log li:visible")).to_have_count(2)
    expect(page.locator("#log li:visible").last).to_contain_text("another needle")
    page.get_by_role("link", name="The last lines").click()
    page.get_by_role("link", name="Earlier lines").click()
    expect(page.locator("#log li").first).to_contain_text("needle zero")


def test_the_overview_tells_what_runs_and_waits_within_moments(page: Page, site: Site) -> None:
    """No keeper counts here: only a page that counts by itself, and is told at once, can be true so soon."""
    page.goto("/ui")
    expect(page.locator("#pulse-light")).to_have_text("live")
    tile = page.locator(".tile", has=page.get_by_role("heading", name="Running"))
    waits = page.locator(".tile", has=page.get_by_role("heading", name="Waiting"))
    before, high = number_in(tile.locator(".figure")), waits.locator(".sub").inner_text()

    run, _ = start(site, "noticed.at.once")
    site.run(site.store.submit([a_job("urgent", queue="nobody", priority=Priority.HIGH)]))

    expect(tile.locator(".figure")).to_have_text(str(before + 1), timeout=5_000)
    expect(page.get_by_role("link", name="noticed.at.once", exact=True)).to_be_visible(timeout=5_000)
    expect(waits.locator(".sub")).not_to_have_text(high, timeout=5_000)
    expect(page.locator("main")).not_to_contain_text("counted now and then")
    assert run.token == 1


def test_the_overview_counts_and_draws(page: Page, site: Site) -> None:
    page.goto("/ui")
    expect(page.locator("#charts canvas")).to_have_count(3)

    run, worker = start(site, "counted")
    site.run(site.store.settle(worker, [outcome_of(run)]))  # type: ignore[arg-type]

    expect(page.locator("#charts")).to_have_attribute("data-points", re.compile("[3-9]|[0-9]{2,}"))
    expect(page.locator("#point")).to_have_attribute("value", re.compile(r'"rate":(?!0[.,]0?[,}])[0-9]'))


def test_a_page_that_is_not_looked_at_follows_nothing(page: Page) -> None:
    page.goto("/ui/queues")
    expect(page.locator("#pulse-light")).to_have_text("live")

    page.evaluate(
        "Object.defineProperty(document, 'visibilityState', {value: 'hidden', configurable: true});"
        "document.dispatchEvent(new Event('visibilitychange'))"
    )

    expect(page.locator("#pulse-light")).to_have_text("paused")
