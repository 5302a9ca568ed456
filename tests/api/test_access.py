"""Keys, tenants, the audit log and erasure over HTTP, on both stores."""

import asyncio
from typing import Any
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import CLOCK, Api, problem
from tests.api.samples import Grounds, mark_of
from tidewheel.errors import Unavailable
from tidewheel.model.access import Role
from tidewheel.model.tenant import Tenant


async def bearer(api: Api, role: Role = Role.ADMIN, tenant: str | None = None, **fields: Any) -> dict[str, str]:
    return {"authorization": f"Bearer {(await Grounds(api).key_of(role, tenant, **fields))[0]}"}


async def test_a_key_is_shown_once_opens_what_it_should_and_is_felt_to_be_revoked_within_a_second(api: Api) -> None:
    root = await bearer(api)
    asked = {"name": "grafana", "role": "viewer", "expires_in": "90d", "rate": 50, "burst": 100}
    made = await api.client.post("/v1/keys", json=asked, headers=root | {"Tide-Tenant": "shop"})
    document, key = made.json(), {"authorization": f"Bearer {made.json()['key']}"}
    assert (made.status_code, document["tenant"], document["role"], document["rate"]) == (201, "shop", "viewer", 50.0)
    assert (made.headers["cache-control"], made.headers["location"]) == ("no-store", f"/v1/keys/{document['id']}")
    assert document["expires_at"] is not None

    assert (await api.client.get("/v1/jobs", headers=key)).status_code == 200
    listed = await api.client.get("/v1/keys", headers=root | {"Tide-Tenant": "shop"})
    assert [one["id"] for one in listed.json()["keys"]] == [document["id"]]
    assert document["key"] not in listed.text
    revoked = await api.client.delete(f"/v1/keys/{document['id']}", headers=root)
    assert (revoked.status_code, revoked.json()["revoked_at"] is not None) == (200, True)
    began = CLOCK.monotonic()
    while (await api.client.get("/v1/jobs", headers=key)).status_code != 401:
        assert CLOCK.monotonic() - began < 1.5
    entries = (await api.client.get("/v1/audit?action=keys.write", headers=root | {"Tide-Tenant": "shop"})).json()
    assert [entry["detail"]["did"] for entry in entries["entries"]] == ["revoke", "create"]
    assert document["key"] not in str(entries)


async def test_an_admin_of_one_tenant_makes_keys_of_that_tenant_alone(api: Api) -> None:
    ada, root = await bearer(api, tenant="ada"), await bearer(api)
    mine = await api.client.post("/v1/keys", json={"name": "a", "role": "admin"}, headers=ada)
    assert (mine.status_code, mine.json()["tenant"]) == (201, "ada")
    all_of_them = {"name": "a", "role": "viewer", "all_tenants": True}
    problem(await api.client.post("/v1/keys", json=all_of_them, headers=ada), 403, "forbidden")
    problem(await api.client.get("/v1/keys?all_tenants=true", headers=ada), 403, "forbidden")
    problem(await api.client.get("/v1/audit?all_tenants=true", headers=ada), 403, "forbidden")
    of_all = await api.client.post("/v1/keys", json=all_of_them, headers=root)
    assert (of_all.status_code, of_all.json()["tenant"]) == (201, None)
    problem(await api.client.delete(f"/v1/keys/{of_all.json()['id']}", headers=ada), 404, "not-found")
    assert len((await api.client.get("/v1/keys?all_tenants=true", headers=root)).json()["keys"]) == 4


async def test_keys_that_cannot_be_are_refused_with_the_field(api: Api) -> None:
    for change, pointer in (
        ({"name": ""}, "/name"),
        ({"name": " x"}, "/name"),
        ({"role": "god"}, "/role"),
        ({"expires_in": "soon"}, "/expires_in"),
        ({"expires_in": 0}, "/expires_in"),
        ({"expires_in": "99999d"}, "/expires_in"),
        ({"rate": 0}, "/rate"),
        ({"burst": 0}, "/burst"),
        ({"tenant": "x"}, "/tenant"),
    ):
        answer = await api.client.post("/v1/keys", json={"name": "a", "role": "viewer"} | change)
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer, change
    assert (await api.client.get("/v1/keys?all_tenants=true")).json()["keys"] == []


