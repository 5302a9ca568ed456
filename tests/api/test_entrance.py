"""Who comes in by HTTP, in which tenant they work, and how often they may come."""

import secrets
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import Api, problem
from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ENTROPY, ApiKey, KeySpec, make_key
from tidewheel.model.tenant import Tenant
from tidewheel.server import build_app

ROOT = Actor(role=Role.ADMIN, name="root")


async def key_of(api: Api, role: Role, tenant: str | None = None, **fields: Any) -> tuple[dict[str, str], ApiKey]:
    """Make a key; return the header that brings it, and what everyone may see of it."""
    made = make_key(secrets.token_bytes(ENTROPY))
    key = await api.store.create_key(KeySpec(name="k", role=role, tenant=tenant, **fields), made.proof, by=ROOT)
    return {"authorization": f"Bearer {made.text}"}, key


async def test_without_a_good_key_nobody_comes_in_and_is_told_how(lone_api: Api) -> None:
    good, _ = await key_of(lone_api, Role.ADMIN)
    for sent in ({}, {"authorization": "Bearer x"}, {"authorization": "Basic eDp5"}, {"authorization": ""}):
        refused = await lone_api.client.get("/v1/jobs", headers=sent)
        assert problem(refused, 401, "unauthorized")["detail"] == "a valid key is needed"
        assert refused.headers["www-authenticate"] == 'Bearer realm="tidewheel"'
    assert (await lone_api.client.get("/v1/jobs", headers=good)).status_code == 200
    assert (await lone_api.client.get("/livez")).status_code == 200


async def test_a_key_that_came_late_closes_the_door_for_those_without(lone_api: Api) -> None:
    assert (await lone_api.client.get("/v1/jobs")).status_code == 200
    await key_of(lone_api, Role.VIEWER)
    lone_api.door._looked_at = float("-inf")
    problem(await lone_api.client.get("/v1/jobs"), 401, "unauthorized")


async def test_a_key_of_one_tenant_works_in_its_own_and_in_no_other(lone_api: Api) -> None:
    ada, _ = await key_of(lone_api, Role.SUBMITTER, "ada")
    body = {"kind": "mail"}
    made = await lone_api.client.post("/v1/jobs", json=body, headers=ada | {"Tide-Tenant": "ada"})
    assert (await lone_api.client.get(made.headers["location"], headers=ada)).json()["tenant"] == "ada"
    for other in ("bob", "default", "never-seen"):
        told = problem(await lone_api.client.get("/v1/jobs", headers=ada | {"Tide-Tenant": other}), 403, "forbidden")
        assert told["detail"] == "the role submitter of this key does not allow other tenants"


async def test_a_key_of_all_tenants_works_in_the_one_it_names(lone_api: Api) -> None:
    root, _ = await key_of(lone_api, Role.ADMIN)
    for named, tenant in (({}, "default"), ({"tide-tenant": "ada"}, "ada")):
        made = await lone_api.client.post("/v1/jobs", json={"kind": "mail"}, headers=root | named)
        found = (await lone_api.client.get("/v1/jobs", headers=root | named)).json()["jobs"]
        assert [(job["id"], job["tenant"]) for job in found] == [(made.json()["id"], tenant)]


async def test_a_job_of_a_batch_may_name_its_tenant_if_the_key_is_of_all(lone_api: Api) -> None:
    root, _ = await key_of(lone_api, Role.ADMIN)
    ada, _ = await key_of(lone_api, Role.SUBMITTER, "ada")
    batch = [{"kind": "mail", "tenant": tenant} for tenant in ("ada", "bob", "ada")]
    made = await lone_api.client.post("/v1/jobs/batch", json=batch, headers=root)
    owners = [(await lone_api.store.get(UUID(job["id"]))).tenant for job in made.json()["jobs"]]
    assert owners == ["ada", "bob", "ada"]
    for path, body in (("/v1/jobs", batch[1]), ("/v1/jobs/batch", batch)):
        problem(await lone_api.client.post(path, json=body, headers=ada), 403, "forbidden")
    own = await lone_api.client.post("/v1/jobs", json=batch[0], headers=ada)
    assert own.status_code == 202
    await lone_api.store.set_tenant(Tenant(name="bob", max_payload=20), by=ROOT)
    lone_api.service.quotas._accounts.clear()
    large = [batch[0], batch[0] | {"args": {"x": "y" * 100}}, batch[1] | {"args": {"x": "y" * 100}}]
    refused = await lone_api.client.post("/v1/jobs/batch", json=large, headers=root)
    assert problem(refused, 422, "invalid")["errors"][0]["pointer"] == "/2/args"


