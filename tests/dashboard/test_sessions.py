"""Who gets in, whose forms are taken, and what each role sees."""

import re
from collections.abc import Iterator
from itertools import islice

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.builders import a_job
from tests.dashboard.site import ROOT, Site
from tidewheel.model.access import Role

MOST_LINES = 100
"""More than a stream sends in the time in which its key is looked at again several times."""
READABLE = [
    "Overview",
    "Jobs",
    "Schedules",
    "Dead letters",
    "Logs",
    "Gates",
    "Limits",
    "Queues",
    "Workers",
    "Artifacts",
    "Alerts",
    "Notifications",
    "Secrets",
]


@pytest.fixture
def client(locked: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=locked.url, headers={"origin": locked.url}, timeout=60) as found:
        yield found


@pytest.fixture
def free(site: Site) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=site.url, headers={"origin": site.url}, timeout=60) as found:
        yield found


def token_in(page: httpx.Response) -> str:
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    return found[1]


def sign_in(client: httpx.Client, key: str, to: str = "/ui") -> httpx.Response:
    fields = {"form_token": token_in(client.get("/ui/login")), "key": key, "next": to}
    return client.post("/ui/login", data=fields)


def test_without_a_key_there_is_a_login_and_nothing_else(client: httpx.Client) -> None:
    answer = client.get("/ui/jobs")

    assert answer.status_code == 401
    assert "Your key" in answer.text
    assert client.get("/ui/jobs", headers={"accept": "text/event-stream"}).status_code == 401


def test_a_browser_signs_in_and_comes_to_where_it_wanted(browser: Browser, locked: Site) -> None:
    text, _ = locked.key(Role.ADMIN, None)
    context = browser.new_context(base_url=locked.url)
    page = context.new_page()
    page.goto("/ui/queues")

    page.get_by_label("Your key").fill("tide_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("opens nothing")
    page.goto("/ui/queues")
    page.get_by_label("Your key").fill(text)
    page.get_by_role("button", name="Sign in").click()
    expect(page.locator("h1")).to_have_text("Queues")
    assert [cookie["httpOnly"] for cookie in context.cookies() if cookie["name"] == "tide_session"] == [True]
    assert [cookie["sameSite"] for cookie in context.cookies() if cookie["name"] == "tide_session"] == ["Strict"]
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_label("Your key")).to_be_visible()
    context.close()


def test_a_session_does_not_tell_the_key(client: httpx.Client, locked: Site) -> None:
    text, _ = locked.key(Role.VIEWER)

    cookie = sign_in(client, text).headers["set-cookie"]

    assert text not in cookie
    assert text.rpartition("_")[2][:20] not in cookie


def test_a_session_ends_with_its_key(client: httpx.Client, locked: Site) -> None:
    text, key = locked.key(Role.VIEWER)
    assert sign_in(client, text).headers["location"] == "/ui"
    assert client.get("/ui").status_code == 200

    locked.run(locked.store.revoke_key(key.id, by=ROOT))

    def refused() -> bool:
        return client.get("/ui").status_code == 401

    assert any(refused() for _ in range(10_000))


def test_a_stream_ends_with_the_key(client: httpx.Client, locked: Site) -> None:
    text, key = locked.key(Role.VIEWER)
    sign_in(client, text)

    with client.stream("GET", "/ui/queues", headers={"accept": "text/event-stream"}) as stream:
        lines = stream.iter_lines()
        assert any(line == "event: page" for line in lines)
        for kind in ("streamed.one", "streamed.two"):  # longer than it takes to look at the key again
            locked.run(locked.store.submit([a_job(kind, queue="nobody")]))
            assert any(kind in line for line in lines)
        locked.run(locked.store.revoke_key(key.id, by=ROOT))
        left = list(islice(lines, MOST_LINES))
    assert len(left) < MOST_LINES, "it went on"
    assert client.get("/ui/queues").status_code == 401


@pytest.mark.parametrize(
    "change", [lambda text: text[:-1] + ("0" if text[-1] != "0" else "1"), lambda text: text + "0"]
)
def test_a_forged_session_opens_nothing(client: httpx.Client, locked: Site, change: object) -> None:
    text, _ = locked.key(Role.ADMIN)
    sign_in(client, text)
    good = client.cookies["tide_session"]
    client.cookies.clear()

    later = re.sub(r"\.([0-9]+)\.", lambda found: f".{int(found[1]) + 9999}.", good)
    for forged in (change(good), later):  # type: ignore[operator]
        assert client.get("/ui", headers={"cookie": f"tide_session={forged}"}).status_code == 401


def test_a_session_is_no_key_of_the_api(client: httpx.Client, locked: Site) -> None:
    text, _ = locked.key(Role.ADMIN)
    sign_in(client, text)
    token = client.cookies["tide_session"]

    assert client.get("/v1/jobs").status_code == 401
    assert client.get("/v1/jobs", headers={"authorization": f"Bearer {token}"}).status_code == 401


@pytest.mark.parametrize(
    "to", ["https://evil.example/", "//evil.example", "/ui/../..//evil", "/v1/jobs", "/uievil", "/ui\r\nx: y"]
)
def test_after_a_login_nobody_is_sent_elsewhere(client: httpx.Client, locked: Site, to: str) -> None:
    text, _ = locked.key(Role.VIEWER)

    assert sign_in(client, text, to).headers["location"] == "/ui"


