"""Gates, limits, queues and workers over HTTP, on both stores."""

from uuid import UUID, uuid4

from tests.api.conftest import Api, problem
from tests.builders import a_worker
from tidewheel.model.audit import AuditFilter
from tidewheel.model.gate import GateMode, GateSpec

NO_RATE = {
    "rate": None,
    "burst": None,
    "tokens": None,
    "rule": None,
    "tenant": "default",
    "waiting": None,
    "holders": None,
}


async def test_a_gate_is_closed_shown_and_opened(api: Api) -> None:
    job_id = await api.submit()

    closed = await api.client.post("/v1/gates", json={"mode": "hold", "kind": "mail", "reason": "the relay is down"})

    gate = closed.json()
    assert (closed.status_code, closed.headers["location"]) == (201, f"/v1/gates/{gate['id']}")
    assert (gate["mode"], gate["kind"], gate["tenant"]) == ("hold", "mail", "default")
    assert (await api.get(job_id))["shown"] == "held"
    assert (await api.client.get("/v1/gates")).json() == {"gates": [gate]}
    opened = await api.client.delete(closed.headers["location"])
    assert (opened.status_code, opened.content) == (204, b"")
    problem(await api.client.delete(closed.headers["location"]), 404, "not-found")
    assert (await api.get(job_id))["shown"] == "queued"


async def test_a_gate_of_another_tenant_is_not_there(api: Api) -> None:
    foreign = await api.store.close_gate(GateSpec(mode=GateMode.HOLD, tenant="other"))

    assert (await api.client.get("/v1/gates")).json() == {"gates": []}
    problem(await api.client.delete(f"/v1/gates/{foreign.id}"), 404, "not-found")
    problem(await api.client.delete(f"/v1/gates/{uuid4()}"), 404, "not-found")
    assert [gate.id for gate in await api.store.gates()] == [foreign.id]


async def test_a_limit_is_set_shown_and_removed_also_with_a_key_that_must_be_quoted(api: Api) -> None:
    for key, path in (("smtp", "smtp"), ("a/b c?d", "a%2Fb%20c%3Fd"), ("größe", "gr%C3%B6%C3%9Fe")):
        assert (await api.client.put(f"/v1/limits/{path}", json={"most": 2})).json()["key"] == key
        changed = await api.client.put(f"/v1/limits/{path}", json={"most": 3})
        assert changed.json() == NO_RATE | {"key": key, "most": 3, "running": 0}
        assert (await api.client.get("/v1/limits")).json() == {"limits": [changed.json()], "next_cursor": None}
        assert (await api.client.delete(f"/v1/limits/{path}")).status_code == 204
        problem(await api.client.delete(f"/v1/limits/{path}"), 404, "not-found")


async def test_a_gate_may_slow_and_open_by_itself_and_a_limit_may_have_a_rate(api: Api) -> None:
    gate = await api.client.post("/v1/gates", json={"mode": "slow", "kind": "mail", "rate": 2.5, "lasts": "1h"})
    assert (gate.status_code, gate.json()["rate"], gate.json()["stop_running"]) == (201, 2.5, False)
    assert gate.json()["expires_at"] > gate.json()["created_at"]
    limit = await api.client.put("/v1/limits/smtp", json={"rate": "10/s", "burst": 20})
    assert limit.json() == NO_RATE | {
        "key": "smtp",
        "most": None,
        "running": 0,
        "rate": "10/s",
        "burst": 20,
        "tokens": 20,
    }

    for body, pointer in (
        ({"mode": "slow"}, "/rate"),
        ({"mode": "slow", "rate": -1}, "/rate"),
        ({"mode": "hold", "rate": 1}, "/rate"),
        ({"mode": "hold", "lasts": "never"}, "/lasts"),
        ({"mode": "hold", "expires_at": "2001-01-01T00:00:00Z"}, "/expires_at"),
        ({"mode": "shut"}, "/mode"),
        ({"mode": "hold", "tenant": "other"}, "/tenant"),
    ):
        answer = await api.client.post("/v1/gates", json={"kind": "mail"} | body)
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer


async def test_bad_limits_are_refused(api: Api) -> None:
    for body, pointer in (
        ({"most": 0}, "/most"),
        ({"most": 2**31}, "/most"),
        ({}, "/most"),
        ({"most": 1.5}, "/most"),
        ({"rate": "fast"}, "/rate"),
        ({"most": 1, "burst": 1}, "/burst"),
    ):
        answer = await api.client.put("/v1/limits/smtp", json=body)
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer
    for path in ("%00", "x" * 201, "%20x"):
        answer = await api.client.put(f"/v1/limits/{path}", json={"most": 1})
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == "/key"


async def test_bad_caps_and_rules_are_refused(api: Api) -> None:
    for path, body, pointer in (
        ("caps/mail", {"most": 0}, "/most"),
        ("caps/mail", {}, "/most"),
        ("caps/mail", {"most": 1, "overflow": "spill"}, "/overflow"),
        ("caps/a%20b", {"most": 1}, "/queue"),
        ("rules/a%3Db", {"most": 1}, "/name"),
        ("rules/mail", {}, "/most"),
        ("rules/mail", {"most": 1, "burst": 1}, "/burst"),
        ("rules/mail", {"waiting": 1}, "/name"),
        ("rules/cap:mail", {"most": 1}, "/name"),
        ("rules/cap:mail", {"waiting": 10_000_000}, "/waiting"),
    ):
        answer = await api.client.put(f"/v1/{path}", json=body)
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer, (path, body)
    assert (await api.client.get("/v1/caps")).json() == {"caps": []}
    assert (await api.client.get("/v1/rules")).json() == {"rules": []}