async def test_a_key_of_all_tenants_may_look_at_the_jobs_of_all_and_no_other_key(lone_api: Api) -> None:
    root, _ = await key_of(lone_api, Role.ADMIN)
    ada, _ = await key_of(lone_api, Role.VIEWER, "ada")
    for tenant in ("ada", "bob"):
        sent = root | {"Tide-Tenant": tenant}
        assert (await lone_api.client.post("/v1/jobs", json={"kind": "mail"}, headers=sent)).status_code == 202

    found = (await lone_api.client.get("/v1/jobs", headers=root | {"Tide-Tenant": "*"})).json()["jobs"]
    assert {job["tenant"] for job in found} == {"ada", "bob"}
    one = await lone_api.client.get(f"/v1/jobs/{found[0]['id']}", headers=root | {"Tide-Tenant": "*"})
    assert one.json()["tenant"] == found[0]["tenant"]
    own = (await lone_api.client.get("/v1/jobs", headers=ada | {"Tide-Tenant": "*"})).json()["jobs"]
    assert [job["tenant"] for job in own] == ["ada"]
    theirs = next(job for job in found if job["tenant"] == "bob")
    problem(await lone_api.client.get(f"/v1/jobs/{theirs['id']}", headers=ada | {"Tide-Tenant": "*"}), 404, "not-found")


@pytest.mark.parametrize("name", ["", "a b", "x" * 201, "%00"])
async def test_a_tenant_that_cannot_be_is_told_by_the_header(lone_api: Api, name: str) -> None:
    refused = await lone_api.client.get("/v1/jobs", headers={"Tide-Tenant": name})
    assert problem(refused, 400, "bad-header")["errors"][0]["header"] == "Tide-Tenant"


async def test_who_asks_too_often_is_told_when_to_come_again(lone_api: Api) -> None:
    slow, _ = await key_of(lone_api, Role.VIEWER, rate=0.001, burst=2)

    async def ask(path: str) -> httpx.Response:
        return await lone_api.client.get(path, headers=slow)

    answers = [await ask("/v1/jobs"), await ask("/v1/jobs/nothing"), await ask("/v1/jobs")]
    assert [answer.status_code for answer in answers] == [200, 404, 429]
    assert [answer.headers["ratelimit"] for answer in answers] == [
        '"key";r=1;t=1000',
        '"key";r=0;t=2000',
        '"key";r=0;t=2000',
    ]
    assert {answer.headers["ratelimit-policy"] for answer in answers} == {'"key";q=2;w=2000'}
    problem(answers[2], 429, "too-many")
    assert [answer.headers.get("retry-after") for answer in answers] == [None, None, "1000"]
    assert (await ask("/livez")).status_code == 200


async def test_who_guesses_keys_is_slowed_down(lone_api: Api) -> None:
    good, _ = await key_of(lone_api, Role.VIEWER)
    assert (await lone_api.client.get("/v1/jobs", headers=good)).status_code == 200
    told = [
        await lone_api.client.get("/v1/jobs", headers={"authorization": f"Bearer tide_{number}"})
        for number in range(40)
    ]
    assert {answer.status_code for answer in told[:30]} == {401}
    problem(told[-1], 429, "too-many")
    assert int(told[-1].headers["retry-after"]) >= 1
    assert (await lone_api.client.get("/v1/jobs", headers=good)).status_code == 200


async def test_behind_a_proxy_with_tls_cookies_are_for_https_alone(lone_api: Api) -> None:
    told = []
    for behind_tls in (False, True):
        app = build_app(lone_api.service, lone_api.door, behind_tls=behind_tls)
        transport = httpx.ASGITransport(app=app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.get("/ui/login", headers={"x-forwarded-proto": "https"})
        told.append([cookie.endswith("; Secure") for cookie in answer.headers.get_list("set-cookie")])
    assert told == [[False], [True]]
