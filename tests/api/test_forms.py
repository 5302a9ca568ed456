"""Every form of the dashboard, sent by everyone: each role, nobody, other tenants, and pages that are not ours."""

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import Api
from tests.api.samples import ROOT, Grounds, mark_of
from tidewheel.model.access import MAY, Role
from tidewheel.model.audit import AuditFilter
from tidewheel.model.request_rate import Rate
from tidewheel.server.dashboard import cookies
from tidewheel.server.table import ENDPOINTS

OWN, FOREIGN = "ada", "bob"
LOGIN: Final = "/ui/login"


@dataclass(frozen=True)
class Form:
    """What is sent, and what it asks for."""

    endpoint: str | None
    """Whose rights it needs; None for what everyone may who is signed in."""
    thing: str = ""
    """Which thing it is about: a method of `Grounds`. It stands for {id} in the path, and for {} in fields."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """`#` becomes a number that is new each time."""
    done: int = 303
    foreign: int = 404
    """What is answered if the thing is another tenant's."""


FORMS: Final = {
    "/ui/logout": Form(None),
    "/ui/tenant": Form(None, "tenant", {"tenant": "{}"}, foreign=403),
    "/ui/jobs/bulk": Form("cancel_jobs", fields={"action": "cancel", "kind": "none"}),
    "/ui/jobs/selected": Form("cancel_job", "waiting", {"action": "cancel", "id": "{}", "sure": "yes"}, foreign=303),
    "/ui/jobs/{id}/cancel": Form("cancel_job", "waiting"),
    "/ui/jobs/{id}/retry": Form("retry_job", "dead"),
    "/ui/schedules/{id}/pause": Form("pause_schedule", "schedule"),
    "/ui/schedules/{id}/resume": Form("resume_schedule", "schedule"),
    "/ui/schedules/{id}/trigger": Form("trigger_schedule", "schedule"),
    "/ui/dead-letters/redrive": Form("redrive_dead_letters", fields={"kind": "none"}),
    "/ui/gates": Form("close_gate", fields={"mode": "hold", "kind": "none"}),
    "/ui/gates/{id}/open": Form("open_gate", "gate"),
    "/ui/limits": Form("set_limit", fields={"key": "k", "most": "2"}),
    "/ui/limits/remove": Form("remove_limit", "limit", {"key": "{}"}),
    "/ui/alerts/{id}/acknowledge": Form("acknowledge_alert", "alert"),
    "/ui/maintenance": Form("add_maintenance", fields={"lasts": "1h"}),
    "/ui/maintenance/{id}/remove": Form("remove_maintenance", "window"),
    "/ui/channels": Form("add_channel", fields={"name": "hook-#", "address": "https://example.org"}, done=200),
    "/ui/channels/{id}/remove": Form("remove_channel", "channel"),
    "/ui/channels/{id}/enable": Form("enable_channel", "channel"),
    "/ui/channels/{id}/test": Form("test_channel", "channel"),
    "/ui/subscriptions": Form("subscribe", "channel", {"channel": "{}", "events": "dead"}),
    "/ui/subscriptions/{id}/remove": Form("unsubscribe", "subscription"),
    "/ui/deliveries/{id}/resend": Form("resend_delivery", "delivery"),
    "/ui/keys": Form("create_key", fields={"name": "grafana", "role": "viewer"}, done=200),
    "/ui/keys/{id}/revoke": Form("revoke_key", "key"),
}
_ENDPOINTS: Final = {endpoint.name: endpoint for endpoint in ENDPOINTS}


@dataclass(frozen=True)
class Ready:
    """A form that is filled in."""

    path: str
    fields: Mapping[str, str]
    told: str
    """What whoever sends it says themselves."""


@dataclass
class Hall:
    """A server with the things of two tenants, and browsers that are signed in."""

    api: Api
    grounds: Grounds
    sessions: dict[Role, str]
    """Of one tenant."""
    root: str
    """An admin of all tenants."""
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    async def fill_in(self, path: str, tenant: str) -> Ready:
        """Fill in a form about a thing of a tenant."""
        form = FORMS[path]
        thing = str(await getattr(self.grounds, form.thing)(tenant)) if form.thing else ""
        number = str(next(self._numbers))
        fields = {name: text.replace("{}", thing).replace("#", number) for name, text in form.fields.items()}
        return Ready(path.replace("{id}", thing), fields, thing)

    async def send(self, form: Ready, session: str | None, token: str | None, **headers: str | None) -> httpx.Response:
        """Send a form from a page of ours, unless the headers say otherwise."""
        cookie = f"{cookies.SESSION}={session}" if session is not None else f"{cookies.VISIT}=someone"
        given = {"origin": self.api.address.url, "cookie": cookie, **headers}
        fields = {"sent": "yes", **form.fields, **({} if token is None else {"form_token": token})}
        sent = {name: value for name, value in given.items() if value is not None}
        answer = await self.api.client.post(form.path, data=fields, headers=sent)
        self.api.client.cookies.clear()
        return answer

    async def last_change(self) -> UUID | None:
        """Return the last entry of the audit log."""
        await self.api.service.audit._idle.wait()
        page = await self.api.store.audited(AuditFilter(), limit=1)
        return page.entries[0].id if page.entries else None