def test_a_form_needs_its_token_and_its_origin(free: httpx.Client, site: Site) -> None:
    [made] = site.run(site.store.submit([a_job("guarded", queue="nobody")]))
    path = f"/ui/jobs/{made.job_id}/cancel"
    token = token_in(free.get(f"/ui/jobs/{made.job_id}"))

    assert free.post(path, data={"reason": "x"}).status_code == 403
    assert free.post(path, data={"form_token": "0" * 64}).status_code == 403
    assert free.post(path, data={"form_token": token}, headers={"origin": "https://evil.example"}).status_code == 403
    assert free.post(path, data={"form_token": token}, headers={"origin": "null"}).status_code == 403
    other = httpx.Client(base_url=site.url, headers={"origin": site.url}, timeout=60)
    assert other.post(path, data={"form_token": token}).status_code == 403
    other.close()
    assert not site.run(site.store.get(made.job_id)).finished_at
    assert free.post(path, data={"form_token": token}).status_code == 303
    assert site.run(site.store.get(made.job_id)).finished_at


def test_a_page_of_someone_else_cannot_use_that_no_key_is_needed(free: httpx.Client, site: Site) -> None:
    port = site.url.rpartition(":")[2]

    assert free.get("/ui", headers={"host": f"evil.example:{port}"}).status_code == 403
    assert free.get("/ui", headers={"sec-fetch-site": "cross-site"}).status_code == 403
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
    assert free.get("/ui", headers=link).status_code == 200


def menu_of(client: httpx.Client) -> list[str]:
    nav = re.search(r"<nav class=\"menu\".*?</nav>", client.get("/ui").text, re.DOTALL)
    return re.findall(r">([A-Z][\w ]*)</a>", nav[0] if nav else "")


@pytest.mark.parametrize(
    ("role", "menu"),
    [
        (Role.VIEWER, READABLE),
        (Role.SUBMITTER, READABLE),
        (Role.OPERATOR, [*READABLE, "Audit"]),
        (Role.ADMIN, [*READABLE, "Keys", "Audit"]),
        (Role.WORKER, ["Overview", "Jobs", "Dead letters", "Logs", "Queues", "Artifacts"]),
    ],
)
def test_a_role_sees_what_it_may(client: httpx.Client, locked: Site, role: Role, menu: list[str]) -> None:
    text, _ = locked.key(role)
    sign_in(client, text)

    assert menu_of(client) == menu
    for path in ("/ui/keys", "/ui/audit", "/ui/gates", "/ui/schedules"):
        allowed = path.rpartition("/")[2].capitalize() in menu
        assert client.get(path).status_code == (200 if allowed else 403), path


def test_a_viewer_is_offered_no_deed_and_refused_each(client: httpx.Client, locked: Site) -> None:
    [made] = locked.run(locked.store.submit([a_job("looked.at", queue="nobody")]))
    text, _ = locked.key(Role.VIEWER)
    sign_in(client, text)

    page = client.get(f"/ui/jobs/{made.job_id}")
    assert "Cancel" not in page.text
    assert "Close a gate" not in client.get("/ui/gates").text
    fields = {"form_token": token_in(page)}
    assert client.post(f"/ui/jobs/{made.job_id}/cancel", data=fields).status_code == 403
    assert client.post("/ui/gates", data={**fields, "mode": "hold", "kind": "x"}).status_code == 403
    assert client.get("/ui/jobs/bulk?action=cancel&kind=looked.at").status_code == 403


def test_tenants_do_not_see_each_other(client: httpx.Client, locked: Site) -> None:
    [made] = locked.run(locked.store.submit([a_job("secret.kind", tenant="acme", queue="nobody")]))
    text, _ = locked.key(Role.ADMIN, "default")
    sign_in(client, text)
    client.cookies.set("tide_tenant", "acme", path="/ui")

    assert client.get(f"/ui/jobs/{made.job_id}").status_code == 404
    assert "secret.kind" not in client.get("/ui/jobs").text
    token = token_in(client.get("/ui"))
    assert client.post("/ui/tenant", data={"form_token": token, "tenant": "acme"}).status_code == 403


def test_a_key_of_all_tenants_can_look_at_each(client: httpx.Client, locked: Site) -> None:
    locked.run(locked.store.submit([a_job("their.kind", tenant="acme", queue="nobody")]))
    text, _ = locked.key(Role.ADMIN, None)
    sign_in(client, text)
    assert "their.kind" not in client.get("/ui/jobs").text

    token = token_in(client.get("/ui"))
    assert client.post("/ui/tenant", data={"form_token": token, "tenant": "acme"}).status_code == 303

    assert "their.kind" in client.get("/ui/jobs").text


def test_a_key_is_made_shown_once_and_revoked(client: httpx.Client, locked: Site) -> None:
    text, _ = locked.key(Role.ADMIN, None)
    sign_in(client, text)
    token = token_in(client.get("/ui/keys"))

    made = client.post(
        "/ui/keys", data={"form_token": token, "name": "ci-bot", "role": "submitter", "expires_in": "1d"}
    )
    shown = re.search(r"tide_[a-z2-7]{8}_\w+", made.text)
    assert shown is not None
    assert made.headers["cache-control"] == "no-store"
    page = client.get("/ui/keys").text
    assert shown[0] not in page
    assert "ci-bot" in page
    key = next(key for key in locked.run(locked.store.keys()) if key.name == "ci-bot")
    assert client.post(f"/ui/keys/{key.id}/revoke", data={"form_token": token}).status_code == 303
    assert next(key for key in locked.run(locked.store.keys()) if key.name == "ci-bot").revoked_at is not None