async def test_keys_and_the_log_are_listed_page_by_page(api: Api) -> None:
    root = await bearer(api)
    for number in range(5):
        body = {"name": f"k{number}", "role": "viewer"}
        assert (await api.client.post("/v1/keys", json=body, headers=root)).status_code == 201
    for path, name in (("/v1/keys", "keys"), ("/v1/audit", "entries")):
        seen: list[str] = []
        query: dict[str, Any] = {"limit": 2}
        while True:
            page = (await api.client.get(path, params=query, headers=root)).json()
            seen += [one["id"] for one in page[name]]
            if page["next_cursor"] is None:
                break
            query["cursor"] = page["next_cursor"]
        assert len(seen) == len(set(seen)) == 5
        assert seen == sorted(seen, reverse=True)
        strange = await api.client.get(path, params=query | {"all_tenants": True}, headers=root)
        problem(strange, 400, "bad-cursor")


async def test_the_log_is_searched_by_action_subject_key_and_time(api: Api) -> None:
    text, key = await Grounds(api).key_of(Role.ADMIN, None)
    root = {"authorization": f"Bearer {text}"}
    await api.client.put("/v1/limits/smtp", json={"most": 3}, headers=root)
    await api.client.put("/v1/limits/imap", json={"most": 4}, headers=root)
    await api.client.delete("/v1/limits/smtp", headers=root)

    async def found(**where: str) -> list[tuple[str, str]]:
        entries = (await api.client.get("/v1/audit", params=where, headers=root)).json()["entries"]
        return [(entry["subject"], entry["detail"]["did"]) for entry in entries]

    assert await found(action="limits.write") == [("smtp", "remove"), ("imap", "set"), ("smtp", "set")]
    assert await found(subject="smtp") == [("smtp", "remove"), ("smtp", "set")]
    assert await found(subject="imap", key_id=str(key.id)) == [("imap", "set")]
    assert await found(key_id=str(UUID(int=7))) == []
    assert await found(since="2198-01-01T00:00:00Z") == []
    assert len(await found(before="2199-01-01T00:00:00Z")) == 3
    for name, value in (("subject", "a\0b"), ("action", "a b"), ("since", "1980-01-01T00:00:00Z"), ("key_id", "x")):
        bad = await api.client.get("/v1/audit", params={name: value}, headers=root)
        assert problem(bad, 400, "bad-parameter")["errors"][0]["parameter"] == name


async def test_tenants_get_shares_and_bounds_that_count_at_once(api: Api) -> None:
    root, ada = await bearer(api), await bearer(api, Role.OPERATOR, "ada")
    bounds = {"weight": 2.5, "max_queued": 3, "max_payload": 20}
    told = await api.client.put("/v1/tenants/ada", json=bounds, headers=root)
    assert (told.status_code, told.json()) == (200, {"name": "ada", **bounds, "keep_logs": None})
    await api.client.put("/v1/tenants/b/c", json={}, headers=root)
    assert [one["name"] for one in (await api.client.get("/v1/tenants", headers=ada)).json()["tenants"]] == ["ada"]
    every = (await api.client.get("/v1/tenants", headers=root)).json()["tenants"]
    assert [one["name"] for one in every if one["name"] != "default"] == ["ada", "b/c"]
    for change, pointer in (({"weight": 0}, "/weight"), ({"max_queued": -1}, "/max_queued"), ({"x": 1}, "/x")):
        bad = await api.client.put("/v1/tenants/ada", json=change, headers=root)
        assert problem(bad, 422, "invalid")["errors"][0]["pointer"] == pointer
    problem(await api.client.put("/v1/tenants/a%20b", json={}, headers=root), 422, "invalid")