@pytest.fixture
async def hall(lone_api: Api) -> Hall:
    lone_api.door._ring._wrong_rate = Rate(1e6, 10**6)
    grounds = Grounds(lone_api)
    sessions = {role: await sign_in(lone_api, (await grounds.key_of(role, OWN))[0]) for role in Role}
    return Hall(lone_api, grounds, sessions, await sign_in(lone_api, (await grounds.key_of(Role.ADMIN, None))[0]))


async def sign_in(api: Api, key: str) -> str:
    """Return the session of whoever has a key."""
    page = await api.client.get(LOGIN)
    found = re.search(r'name="form_token" value="([0-9a-f]{64})"', page.text)
    assert found is not None
    answer = await api.client.post(
        LOGIN, data={"form_token": found[1], "key": key}, headers={"origin": api.address.url}
    )
    session = answer.cookies[cookies.SESSION]
    api.client.cookies.clear()
    return session


def allows(form: Form, role: Role) -> bool:
    """Tell whether a role of one tenant may send a form."""
    if form.endpoint is None:
        return True
    endpoint = _ENDPOINTS[form.endpoint]
    return endpoint.action in MAY[role] and not endpoint.everywhere


async def test_every_form_is_tried_here(lone_api: Api) -> None:
    dashboard = lone_api.app._dashboard
    assert dashboard is not None
    assert sorted(dashboard.forms) == sorted([LOGIN, *FORMS])


async def test_each_role_may_send_what_the_table_of_roles_says(hall: Hall) -> None:
    wrong: list[object] = []
    for path, form in FORMS.items():
        for role, session in hall.sessions.items():
            ready = await hall.fill_in(path, OWN)
            before = await hall.last_change()
            answer = await hall.send(ready, session, cookies.form_token(session))
            expected = form.done if allows(form, role) else 403
            changed = await hall.last_change() != before
            if answer.status_code != expected or changed != (expected != 403 and form.endpoint is not None):
                wrong.append((path, role, answer.status_code, changed, answer.text[-600:]))
        admin = await hall.send(await hall.fill_in(path, OWN), hall.root, cookies.form_token(hall.root))
        if admin.status_code not in (form.done, form.foreign):  # what it looks at is another tenant
            wrong.append((path, "root", admin.status_code, admin.text[-600:]))
    assert wrong == []


async def test_a_foreign_tenants_things_do_not_exist_for_anyone(hall: Hall) -> None:
    wrong: list[object] = []
    for path, form in FORMS.items():
        for role, session in hall.sessions.items() if form.thing else ():
            ready = await hall.fill_in(path, FOREIGN)
            before = await hall.last_change()
            answer = await hall.send(ready, session, cookies.form_token(session))
            leaks = mark_of(FOREIGN) in answer.text.replace(ready.told, "")
            expected = form.foreign if allows(form, role) else 403
            if answer.status_code != expected or leaks or await hall.last_change() != before:
                wrong.append((path, role, answer.status_code, answer.text[-600:]))
    assert wrong == []


async def test_nobody_can_send_a_form_without_a_session_of_a_key_that_opens(hall: Hall) -> None:
    text, key = await hall.grounds.key_of(Role.ADMIN, OWN)
    revoked = await sign_in(hall.api, text)
    await hall.api.store.revoke_key(key.id, by=ROOT)
    good = hall.sessions[Role.ADMIN]
    forged = good[:-1] + ("0" if good[-1] != "0" else "1")
    hall.api.door._ring._kept.clear()
    wrong: list[object] = []
    for path in FORMS:
        ready = await hall.fill_in(path, OWN)
        before = await hall.last_change()
        for session in (None, forged, revoked):
            answer = await hall.send(ready, session, cookies.form_token(session or "someone"))
            if answer.status_code != 401 or "Your key" not in answer.text or await hall.last_change() != before:
                wrong.append((path, session, answer.status_code))
    assert wrong == []


async def test_a_form_of_another_page_or_browser_does_nothing(hall: Hall) -> None:
    session, other = hall.root, hall.sessions[Role.ADMIN]
    good = cookies.form_token(session)
    wrong: list[object] = []
    for path in [LOGIN, *FORMS]:
        key = (await hall.grounds.key_of(Role.ADMIN, OWN))[0]
        ready = Ready(LOGIN, {"key": key}, "") if path == LOGIN else await hall.fill_in(path, "default")
        before = await hall.last_change()
        answers = [
            await hall.send(ready, session, None),
            await hall.send(ready, session, ""),
            await hall.send(ready, session, good[:-1]),
            await hall.send(ready, session, cookies.form_token(other)),
            await hall.send(ready, session, good, origin="https://evil.example"),
            await hall.send(ready, session, good, origin="null"),
            await hall.send(ready, session, good, origin=None),
            await hall.send(ready, session, good, **{"origin": None, "sec-fetch-site": "cross-site"}),
        ]
        statuses = [answer.status_code for answer in answers]
        kept = any(cookies.SESSION in answer.cookies for answer in answers)
        if statuses != [403] * len(answers) or kept or await hall.last_change() != before:
            wrong.append((path, statuses))
        sent = await hall.send(ready, session, good)
        if sent.status_code not in (200, 303):
            wrong.append((path, "with its token", sent.status_code, sent.text[-600:]))
    assert wrong == []
