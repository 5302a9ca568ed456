"""Dead letters over HTTP: grouped, listed, counted, sent round at a rate, and mended."""

from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.api.conftest import Api, problem
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause


async def die(api: Api, why: str = "no such host", **fields: Any) -> UUID:
    """Let a job die."""
    await api.submit(**fields)
    return await api.run(Cause.GAVE_UP, error=Failure(reason="error", message=why))


async def test_dead_letters_are_grouped_by_what_they_died_of(api: Api) -> None:
    for number in range(3):
        last = await die(api, f"no such host web{number}")
    await die(api, "disk full", kind="backup")

    groups = (await api.client.get("/v1/dead-letters/groups")).json()["groups"]
    assert [(group["kind"], group["jobs"]) for group in groups] == [("mail", 3), ("backup", 1)]
    assert (groups[0]["sample"], groups[0]["error"]["message"]) == (str(last), "no such host web2")
    only = (await api.client.get("/v1/dead-letters/groups?kind=backup")).json()["groups"]
    assert only == [groups[1]]


async def test_dead_letters_are_listed_page_by_page(api: Api) -> None:
    ids = [str(await die(api)) for _ in range(3)]
    await api.submit(kind="alive")

    first = (await api.client.get("/v1/dead-letters?limit=2")).json()
    query = {"limit": 2, "cursor": first["next_cursor"]}
    rest = (await api.client.get("/v1/dead-letters", params=query)).json()

    assert [job["id"] for job in first["jobs"] + rest["jobs"]] == ids[::-1]
    assert rest["next_cursor"] is None
    assert "args" not in first["jobs"][0]
    problem(await api.client.get("/v1/dead-letters", params=query | {"kind": "mail"}), 400, "bad-cursor")


async def test_a_redrive_counts_first_and_then_sends_round_at_a_rate(api: Api) -> None:
    ids = [await die(api) for _ in range(4)]
    other = await die(api, kind="backup")
    wish: dict[str, Any] = {"where": {"kind": "mail"}, "rate": 0.5, "limit": 3}

    counted = (await api.client.post("/v1/dead-letters/redrive", json=wish | {"dry_run": True})).json()
    nothing = {"next_after": None, "as_of": None, "ids": None}
    assert counted == {"matched": 4, "done": 0, "more": False, "next_start": 0.0, "dry_run": True} | nothing
    assert {(await api.get(job_id))["state"] for job_id in ids} == {"dead"}
    sent = (await api.client.post("/v1/dead-letters/redrive", json=wish)).json()
    assert sent["next_after"] is not None
    assert sent["ids"] is None
    del sent["next_after"], sent["as_of"], sent["ids"]
    assert sent == {"matched": 3, "done": 3, "more": True, "next_start": 6.0, "dry_run": False}
    rest = (await api.client.post("/v1/dead-letters/redrive", json=wish | {"start": sent["next_start"]})).json()
    assert (rest["done"], rest["more"]) == (1, False)
    jobs = [await api.get(job_id) for job_id in ids]
    assert {job["state"] for job in jobs} == {"queued"}
    due = [datetime.fromisoformat(job["run_at"]) for job in jobs]
    assert [(due[1] - due[0]).total_seconds(), (due[2] - due[1]).total_seconds()] == [2.0, 2.0]
    assert (await api.get(other))["state"] == "dead"


async def test_a_dead_letter_goes_round_with_other_arguments(api: Api) -> None:
    job_id = await die(api, args={"to": "nobody"})

    bad = await api.client.post(f"/v1/dead-letters/{job_id}/retry", json={"args": {"to": "\0"}})
    assert problem(bad, 422, "invalid")["errors"][0]["pointer"].startswith("/args")
    mended = await api.client.post(f"/v1/dead-letters/{job_id}/retry", json={"args": {"to": "somebody"}})
    assert (mended.status_code, mended.json()["state"], mended.json()["args"]) == (202, "queued", {"to": "somebody"})
    problem(await api.client.post(f"/v1/dead-letters/{job_id}/retry"), 409, "conflict")
    await api.run(Cause.GAVE_UP, error=Failure(reason="error", message="again"))
    assert (await api.client.post(f"/v1/dead-letters/{job_id}/retry")).json()["args"] == {"to": "somebody"}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"rate": 0}, "/rate"),
        ({"rate": -1}, "/rate"),
        ({"rate": 1e-9}, "/rate"),
        ({"where": {"fingerprint": "x"}}, "/where/fingerprint"),
        ({"where": {"kind": "no spaces"}}, "/where/kind"),
        ({"where": {"state": "dead"}}, "/where/state"),
        ({"limit": 0}, "/limit"),
    ],
)
async def test_a_redrive_that_makes_no_sense_is_refused(lone_api: Api, body: dict[str, Any], pointer: str) -> None:
    answer = await lone_api.client.post("/v1/dead-letters/redrive", json=body)

    assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer


async def test_why_a_job_does_not_run_is_told_for_programs_and_for_people(api: Api) -> None:
    job_id = await api.submit(delay="1h")
    await api.client.post("/v1/gates", json={"mode": "hold", "kind": "mail", "reason": "provider is down"})

    found = (await api.client.get(f"/v1/jobs/{job_id}/why")).json()
    assert [reason["type"] for reason in found["reasons"]] == ["gate", "not_due", "no_worker"]
    assert "provider is down" in found["reasons"][0]["sentence"]
    assert found["state"] == "queued"
    dead = await die(api, kind="backup", queue="default")
    [ended] = (await api.client.get(f"/v1/jobs/{dead}/why")).json()["reasons"]
    assert (ended["type"], ended["state"]) == ("ended", "dead")
    problem(await api.client.get("/v1/jobs/019a0000-0000-7000-8000-000000000000/why"), 404, "not-found")
