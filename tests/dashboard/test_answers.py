"""What the server sends: headers, files and pages, seen without a browser."""

import html
import re
from collections.abc import Iterator
from datetime import timedelta
from importlib.resources import files

import httpx
import pytest
from starlette.routing import compile_path

from tests.builders import a_job, a_schedule
from tests.dashboard.places import PAGES
from tests.dashboard.site import Site
from tests.dashboard.world import ARTIFACT, OUTPUT, World
from tidewheel.model.states import State
from tidewheel.server.dashboard.table import PAGES as TABLE
from tidewheel.store.base import JobFilter
from tidewheel.triggers import Interval


@pytest.fixture
def client(site: Site, world: World) -> Iterator[httpx.Client]:
    assert world is not None
    with httpx.Client(base_url=site.url, timeout=60) as found:
        yield found


def test_the_root_leads_to_the_dashboard(client: httpx.Client) -> None:
    answer = client.get("/")

    assert (answer.status_code, answer.headers["location"]) == (303, "/ui")


def test_a_page_allows_no_script_and_no_style_but_its_files(client: httpx.Client, world: World) -> None:
    for path in ("/ui", "/ui/jobs", f"/ui/jobs/{world.evil}", "/ui/none", "/ui/login"):
        answer = client.get(path)
        policy = answer.headers["content-security-policy"]

        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert not re.search(r"<script(?! src=\"/ui/static/)|<style|\sstyle=|\son\w+=\"(?!window)", answer.text)
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"


def test_files_are_named_by_their_content_and_kept_for_ever(client: httpx.Client) -> None:
    urls = set(re.findall(r'"(/ui/static/[^"]+)"', client.get("/ui").text))

    assert len(urls) == 8
    for url in urls:
        answer = client.get(url)
        assert answer.status_code == 200
        assert "immutable" in answer.headers["cache-control"]
        assert answer.headers["content-encoding"] == "gzip"
        plain = client.get(url, headers={"accept-encoding": "identity"})
        assert plain.content == answer.content
    assert client.get("/ui/static/dashboard.0000000000000000.css").status_code == 404
    assert client.get("/ui/static/..%2f..%2f__init__.py").status_code == 404


def test_what_others_wrote_comes_with_its_licence() -> None:
    vendor = files("tidewheel.server.dashboard") / "static" / "vendor"
    names = {entry.name for entry in vendor.iterdir()}

    assert {name.partition(".")[0] for name in names if not name.endswith("LICENSE")} == {
        name.removesuffix(".LICENSE") for name in names if name.endswith("LICENSE")
    }


