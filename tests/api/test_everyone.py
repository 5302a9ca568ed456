"""Every endpoint of the table, asked by everyone: each role, nobody, keys that open nothing, and other tenants."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import CLOCK, Api, problem
from tests.api.samples import NOT_AUDITED, OF_NOBODY, ROOT, SAMPLES, Grounds, Sample, mark_of
from tests.builders import a_claim, a_worker
from tidewheel.model.access import MAY, Role
from tidewheel.model.api_key import ApiKey
from tidewheel.model.audit import AuditFilter
from tidewheel.model.request_rate import Rate
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.table import ENDPOINTS
from tidewheel.store.base import JobFilter

OWN, FOREIGN = "ada", "bob"
NEVER = "01a1e32c-9236-70a0-8007-cb2475315829"


@dataclass
class Crowd:
    """A server with the things of two tenants, and all who ask it."""

    api: Api
    grounds: Grounds
    own: dict[Role, str]
    """Keys of one tenant."""
    root: tuple[str, ApiKey]
    """An admin of all tenants."""

    async def ask(self, endpoint: Endpoint, path: str, key: str | None, **headers: str) -> httpx.Response:
        """Ask as whoever has a key, with the body of the sample."""
        sample = SAMPLES[endpoint.name]
        content = self.grounds.body_of(sample)
        plain = {} if content is None else {"content-type": "application/json"}
        bearer = {} if key is None else {"authorization": f"Bearer {key}"}
        request = self.api.client.build_request(
            endpoint.method, path, content=content, headers={**plain, **bearer, **sample.headers, **headers}
        )
        if not sample.endless:
            return await self.api.client.send(request)
        answer = await self.api.client.send(request, stream=True)
        first = await anext(answer.aiter_bytes())
        await answer.aclose()
        plain = {name: value for name, value in answer.headers.items() if name == "www-authenticate"}
        return httpx.Response(answer.status_code, headers=plain, content=first, request=request)


@pytest.fixture
async def crowd(api: Api) -> Crowd:
    api.door._ring._wrong_rate = Rate(1e6, 10**6)
    grounds = Grounds(api)
    own = {role: (await grounds.key_of(role, OWN))[0] for role in Role}
    root = await grounds.key_of(Role.ADMIN, None)
    for tenant in (OWN, FOREIGN):
        await grounds.fill(tenant)
    return Crowd(api, grounds, own, root)


def guarded() -> list[tuple[Endpoint, Sample]]:
    return [(endpoint, SAMPLES[endpoint.name]) for endpoint in ENDPOINTS if endpoint.action is not None]


def test_every_endpoint_has_its_sample() -> None:
    assert {endpoint.name for endpoint in ENDPOINTS} == set(SAMPLES)


async def test_each_role_may_do_what_the_table_of_roles_says_and_sees_nothing_of_other_tenants(crowd: Crowd) -> None:
    wrong: list[object] = []
    for endpoint, sample in guarded():
        for role, key in crowd.own.items():
            may = endpoint.action in MAY[role] and not endpoint.everywhere
            answer = await crowd.ask(endpoint, await crowd.grounds.path_of(sample, OWN), key)
            if (answer.status_code in endpoint.answers) != may or (not may and answer.status_code != 403):
                wrong.append((endpoint.name, role, "own", answer.status_code, answer.text))
            if leaks(answer):
                wrong.append((endpoint.name, role, "own", "leaks", answer.text))
    assert wrong == []


async def test_a_foreign_tenants_things_do_not_exist_for_anyone(crowd: Crowd) -> None:
    wrong: list[object] = []
    for endpoint, sample in guarded():
        path = await crowd.grounds.path_of(sample, FOREIGN)
        for role, key in crowd.own.items():
            may = endpoint.action in MAY[role] and not endpoint.everywhere
            other = "never-seen" if role is Role.VIEWER else FOREIGN
            named = await crowd.ask(endpoint, path, key, **{"Tide-Tenant": other})
            if named.status_code != 403 or leaks(named):
                wrong.append((endpoint.name, role, "named", named.status_code, named.text))
            if not sample.thing:
                continue
            answer = await crowd.ask(endpoint, path, key)
            if answer.status_code != (sample.foreign if may else 403) or leaks(answer):
                wrong.append((endpoint.name, role, "foreign", answer.status_code, answer.text))
    assert wrong == []


async def test_nothing_of_another_tenant_changes_whatever_is_asked_about_it(crowd: Crowd) -> None:
    api, store = crowd.api, crowd.api.store
    waiting, dead = await crowd.grounds.waiting(FOREIGN), await crowd.grounds.dead(FOREIGN)
    running = await store.get(await crowd.grounds.waiting(FOREIGN))
    theirs = await store.register(a_worker(queues=(running.queue,), tenant=FOREIGN))
    [run] = (await store.claim(a_claim(theirs.id, 1, queues=(running.queue,)))).runs
    mine = f"/v1/workers/{await crowd.grounds.worker(OWN)}"
    key = {"job_id": str(run.job_id), "token": run.token}
    line = {**key, "number": 7, "text": "not mine"}
    named = [{"kind": running.kind}, {"queue": running.queue}, {"label": f"l={running.kind}"}]
    of_dead = [{}, {"kind": (await store.get(dead)).kind}]
    wide = [{"created_after": "2020-01-01T00:00:00Z"}, *named, {"state": "queued,running,dead"}]
    asked: list[tuple[str, Any]] = [
        *(("/v1/jobs/cancel", {"where": where}) for where in wide),
        *(("/v1/jobs/retry", {"where": where}) for where in wide),
        *(("/v1/dead-letters/redrive", {"where": where}) for where in of_dead),
        (f"{mine}/settle", {"ends": [{**key, "cause": "returned", "result": 1}]}),
        (f"{mine}/settle", {"ends": [{**key, "cause": "released"}]}),
        (f"{mine}/notes", {"notes": [{**key, "progress": 0.9, "checkpoint": {"at": 1}}]}),
        ("/v1/logs", {"lines": [line]}),
        (f"{mine}/claim", {"limit": 100, "queues": [running.queue, (await store.get(waiting)).queue]}),
        ("/v1/jobs/batch", [{"kind": "a", "after": [str(waiting)]}]),
        ("/v1/jobs", {"kind": "a", "unique_key": running.unique_key, "unique": "replace"}),
        ("/v1/jobs", {"kind": "a", "id": str(waiting)}),
    ]
    before = await snapshot(crowd)
    wrong: list[object] = []
    for path, body in asked:
        for role in (Role.ADMIN, Role.WORKER):
            headers = {"authorization": f"Bearer {crowd.own[role]}"}
            answer = await api.client.post(path, json=body, headers=headers)
            theirs_alone = isinstance(body, dict) and body.get("where") in [*named, *of_dead[1:]]
            counted = theirs_alone and answer.json().get("matched", 0)
            if answer.status_code >= 500 or counted or await snapshot(crowd) != before:
                wrong.append((path, body, role, answer.status_code, answer.text))
    assert wrong == []
    assert len(before) >= 4


async def snapshot(crowd: Crowd) -> list[object]:
    """Return all that can be seen of the jobs of the other tenant."""
    jobs = (await crowd.api.store.find(JobFilter(tenant=FOREIGN), limit=1000)).jobs
    lines = [await crowd.api.store.logs(job.id, tenant=FOREIGN, limit=100) for job in jobs]
    notes = [await crowd.api.store.checkpoint_of(job.id) for job in jobs]
    return list(zip(jobs, lines, notes, strict=True))


async def test_what_is_not_there_and_what_is_anothers_are_told_alike(crowd: Crowd) -> None:
    for endpoint, sample in guarded():
        if not sample.thing or endpoint.everywhere or "{id}" not in endpoint.path:
            continue
        anothers = await crowd.grounds.path_of(sample, FOREIGN)
        thing = anothers.removeprefix(sample.path.partition("{}")[0])[:36]
        told = await crowd.ask(endpoint, anothers, crowd.own[Role.ADMIN])
        never = await crowd.ask(endpoint, anothers.replace(thing, NEVER), crowd.own[Role.ADMIN])
        alike = str(never.json()).replace(NEVER, thing).replace(never.headers["x-request-id"], "")
        assert str(told.json()).replace(told.headers["x-request-id"], "") == alike, endpoint.name


async def test_an_admin_of_all_tenants_works_in_the_one_it_names(crowd: Crowd) -> None:
    wrong: list[object] = []
    for endpoint, sample in guarded():
        path = await crowd.grounds.path_of(sample, OWN)
        named = await crowd.ask(endpoint, path, crowd.root[0], **{"Tide-Tenant": OWN})
        if named.status_code not in endpoint.answers:
            wrong.append((endpoint.name, named.status_code, named.text))
    assert wrong == []


async def test_keys_that_open_nothing_open_nothing_and_are_all_answered_alike(crowd: Crowd) -> None:
    expired, _ = await crowd.grounds.key_of(Role.ADMIN, OWN, lifetime=timedelta(seconds=1))
    revoked, key = await crowd.grounds.key_of(Role.ADMIN, OWN)
    await crowd.api.store.revoke_key(key.id, by=ROOT)
    good = crowd.own[Role.ADMIN]
    until = CLOCK.monotonic() + 10
    while (await crowd.ask(ENDPOINTS[2], "/v1/jobs", expired)).status_code != 401:
        assert CLOCK.monotonic() < until
    for strange in ("x", good[:20], good[:-1] + "!", good.upper(), f"{good} {good}"):
        assert (await crowd.ask(ENDPOINTS[2], "/v1/jobs", strange)).status_code == 401
    bad = [None, expired, revoked, good[:-1]]
    wrong: list[object] = []
    for endpoint in ENDPOINTS:
        sample = SAMPLES[endpoint.name]
        path = await crowd.grounds.path_of(sample, OWN)
        for key_text in bad:
            answer = await crowd.ask(endpoint, path, key_text)
            told = (answer.status_code, answer.headers.get("www-authenticate"))
            if endpoint.action is None:
                right = answer.status_code in endpoint.answers or endpoint.name in (
                    "complete_upload",
                    "complete_output",
                )
            else:
                right = told == (401, 'Bearer realm="tidewheel"') and "a valid key is needed" in answer.text
            if not right:
                wrong.append((endpoint.name, key_text, answer.status_code, answer.text))
    assert wrong == []


async def test_every_change_is_written_down_with_who_made_it(crowd: Crowd) -> None:
    admin = await crowd.grounds.key_of(Role.ADMIN, OWN)
    wrong: list[object] = []
    for endpoint, sample in guarded():
        text, key = crowd.root if endpoint.everywhere else admin
        path = await crowd.grounds.path_of(sample, OWN)
        before = await written(crowd, key.id)
        answer = await crowd.ask(endpoint, path, text)
        assert answer.status_code in endpoint.answers, answer.text
        entries = (await written(crowd, key.id))[len(before) :]
        changes = endpoint.method != "GET" and endpoint.name not in NOT_AUDITED
        whose = None if endpoint.name in OF_NOBODY else OWN
        if entries != ([(endpoint.action, whose)] if changes else []):
            wrong.append((endpoint.name, entries))
    assert wrong == []


async def test_jobs_of_others_cannot_be_waited_for_and_their_keys_are_not_in_the_way(crowd: Crowd) -> None:
    foreign = await crowd.grounds.waiting(FOREIGN)
    mine = {"authorization": f"Bearer {crowd.own[Role.SUBMITTER]}"}
    theirs = (await crowd.api.store.get(foreign)).unique_key
    told = []
    for after in (str(foreign), NEVER):
        answer = await crowd.api.client.post("/v1/jobs", json={"kind": "a", "after": [after]}, headers=mine)
        told.append(problem(answer, 422, "invalid"))
    assert told[0]["errors"][0]["pointer"] == told[1]["errors"][0]["pointer"] == "/after"
    same = await crowd.api.client.post("/v1/jobs", json={"kind": "a", "unique_key": theirs}, headers=mine)
    assert (same.status_code, same.json()["created"]) == (202, True)


def leaks(answer: httpx.Response) -> bool:
    """Tell whether an answer says more about the other tenant than whoever asked said themselves."""
    text = answer.text
    for part in answer.request.url.path.split("/"):
        text = text.replace(part, "") if mark_of(FOREIGN) in part else text
    return mark_of(FOREIGN) in text or f'"{FOREIGN}"' in text


async def written(crowd: Crowd, key_id: UUID) -> list[tuple[str, str | None]]:
    """Return what the log says of a key, oldest first."""
    async with asyncio.timeout(10):
        await crowd.api.service.audit._idle.wait()
    page = await crowd.api.store.audited(AuditFilter(key_id=key_id), limit=1000)
    return [(entry.action, entry.tenant) for entry in reversed(page.entries)]