async def test_bounds_of_a_tenant_hold_for_single_jobs_and_batches(api: Api) -> None:
    await api.store.set_tenant(Tenant("ada", 1.0, 3, 20), by=(await Grounds(api).key_of(Role.ADMIN, None))[1].actor)
    ada = await bearer(api, Role.SUBMITTER, "ada")

    async def send(path: str, body: Any, **headers: str) -> httpx.Response:
        return await api.client.post(path, json=body, headers=ada | headers)

    small, large = {"kind": "a"}, {"kind": "a", "args": {"x": "y" * 20}}
    assert problem(await send("/v1/jobs", large), 422, "invalid")["errors"][0]["pointer"] == "/args"
    assert problem(await send("/v1/jobs/batch", [small, large]), 422, "invalid")["errors"][0]["pointer"] == "/1/args"
    full = await send("/v1/jobs/batch", [small] * 4)
    problem(full, 429, "too-many")
    assert full.headers["retry-after"] == "1"
    assert (await send("/v1/jobs/batch", [small] * 2)).status_code == 202
    for _ in range(5):  # what is refused, or was there before, takes no room
        problem(await send("/v1/jobs", {"kind": "a", "delay": "-1s"}), 422, "invalid")
    key = {"idempotency-key": "once"}
    first = await send("/v1/jobs", small, **key)
    assert first.status_code == 202
    for _ in range(3):  # a repeat takes no room, and so gets its answer however full it is
        again = await send("/v1/jobs", small, **key)
        assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
    problem(await send("/v1/jobs", {"kind": "b"}, **key), 422, "key-reused")
    problem(await send("/v1/jobs", small, **{"idempotency-key": "another"}), 429, "too-many")
    problem(await send("/v1/jobs/batch", [small | {"idempotency_key": "once"}, small]), 429, "too-many")
    repeats = await send("/v1/jobs/batch", [small | {"idempotency_key": "once"}])
    assert (repeats.status_code, repeats.json()["jobs"][0]["id"]) == (200, first.json()["id"])


async def test_a_batch_is_one_request_by_the_rate_of_its_key_and_its_jobs_count_by_the_bound_of_the_tenant(
    lone_api: Api,
) -> None:
    root = (await Grounds(lone_api).key_of(Role.ADMIN, None))[1].actor
    await lone_api.store.set_tenant(Tenant("ada", 1.0, 100, None), by=root)
    key = await bearer(lone_api, Role.SUBMITTER, "ada", rate=0.001, burst=3)

    async def send(jobs: int) -> httpx.Response:
        return await lone_api.client.post("/v1/jobs/batch", json=[{"kind": "a"}] * jobs, headers=key)

    first = await send(90)
    assert (first.status_code, first.headers["ratelimit"].split(";")[1]) == (202, "r=2")
    over = await send(11)
    assert "100" in problem(over, 429, "too-many")["detail"]
    assert over.headers["ratelimit"].split(";")[1] == "r=1"
    assert (await send(10)).status_code == 202
    assert "too many requests" in problem(await send(1), 429, "too-many")["detail"]


async def test_a_repeated_submit_takes_no_room(api: Api) -> None:
    await api.store.set_tenant(Tenant("ada", 1.0, 3, None), by=(await Grounds(api).key_of(Role.ADMIN, None))[1].actor)
    key = {"idempotency-key": "once"} | await bearer(api, Role.SUBMITTER, "ada")
    told = [(await api.client.post("/v1/jobs", json={"kind": "a"}, headers=key)).status_code for _ in range(9)]
    assert told == [202] + [200] * 8


async def test_the_bound_of_a_tenant_holds_for_schedules_and_for_what_is_sent_round_again(api: Api) -> None:
    grounds = Grounds(api)
    dead = [await grounds.dead("ada") for _ in range(5)]
    schedule = f"/v1/schedules/{await grounds.schedule('ada')}"
    root = (await grounds.key_of(Role.ADMIN, None))[1].actor
    await api.store.set_tenant(Tenant("ada", 1.0, 2, 50), by=root)
    ada = await bearer(api, Role.ADMIN, "ada")

    async def send(path: str, body: Any = None, **headers: str) -> httpx.Response:
        return await api.client.post(path, json=body, headers=ada | headers)

    key = {"idempotency-key": "once"}
    first = await send(f"{schedule}/trigger", **key)
    assert first.status_code == 202
    bulk = await send("/v1/jobs/retry", {"where": {"state": "dead"}})
    assert (bulk.json()["done"], bulk.json()["more"]) == (1, True), "there was room for one"
    left = [job["id"] for job in (await api.client.get("/v1/dead-letters", headers=ada)).json()["jobs"]]
    assert len(left) == len(dead) - 1
    past = {"since": "2020-01-01T00:00:00Z", "until": "2020-01-01T00:03:00Z"}
    refused = [
        await send(f"{schedule}/trigger"),
        await send(f"{schedule}/backfill", past),
        await send(f"/v1/jobs/{left[0]}/retry"),
        await send("/v1/jobs/retry", {"where": {"state": "dead"}}),
        await send("/v1/dead-letters/redrive", {"where": {}}),
        await send(f"/v1/dead-letters/{left[0]}/retry", {"args": {"to": "ann"}}),
    ]
    for answer in refused:
        problem(answer, 429, "too-many")
    assert (await send(f"{schedule}/backfill", past | {"dry_run": True})).status_code == 200
    repeat = await send(f"{schedule}/trigger", **key)
    assert (repeat.status_code, repeat.json()["job_id"]) == (200, first.json()["job_id"])

    await api.store.cancel(UUID(first.json()["job_id"]))
    api.service.quotas._accounts.clear()
    large = await send(f"/v1/dead-letters/{left[0]}/retry", {"args": {"to": "x" * 60}})
    assert problem(large, 422, "invalid")["errors"][0]["pointer"] == "/args"
    redriven = (await send("/v1/dead-letters/redrive", {"where": {}})).json()
    assert (redriven["done"], redriven["more"]) == (1, True)