@pytest.mark.parametrize(
    "path", ["/ui/none", "/ui/jobs/none", "/ui/jobs/00000000-0000-7000-8000-000000000000", "/ui/schedules/x"]
)
def test_what_is_not_there_is_told_in_a_page(client: httpx.Client, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "No such thing" in answer.text


@pytest.mark.parametrize("path", ["/ui/jobs?cursor=nonsense", "/ui/jobs?created_after=yesterday", "/ui/jobs?label=x"])
def test_a_filter_that_makes_no_sense_is_told_on_the_page(client: httpx.Client, path: str) -> None:
    answer = client.get(path)

    assert answer.status_code == 200
    assert 'role="alert"' in answer.text


def shown_in(answer: httpx.Response) -> str:
    """Return what a page says, to whoever has no scripts."""
    body = re.sub(r"<(title|style|script).*?</\1>", "", answer.text, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", body)))


@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_read_without_scripts(client: httpx.Client, world: World, path: str) -> None:
    answer = client.get(path.format(world=world))

    for text in PAGES[path]:
        assert text in shown_in(answer), shown_in(answer)


def test_every_page_is_looked_at() -> None:
    seen = [re.sub(r"\{[^}]*\}", "x", path).partition("?")[0] for path in PAGES]

    assert [page.path for page in TABLE if not any(compile_path(page.path)[0].match(path) for path in seen)] == []


def test_files_can_be_fetched(client: httpx.Client, world: World) -> None:
    page = client.get(f"/ui/jobs/{world.evil_result}").text
    links = [html.unescape(link) for link in re.findall(r'href="([^"]*/outputs/[^"]*)"', page)]
    assert len(links) == 2
    for link in (*links, f"/ui/artifacts/{world.artifact}/content"):
        answer = client.get(link, follow_redirects=True)
        assert answer.content == (ARTIFACT if "artifacts" in link else OUTPUT), link
        assert answer.headers["content-disposition"].startswith("attachment")
        assert "sandbox" in answer.headers["content-security-policy"]


def test_lateness_is_told_also_of_a_job_that_failed_first(client: httpx.Client, world: World) -> None:
    late = r"[0-9.]+ m?s"
    one = client.get(f"/ui/schedules/{world.schedule}").text
    assert re.search(rf'succeeded</span></td><td class="num">.*?</td><td class="num">{late}</td>', one)
    row = client.get("/ui/schedules").text.partition(f"schedule-{world.schedule}")[2].partition("</tr>")[0]
    assert re.search(rf'<td class="num">{late}</td>', row), row


def test_a_limit_is_shown_with_who_holds_it_and_how_many_wait(
    client: httpx.Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    [holder] = site.run(site.store.find(JobFilter(kind="print", states=frozenset({State.RUNNING})))).jobs
    row = client.get("/ui/limits").text.partition(">printer<")[2].partition("</tr>")[0]

    assert f"/ui/jobs/{holder.id}" in row
    assert re.findall(r'<td class="num">(\d+)</td>', row) == ["1", "1", "2"]
    monkeypatch.setattr("tidewheel.server.dashboard.pages.flow.PAGE", 2)
    first = client.get("/ui/limits").text
    assert ">printer<" not in first
    following = re.findall(r'href="(/ui/limits\?cursor=[^"]+)"', first)
    assert ">printer<" in client.get(following[0]).text


def test_a_gate_of_all_tenants_counts_the_jobs_of_all(client: httpx.Client) -> None:
    row = client.get("/ui/gates").text.partition("held.for.all")[2].partition("</tr>")[0]

    assert re.findall(r">(\d+)</a>", row) == ["3"]


def test_workers_with_more_jobs_than_are_looked_at_say_so(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("PAGE", "MOST_RUNNING"):
        monkeypatch.setattr(f"tidewheel.server.dashboard.pages.fleet.{name}", 1)

    assert "1+ running" in client.get("/ui/workers").text


def test_what_comes_up_is_what_comes_next(client: httpx.Client, site: Site) -> None:
    for number in range(10):
        site.run(site.store.create_schedule(a_schedule(f"rare-{number}", Interval(timedelta(days=300)))))
    site.run(site.store.create_schedule(a_schedule("very-next", Interval(timedelta(seconds=20)))))

    page = client.get("/ui").text.partition("Coming up")[2].partition("</section>")[0]

    assert "very-next" in page
    assert "rare-9" not in page


def test_a_graph_that_is_too_large_leads_to_the_rest(
    client: httpx.Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("RELATIVES", "LISTED"):
        monkeypatch.setattr(f"tidewheel.server.dashboard.pages.job.{name}", 2)
    [parent] = site.run(site.store.submit([a_job("hub", queue="nobody")]))
    site.run(site.store.submit([a_job(f"spoke.{number}", after=(parent.job_id,)) for number in range(3)]))
    page = client.get(f"/ui/jobs/{parent.job_id}").text
    assert f"/ui/jobs/{parent.job_id}/related/children" in page
    assert "all before" not in page

    first = client.get(f"/ui/jobs/{parent.job_id}/related/children").text
    cursor = re.findall(r'href="([^"]+cursor=[^"]+)"', first)[0]

    assert len(set(re.findall(r"spoke\.\d+", first + client.get(cursor).text))) == 3
    assert client.get(f"/ui/jobs/{parent.job_id}/related/cousins").status_code == 404


@pytest.mark.parametrize(("mode", "told"), [({"mode": "drop"}, "drop"), ({"mode": "slow", "rate": "3"}, "3/s")])
def test_gates_of_each_mode_are_closed_by_the_form(
    client: httpx.Client, site: Site, mode: dict[str, str], told: str
) -> None:
    token = re.findall(r'name="form_token" value="(\w+)"', client.get("/ui/gates").text)[0]
    form = {"form_token": token, "kind": f"formed.{mode['mode']}", "minutes": "5", **mode}

    page = client.post("/ui/gates", data=form, headers={"origin": site.url}, follow_redirects=True).text

    row = page.partition(f"<b>formed.{mode['mode']}")[0].rpartition("<tr")[2]
    assert told in row
    assert any(gate.kind == form["kind"] and gate.expires_at for gate in site.run(site.store.gates()))


def test_where_there_are_no_keys_it_says_what_that_means(shown: Site) -> None:
    assert "There are no keys" in httpx.get(f"{shown.url}/ui/keys").text


def test_the_number_on_a_button_is_what_it_does(
    client: httpx.Client, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidewheel.server.dashboard.pages.jobs.MOST_AT_ONCE", 2)
    site.run(site.store.submit([a_job("many", queue="nobody") for _ in range(3)]))
    page = client.get("/ui/jobs/bulk?action=cancel&kind=many")

    assert "Cancel the newest 2 jobs" in page.text
    token = re.findall(r'name="form_token" value="(\w+)"', page.text)[0]
    done = client.post(
        "/ui/jobs/bulk",
        data={"form_token": token, "action": "cancel", "kind": "many"},
        headers={"origin": site.url},
        follow_redirects=True,
    )
    assert "2 of 2 jobs. There are more" in done.text


def test_jobs_are_found_by_words_and_it_is_told_how_far_was_looked(
    client: httpx.Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"job-{world.done}" in client.get("/ui/jobs?q=NIGHTLY+team%3Dblu").text
    assert f"job-{world.dead}" in client.get("/ui/jobs", params={"q": '"such file" thumb'}).text
    assert "further back" not in client.get("/ui/jobs?q=nightly").text
    assert 'role="alert"' in client.get("/ui/jobs?q=" + "+".join(map(str, range(30)))).text
    monkeypatch.setattr("tidewheel.store.sqlite.searching.SCAN", 2)

    page = client.get("/ui/jobs?q=nightly").text

    assert "No job meets these conditions among those that were looked at" in page
    assert "Look further back" in page
    assert "Only the newest jobs were looked at, back to those made" in page


def test_odd_requests_are_refused(client: httpx.Client, site: Site) -> None:
    ours = {"origin": site.url}
    assert (
        client.post("/ui/gates", content=b"{}", headers={**ours, "content-type": "application/json"}).status_code == 415
    )
    form = {**ours, "content-type": "application/x-www-form-urlencoded"}
    assert client.post("/ui/gates", content=b"a=%ff", headers=form).status_code == 400
    assert client.post("/ui/gates", content=b"a=" + b"x" * 300_000, headers=form).status_code == 413
    assert client.request("DELETE", "/ui/gates").status_code == 404
    assert client.head("/ui").status_code == 200


@pytest.mark.parametrize("most", ["inf", "nan", "-inf", "1e999", "2.5", "many", "99999999999999999999"])
def test_a_number_that_is_none_is_told_with_its_field(client: httpx.Client, site: Site, most: str) -> None:
    found = re.search(r'name="form_token" value="([^"]+)"', client.get("/ui/limits").text)
    assert found is not None
    form = {"form_token": found[1], "key": "odd", "most": most}
    told = client.post("/ui/limits", data=form, headers={"origin": site.url})
    alert = told.text.partition('role="alert"')[2].partition("</p>")[0]
    assert (told.status_code, "most" in alert) == (422, True), alert


def test_a_result_is_a_file_and_no_page(client: httpx.Client, world: World) -> None:
    answer = client.get(f"/ui/jobs/{world.done}/result")

    assert answer.json() == {"pages": 12}
    assert answer.headers["content-disposition"].startswith("attachment")