async def test_queues_show_their_numbers_and_workers_themselves(api: Api) -> None:
    await api.client.post("/v1/jobs/batch", json=[{"kind": "mail"}, {"kind": "mail"}, {"kind": "x", "queue": "slow"}])
    assert (await api.client.get("/v1/queues")).json()["as_of"] is None
    await api.store.take_census()
    worker = await api.store.register(a_worker(kinds=("mail",)))

    queues = (await api.client.get("/v1/queues")).json()["queues"]
    workers = (await api.client.get("/v1/workers?alive=true")).json()["workers"]

    assert queues == [
        {"queue": "default", "jobs": {"queued": 2}, "kinds": {"mail": {"queued": 2}}, "waiting": {"medium": 2}},
        {"queue": "slow", "jobs": {"queued": 1}, "kinds": {"x": {"queued": 1}}, "waiting": {"medium": 1}},
    ]
    assert [(one["id"], one["kinds"], one["ttl"]) for one in workers] == [(str(worker.id), ["mail"], 30.0)]
    assert (await api.client.get("/v1/workers?alive=false")).json() == {"workers": []}
    problem(await api.client.get("/v1/workers?alive=perhaps"), 400, "bad-parameter")


async def test_a_gate_is_opened_only_as_it_was_seen(api: Api) -> None:
    """One that is closed again on just the same keeps its id, and becomes another."""
    closed = await api.client.post("/v1/gates", json={"mode": "hold", "kind": "mail"})
    path, seen = closed.headers["location"], closed.headers["etag"]
    looked = await api.client.get(path)
    assert (looked.status_code, looked.json(), looked.headers["etag"]) == (200, closed.json(), seen)

    again = await api.client.post("/v1/gates", json={"mode": "drop", "kind": "mail"})
    assert (again.headers["location"], again.headers["etag"] != seen) == (path, True)

    stale = await api.client.delete(path, headers={"if-match": seen})
    problem(stale, 412, "precondition-failed")
    assert stale.headers["etag"] == again.headers["etag"]
    problem(await api.client.delete(path, headers={"if-match": "?"}), 400, "bad-header")
    assert (await api.client.delete(path, headers={"if-match": again.headers["etag"]})).status_code == 204
    problem(await api.client.get(path), 404, "not-found")


async def test_a_limit_is_changed_only_as_it_was_seen_whatever_runs_under_it(api: Api) -> None:
    path = "/v1/limits/a%2Fb"
    problem(await api.client.get(path), 404, "not-found")
    for method in ("PUT", "DELETE"):
        body = {"most": 1} if method == "PUT" else None
        problem(
            await api.client.request(method, path, json=body, headers={"if-match": "*"}), 412, "precondition-failed"
        )
    made = await api.client.put(path, json={"most": 2})
    looked = await api.client.get(path)
    assert (looked.json(), looked.headers["etag"]) == (made.json(), made.headers["etag"])
    changed = await api.client.put(path, json={"most": 3}, headers={"if-match": made.headers["etag"]})
    assert (changed.status_code, changed.headers["etag"] != made.headers["etag"]) == (200, True)
    for answer in (
        await api.client.put(path, json={"most": 9}, headers={"if-match": made.headers["etag"]}),
        await api.client.delete(path, headers={"if-match": made.headers["etag"]}),
    ):
        problem(answer, 412, "precondition-failed")
        assert answer.headers["etag"] == changed.headers["etag"]
    assert (await api.client.get(path)).json()["most"] == 3
    assert (await api.client.delete(path, headers={"if-match": "*"})).status_code == 204


async def test_a_gate_on_all_tenants_is_written_down_as_one_of_all(api: Api) -> None:
    closed = await api.client.post("/v1/gates", json={"mode": "hold", "kind": "mail"}, headers={"tide-tenant": "*"})
    assert (closed.status_code, closed.json()["tenant"]) == (201, None)

    (entry,) = (await api.store.audited(AuditFilter(subject=closed.json()["id"]))).entries

    assert (entry.action, entry.tenant) == ("gates.write", None)
    assert (await api.client.get(closed.headers["location"])).json() == closed.json(), "each tenant sees it"


async def test_a_new_key_is_found_where_it_was_said_to_be(api: Api) -> None:
    made = await api.client.post("/v1/keys", json={"name": "k", "role": "viewer"})
    found = await api.client.get(made.headers["location"])
    assert (found.status_code, found.json()) == (200, {k: v for k, v in made.json().items() if k != "key"})
    problem(await api.client.get(f"/v1/keys/{uuid4()}"), 404, "not-found")
    problem(await api.client.get(f"/v1/keys/{UUID(int=2**128 - 1)}"), 404, "not-found")


async def test_what_an_app_declares_is_written_down_if_it_changes_something(api: Api) -> None:
    body = {"rules": [{"name": "task:mail", "most": 2}]}
    for _ in range(2):
        assert (await api.client.post("/v1/declarations", json=body)).status_code == 200
    (entry,) = (await api.store.audited(AuditFilter())).entries
    assert (entry.tenant, entry.detail["did"], entry.detail["rules"]) == (None, "declare", 1)
