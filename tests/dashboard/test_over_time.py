"""Charts of any time that is kept, in a real browser and without one."""

import asyncio
import html
import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import httpx
import msgspec
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.builders import a_claim, a_job, a_worker, outcome_of
from tests.dashboard.past import Ends, live_through
from tests.dashboard.site import CLOCK, Site
from tests.dashboard.world import World
from tidewheel.model import statistics as rules
from tidewheel.model.access import Role
from tidewheel.model.statistics import begin_of
from tidewheel.server.dashboard.rendering import NOTHING

DAY = timedelta(days=1)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)
OTHERS = "acme"
TIME = r"^\d\d:\d\d$"
A_DAY = r"^\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)$"
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "use-the-dashboard.md"


@pytest.fixture(scope="module", autouse=True)
def past(all_sites: list[Site], world: World) -> None:
    """Jobs that ended within the last month, here and where a key is needed."""
    assert world is not None
    now = CLOCK.now()
    ends = [
        *(Ends(now - days * DAY, "old.steady", 3) for days in (28, 20, 12, 5, 4)),
        Ends(now - 20 * DAY - HOUR, "old.broken", 1, 4, run=timedelta(seconds=90)),
        Ends(now - 3 * HOUR, "fresh.today", 5, 1, queue="today", wait=timedelta(seconds=20)),
        Ends(now - 3 * HOUR, "minutes.gone", 5, queue="gone"),
        Ends(now - 30 * MINUTE, "fresh.lately", 2, queue="today"),
        *(Ends(begin_of(now - 15 * DAY, DAY) + 3 * hours * HOUR, "old.often", 1) for hours in range(6)),
        Ends(now - 10 * DAY, "of.others", 7, tenant=OTHERS, queue="others"),
    ]
    for site in all_sites[:2]:
        asyncio.run(live_through(site.file, ends))


@pytest.fixture
def client(site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, timeout=60) as found:
        yield found


def rows_in(text: str) -> dict[str, list[str]]:
    """Return what the table of kinds says, by kind."""
    body = text.partition('id="kinds"')[2].partition("<tbody>")[2].partition("</tbody>")[0]
    rows = [
        [html.unescape(re.sub(r"<[^>]*>", "", cell)).strip() for cell in re.findall(r"<td.*?</td>", row, re.DOTALL)]
        for row in re.findall(r"<tr.*?</tr>", body, re.DOTALL)
    ]
    return {row[0].removesuffix("charts").strip(): row[1:] for row in rows}


