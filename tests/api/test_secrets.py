"""Stored secrets over HTTP: what is answered, what is refused, and who gets a text."""

from typing import Any

import pytest

from tests.api.conftest import Api, problem
from tests.api.test_entrance import key_of
from tests.api.test_worker_protocol import a_hand
from tidewheel.model.access import Role
from tidewheel.store.sealing import Keyring

TEXT = "correct horse battery"


async def put(api: Api, name: str = "db", value: Any = TEXT, **more: Any) -> Any:
    return await api.client.put(f"/v1/secrets/{name}", json={"value": value}, **more)


async def test_a_secret_is_set_listed_replaced_and_removed_and_no_answer_has_its_text(api: Api) -> None:
    answers = [await put(api), await put(api), await api.client.get("/v1/secrets")]
    assert [one.status_code for one in answers] == [200, 200, 200]
    [listed] = answers[2].json()["secrets"]
    assert set(listed) == {"name", "tenant", "version", "changed_at", "changed_by", "sealed_by"}
    assert (listed["name"], listed["version"], answers[1].json()) == ("db", 2, listed)
    assert not any(TEXT in one.text for one in answers)
    assert (await api.client.delete("/v1/secrets/db")).status_code == 204
    problem(await api.client.delete("/v1/secrets/db"), 404, "not-found")
    assert (await api.client.get("/v1/secrets/db")).status_code == 405


@pytest.mark.parametrize(
    ("name", "body", "pointer"),
    [
        ("Db", {"value": TEXT}, "/name"),
        ("a.b", {"value": TEXT}, "/name"),
        ("db", {"value": "abc"}, "/value"),
        ("db", {"value": "correct\0horse"}, "/value"),
        ("db", {"value": "ü" * 40_000}, "/value"),
        ("db", {"value": "x" * 70_000}, "/value"),
        ("db", {"value": ["correct horse"]}, "/value"),
        ("db", {"value": None}, "/value"),
        ("db", {}, ""),
        ("db", {"value": TEXT, "more": 1}, ""),
    ],
)
async def test_bad_input_is_named_and_its_text_is_not_shown(api: Api, name: str, body: Any, pointer: str) -> None:
    answer = await api.client.put(f"/v1/secrets/{name}", json=body)
    assert pointer in problem(answer, 422, "invalid")["errors"][0]["pointer"]
    assert "correct" not in answer.text
    assert (await api.client.get("/v1/secrets")).json() == {"secrets": []}


async def test_without_a_key_a_problem_says_what_to_do(api: Api) -> None:
    await put(api)
    vars(api.store)["keyring"] = Keyring()
    told = problem(await put(api, "other"), 409, "secrets-locked")
    assert told["detail"] == "no key is configured for stored secrets: set TIDE_SECRETS_KEY or TIDE_SECRETS_KEY_FILE"
    problem(await api.client.post("/v1/secret-rotations"), 409, "secrets-locked")


async def test_a_worker_fetches_the_secrets_of_its_runs_and_of_no_others(api: Api) -> None:
    await put(api)
    await put(api, "unnamed")
    await api.submit(args={"key": {"$secret": "db"}, "other": {"$secret": "nowhere"}})
    hand, stranger = await a_hand(api), await a_hand(api)
    [run] = await hand.claim()
    asked = {"job_id": run["job_id"], "token": run["token"], "names": ["db", "unnamed", "nowhere", "No name!"]}
    answer = await hand.say("secrets", asked)
    assert (answer.status_code, answer.json()) == (200, {"secrets": {"db": TEXT}})
    assert answer.headers["cache-control"] == "no-store"
    problem(await stranger.say("secrets", asked), 404, "not-found")
    problem(await hand.say("secrets", {**asked, "token": run["token"] + 1}), 404, "not-found")
    vars(api.store)["keyring"] = Keyring([b"2" * 32])
    told = problem(await hand.say("secrets", asked), 409, "secrets-locked")
    assert "the stored secret 'db' cannot be opened: it is encrypted by the key" in told["detail"]
    await hand.settle(run, "gave_up", error={"reason": "fatal", "message": "no key"})
    problem(await hand.say("secrets", asked), 404, "not-found")


async def test_a_worker_of_one_tenant_gets_nothing_of_another(api: Api) -> None:
    keys = {tenant: (await key_of(api, Role.WORKER, tenant))[0] for tenant in ("ada", "bob")}
    admin, _ = await key_of(api, Role.ADMIN, "bob")
    assert (await put(api, headers=admin)).status_code == 200
    job = await api.client.post("/v1/jobs", json={"kind": "mail", "args": {"it": {"$secret": "db"}}}, headers=admin)
    made = {
        tenant: (await api.client.post("/v1/workers", json={"name": tenant}, headers=key)).json()["id"]
        for tenant, key in keys.items()
    }
    await api.client.post(f"/v1/workers/{made['bob']}/claim", json={"limit": 1}, headers=keys["bob"])
    asked = {"job_id": job.json()["id"], "token": 1, "names": ["db"]}
    for worker, key, status in (("bob", "bob", 200), ("ada", "ada", 404), ("bob", "ada", 404)):
        answer = await api.client.post(f"/v1/workers/{made[worker]}/secrets", json=asked, headers=keys[key])
        assert (answer.status_code, TEXT in answer.text) == (status, status == 200)
