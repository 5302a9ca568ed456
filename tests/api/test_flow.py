"""Gates, limits, queues and workers over HTTP, on both stores."""

from uuid import uuid4

from tests.api.conftest import Api, problem
from tests.builders import a_worker
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