def series(client: httpx.Client, query: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(f"/ui/series{query}").json()
    return found


# Without a browser


def test_the_table_tells_what_failed_most_in_thirty_days(client: httpx.Client) -> None:
    rows = rows_in(client.get("/ui?range=30d&kinds=all").text)

    assert next(iter(rows)) == "old.broken"
    assert rows["old.broken"] == ["5", "4", "80\u202f%", "1.0 s", "1.0 s", "1 min 32 s", "1 min 32 s"]
    assert rows["old.steady"][:3] == ["15", "0", "0\u202f%"]
    assert rows["fresh.today"][:5] == ["6", "1", "17\u202f%", "23 s", "23 s"]
    assert "of.others" not in rows


def test_the_table_may_tell_what_ended_most_first(client: httpx.Client) -> None:
    page = client.get("/ui?range=30d&sort=jobs").text

    assert next(iter(rows_in(page))) == "old.steady"
    assert re.search(r'aria-sort="descending"><a [^>]*>Ended', page)


@pytest.mark.parametrize(
    ("query", "shown", "hidden"),
    [
        ("", {"fresh.lately"}, {"fresh.today", "old.steady"}),
        ("?range=6h", {"fresh.lately", "fresh.today"}, {"old.steady"}),
        ("?range=7d", {"old.steady", "fresh.today"}, {"old.broken"}),
        ("?range=30d&queue=today", {"fresh.lately", "fresh.today"}, {"old.steady"}),
        ("?range=30d&kind=old.broken", {"old.broken"}, {"old.steady"}),
        ("?range=30d&queue=today&kind=old.broken", set(), {"old.broken", "fresh.today"}),
    ],
)
def test_only_the_time_queue_and_kind_that_were_chosen_are_shown(
    client: httpx.Client, query: str, shown: set[str], hidden: set[str]
) -> None:
    rows = rows_in(client.get(f"/ui{query}{'&' if query else '?'}kinds=all").text)

    assert shown <= rows.keys()
    assert not hidden & rows.keys()


def test_any_time_that_is_kept_can_be_looked_at(client: httpx.Client) -> None:
    until = (CLOCK.now() - 19 * DAY).strftime("%Y-%m-%dT%H:%MZ")

    rows = rows_in(client.get(f"/ui?range=7d&to={until}").text)

    assert {kind: row[0] for kind, row in rows.items()} == {"old.broken": "5", "old.steady": "3"}


def test_a_kind_leads_to_its_jobs_its_failures_and_its_charts(client: httpx.Client) -> None:
    page = client.get("/ui?range=24h&queue=today").text

    links = [html.unescape(link) for link in re.findall(r'href="([^"]*fresh\.today[^"]*)"', page)]
    assert links == [
        "/ui/jobs?kind=fresh.today&queue=today",
        "/ui?range=24h&queue=today&kind=fresh.today",
        "/ui/jobs?kind=fresh.today&queue=today&state=dead%2Cexpired",
    ]
    for link in links:
        assert "fresh.today" in client.get(link).text


@pytest.mark.parametrize("path", ["/ui/queues", "/ui/jobs?kind=fresh.today&queue=today"])
def test_a_kind_of_a_queue_leads_to_its_charts_from_elsewhere(client: httpx.Client, path: str) -> None:
    links = {html.unescape(link) for link in re.findall(r'href="(/ui\?[^"]*)"', client.get(path).text)}

    assert links & {"/ui?queue=today&kind=fresh.today", "/ui?kind=fresh.today&queue=today"}


def test_a_job_and_a_schedule_lead_to_the_charts_of_their_kind(client: httpx.Client, world: World) -> None:
    assert 'href="/ui?kind=report.daily"' in client.get(f"/ui/jobs/{world.done}").text
    schedule = client.get(f"/ui/schedules/{world.schedule}").text
    assert re.search(r'<dt>Kind</dt><dd>[^<]* <a class="label" href="/ui\?kind=', schedule)
    assert re.search(r"Began [0-9.]+ m?s late at the median, [0-9.]+ m?s at the worst", schedule)


@pytest.mark.parametrize("path", ["/ui", "/ui/series"])
@pytest.mark.parametrize(
    "query",
    [
        "range=nonsense",
        "range=400d",
        "range=",
        "range=1h&range=30d",
        "to=2999-01-01",
        "to=0001-01-01T00:00:00%2B23:59",
        "to=9999-12-31T23:59:59-23:59",
        "to=%00",
        "queue=%00",
        "kind=" + "x" * 5000,
        "kind=%ff",
        "sort=nonsense&kinds=nonsense",
        "nonsense=1",
    ],
)
def test_nonsense_is_answered_with_a_page_that_makes_sense(client: httpx.Client, path: str, query: str) -> None:
    answer = client.get(f"{path}?{query}")

    assert answer.status_code == 200
    assert "Traceback" not in answer.text


def test_a_step_in_which_nothing_ended_is_a_gap(client: httpx.Client) -> None:
    told = series(client, "?range=6h&kind=fresh.today")

    assert len(told["at"]) in (72, 73)
    assert [value for value in told["succeeded"] if value is not None] == [5]
    assert [value for value in told["failure_rate"] if value is not None] == [1 / 6]
    assert [value for value in told["delay95"] if value is not None] == pytest.approx([23.170], abs=0.001)


def test_the_charts_of_thirty_days_come_from_rows_of_hours_alone(client: httpx.Client, site: Site) -> None:
    """What is known by the minute is taken away, and the charts of long times stay what they were."""
    site.run(site.store.fold_statistics(limit=100_000))
    _run(site, "DELETE FROM statistic WHERE hour = 0 AND lane IN (SELECT id FROM lane WHERE kind = 'minutes.gone')")

    told = {name: series(client, f"?range={name}&kind=minutes.gone")["succeeded"] for name in ("6h", "7d", "30d")}

    assert {name: sum(filter(None, values)) for name, values in told.items()} == {"6h": 0, "7d": 5, "30d": 5}
    assert sum(filter(None, series(client, "?range=30d&kind=old.steady")["succeeded"])) == 15


def _run(site: Site, statement: str) -> None:
    connection = apsw.Connection(str(site.file))
    connection.set_busy_timeout(10_000)
    connection.execute(statement)
    connection.close()


def test_more_than_can_be_added_up_is_told_in_a_sentence_on_a_page_that_goes_on(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rules, "MOST_ROWS", 4)
    until = f"&to={(CLOCK.now() - 3 * MINUTE).strftime('%Y-%m-%dT%H:%MZ')}"
    coarse = series(client, f"?range=30d&kind=old.often{until}")
    assert (coarse["step"], list(filter(None, coarse["succeeded"]))) == (12 * 3600, [4, 2])

    page = client.get(f"/ui?range=30d{until}")

    assert page.status_code == 200
    alert = page.text.partition('role="alert">')[2].partition("</p>")[0]
    assert "There is too much to add up for the 30 days until" in alert
    assert "choose less time, a queue or a kind" in alert
    assert "Running now" in page.text


def test_a_tenant_is_told_of_its_own_jobs_alone(locked: Site) -> None:
    told = {}
    for tenant in ("default", OTHERS):
        key, _ = locked.key(Role.VIEWER, tenant)
        with httpx.Client(base_url=locked.url, timeout=60, headers={"origin": locked.url}) as client:
            token = re.findall(r'name="form_token" value="(\w+)"', client.get("/ui/login").text)[0]
            client.post("/ui/login", data={"form_token": token, "key": key})
            page = client.get("/ui?range=30d&kinds=all").text
            told[tenant] = (set(rows_in(page)), "of.others" in page, "old.steady" in page)
            assert sum(filter(None, series(client, "?range=30d&kind=of.others")["succeeded"])) in (0, 7)
    assert told[OTHERS] == ({"of.others"}, True, False)
    assert told["default"][1:] == (False, True)


def test_who_may_not_look_gets_no_charts(locked: Site) -> None:
    answer = httpx.get(f"{locked.url}/ui/series?range=30d")

    assert answer.status_code == 401
    assert "succeeded" not in answer.text


@pytest.mark.parametrize("address", re.findall(r"^\| `(/ui\?[^`]*)`", GUIDE.read_text(), re.MULTILINE))
def test_an_address_of_the_guide_leads_to_what_it_says(client: httpx.Client, address: str) -> None:
    answer = client.get(address)

    assert answer.status_code == 200
    assert 'role="alert"' not in answer.text
    if chosen := re.search(r"range=(\d+)", address):
        assert re.search(rf'aria-current="true">{chosen[1]} ', answer.text)


# In a browser


def legend(page: Page, number: int) -> dict[str, str]:
    """Return what a chart tells beside its colours."""
    rows = page.locator("#history .u-legend").nth(number).locator("tr")
    found: dict[str, str] = rows.evaluate_all(
        "rows => Object.fromEntries(rows.map((row) => [...row.children].map((cell) => cell.textContent)))"
    )
    return found


def test_the_time_is_switched_by_links_and_stays_chosen_while_the_page_goes_on(page: Page) -> None:
    page.goto("/ui")
    expect(page.locator("#history canvas")).to_have_count(4)
    expect(page.locator("#pulse-light")).to_have_text("live")
    ranges = page.get_by_label("How much time the charts show")
    expect(ranges.locator("[aria-current]")).to_have_text("1 hour")

    ranges.get_by_role("link", name="7 days").click()

    expect(page).to_have_url(re.compile(r"/ui\?range=7d$"))
    expect(ranges.locator("[aria-current]")).to_have_text("7 days")
    expect(page.locator("#kinds")).to_contain_text("old.steady")
    points = page.locator("#charts")
    expect(points).to_have_attribute("data-points", re.compile("[3-9]|[0-9]{2,}"))
    expect(ranges.locator("[aria-current]")).to_have_text("7 days")
    expect(page.locator("#kinds-title")).to_have_text("Kinds in the last 7 days")
    page.get_by_role("link", name="Earlier").click()
    expect(page).to_have_url(re.compile(r"range=7d&to="))
    expect(ranges.locator("[aria-current]")).to_have_text("7 days")
    page.get_by_role("link", name="Until now").click()
    expect(page).to_have_url(re.compile(r"/ui\?range=7d$"))


def test_what_ends_while_charts_are_looked_at_is_drawn(page: Page, site: Site) -> None:
    page.goto("/ui?kind=ends.now")
    expect(page.locator("#pulse-light")).to_have_text("live")
    expect(page.locator("main")).to_contain_text("Nothing ended in the last hour.")
    expect(page.locator("#history")).to_be_hidden()

    for number in range(2):
        site.run(_end_one(site, "ends.now"))
        expect(page.locator("#kinds tbody td").nth(1)).to_have_text(str(number + 1))
        expect(page.locator("#history canvas")).to_have_count(4)
        page.wait_for_function(
            "document.getElementById('history').dataset.asOf"
            " === document.getElementById('series-as-of').getAttribute('value')"
        )
    expect(page).to_have_url(re.compile("kind=ends.now"))
    assert legend(page, 0)["Succeeded"] in ("1", "2"), "or they ended in different minutes"


async def _end_one(site: Site, kind: str) -> None:
    worker = await site.store.register(a_worker(f"{kind}/runner-0", queues=(kind,)))
    await site.store.submit([a_job(kind, queue=kind)])
    [run] = (await site.store.claim(a_claim(worker.id, 1, queues=(kind,)))).runs
    await site.store.settle(worker.id, [outcome_of(run)])


def test_pointing_at_a_chart_or_arrow_keys_tell_its_values(page: Page) -> None:
    page.goto("/ui?range=6h&kind=fresh.today")
    expect(page.locator("#history canvas")).to_have_count(4)
    last = legend(page, 0)
    assert (last["Failed"], last["Succeeded"], last["Otherwise"]) == ("1", "5", "0")
    chart = page.locator("#history .chart").first

    chart.locator(".u-over").hover(position={"x": 3, "y": 20})
    assert legend(page, 0)["Succeeded"] == NOTHING, "nothing ended then"
    assert legend(page, 2)["p99"] == NOTHING, "the others follow"
    page.mouse.move(0, 0)
    assert legend(page, 0) == last
    chart.focus()
    page.keyboard.press("End")
    assert legend(page, 0)["Succeeded"] == NOTHING
    for _ in range(50):
        page.keyboard.press("ArrowLeft")
        if legend(page, 0)["Succeeded"] != NOTHING:
            break
    assert legend(page, 0) == last
    assert legend(page, 1)["Failed"] == "16.7 %"
    assert legend(page, 2)["p50"] == "23.2 s"
    assert legend(page, 3)["p95"] == "4.1 s"


def test_a_queue_and_a_kind_are_chosen_by_the_form(page: Page) -> None:
    page.goto("/ui?range=30d")

    page.get_by_label("Queue").select_option("today")
    expect(page).to_have_url(re.compile(r"/ui\?range=30d&queue=today$"))
    expect(page.locator("#kinds tbody tr")).to_have_count(2)
    page.get_by_label("Kind", exact=True).fill("fresh.lately")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/ui\?range=30d&queue=today&kind=fresh.lately$"))
    expect(page.locator("#kinds tbody tr")).to_have_count(1)
    assert "fresh.today" in page.locator("#kinds-known option").evaluate_all("all => all.map((one) => one.value)")
    page.get_by_role("link", name="Without kind fresh.lately").click()
    expect(page.locator("#kinds tbody tr")).to_have_count(2)


@pytest.mark.parametrize(
    ("query", "some", "none"), [("range=6h", TIME, "^$"), ("range=24h", TIME, "^$"), ("range=30d", A_DAY, TIME)]
)
def test_the_axis_tells_times_of_a_day_and_days_of_a_month(
    browser: Browser, site: Site, query: str, some: str, none: str
) -> None:
    context = browser.new_context(base_url=site.url)
    page = context.new_page()
    page.add_init_script(
        "window.written = []; const fill = CanvasRenderingContext2D.prototype.fillText;"
        "CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {"
        " window.written.push(text); return fill.call(this, text, ...rest); }"
    )
    page.goto(f"/ui?{query}")
    expect(page.locator("#history canvas")).to_have_count(4)

    page.wait_for_function("window.written.length > 10")
    written = page.evaluate("window.written")
    assert any(re.search(some, text) for text in written)
    assert not any(re.search(none, text) for text in written)
    context.close()


def test_the_time_can_be_chosen_without_javascript(browser: Browser, site: Site) -> None:
    context = browser.new_context(base_url=site.url, java_script_enabled=False)
    page = context.new_page()

    page.goto("/ui")
    page.get_by_role("link", name="30 days").click()
    expect(page.locator("#kinds tbody tr").first).to_contain_text("old.broken")
    expect(page.locator("#history")).to_be_hidden()
    page.get_by_label("Kind", exact=True).fill("old.steady")
    page.get_by_role("button", name="Apply").click()
    expect(page.locator("#kinds tbody tr")).to_have_count(1)
    expect(page.get_by_label("How much time the charts show").locator("[aria-current]")).to_have_text("30 days")
    page.locator("#kinds").get_by_role("link", name="old.steady").click()
    expect(page).to_have_url(re.compile(r"/ui/jobs\?kind=old.steady"))
    context.close()


def test_the_series_of_a_page_are_no_larger_than_a_page_may_be(client: httpx.Client) -> None:
    answer = client.get("/ui/series?range=30d")

    assert len(answer.content) < 60_000
    assert answer.headers["cache-control"] == "no-store"
    assert len(msgspec.json.decode(answer.content)["at"]) in (240, 241)