async def test_a_finished_job_is_forgotten_and_one_that_runs_is_not(api: Api) -> None:
    grounds, root = Grounds(api), await bearer(api, tenant="ada")
    waiting, dead = await grounds.waiting("ada"), await grounds.dead("ada")
    problem(await api.client.post(f"/v1/jobs/{waiting}/erase", headers=root), 409, "not-finished")
    erased = await api.client.post(f"/v1/jobs/{dead}/erase", headers=root)
    again = await api.client.post(f"/v1/jobs/{dead}/erase", headers=root)
    assert (erased.status_code, again.status_code, erased.json()["args"]) == (200, 200, {})
    assert erased.json()["erased_at"] is not None
    for path in ("", "/attempts", "/logs"):
        left = await api.client.get(f"/v1/jobs/{dead}{path}", headers=root)
        words = {name: value for name, value in left.json().items() if name not in ("kind", "queue")}
        assert (left.status_code, mark_of("ada") in str(words)) == (200, False), left.text


async def test_whoever_follows_a_job_is_cut_off_when_the_key_is_revoked(api: Api) -> None:
    grounds = Grounds(api)
    job_id, (text, key) = await grounds.waiting("ada"), await grounds.key_of(Role.VIEWER, "ada")
    headers = {"authorization": f"Bearer {text}"}
    async with asyncio.timeout(20), api.client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as events:
        lines = events.aiter_lines()
        assert await anext(lines) == ": hello"
        await api.store.revoke_key(key.id, by=key.actor)
        rest = [line async for line in lines]
    assert "event: end" not in rest


@pytest.mark.parametrize("what", ["result", "submit", "claim"])
async def test_whoever_waits_is_answered_when_the_key_is_revoked(api: Api, what: str) -> None:
    grounds = Grounds(api)
    role = Role.WORKER if what == "claim" else Role.SUBMITTER
    text, key = await grounds.key_of(role, "ada")
    headers = {"authorization": f"Bearer {text}", "prefer": "wait=60"}
    thing = await (grounds.worker if what == "claim" else grounds.waiting)("ada")
    method, path, body = {
        "result": ("GET", f"/v1/jobs/{thing}/result", None),
        "submit": ("POST", "/v1/jobs", {"kind": "a"}),
        "claim": ("POST", f"/v1/workers/{thing}/claim", {"limit": 1}),
    }[what]
    waiting = asyncio.ensure_future(api.client.request(method, path, json=body, headers=headers))
    async with asyncio.timeout(20):
        while not api.app._guests._leave:
            await CLOCK.sleep(0.01)
        await api.store.revoke_key(key.id, by=key.actor)
        problem(await waiting, 401, "unauthorized")


async def test_a_wait_that_is_given_up_takes_no_place(lone_api: Api) -> None:
    path = f"/v1/jobs/{await lone_api.submit()}/result"
    request = f"GET {path} HTTP/1.1\r\nhost: localhost\r\nprefer: wait=60\r\n\r\n"
    async with asyncio.timeout(20):
        _, writer = await asyncio.open_connection(*lone_api.address)
        writer.write(request.encode())
        while lone_api.service._waiters != 1:
            await CLOCK.sleep(0.01)
        writer.close()
        while lone_api.service._waiters:
            await CLOCK.sleep(0.01)


async def test_a_change_that_cannot_be_written_down_is_told_to_be_uncertain(lone_api: Api, monkeypatch: Any) -> None:
    async def broken(_: object) -> None:
        raise Unavailable("the disk is away")

    monkeypatch.setattr(lone_api.store, "audit", broken)
    problem(await lone_api.client.put("/v1/limits/smtp", json={"most": 3}), 503, "outcome-unknown")
    assert (await lone_api.client.get("/v1/limits")).json()["limits"][0]["key"] == "smtp"
    monkeypatch.undo()
