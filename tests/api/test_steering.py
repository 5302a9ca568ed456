"""Cancelling and sending round again over HTTP, on both stores."""

from typing import Any

from tests.api.conftest import Api, problem
from tests.builders import a_claim, a_worker
from tidewheel.model.states import Cause


async def test_a_waiting_job_is_cancelled_and_a_running_one_is_asked_to_stop(api: Api) -> None:
    running = await api.submit()
    worker = await api.store.register(a_worker())
    await api.store.claim(a_claim(worker.id, 1))
    waiting = await api.submit()

    told = await api.client.post(f"/v1/jobs/{waiting}/cancel", json={"reason": "no need"})
    asked = await api.client.post(f"/v1/jobs/{running}/cancel")

    assert (told.status_code, told.json()["state"]) == (200, "cancelled")
    assert told.json()["error"] == {"reason": "cancelled", "message": "no need"}
    assert (asked.status_code, asked.json()["shown"], asked.json()["task_status"]) == (202, "cancelling", "in_progress")
    bad = await api.client.post(f"/v1/jobs/{waiting}/cancel", json={"why": "x"})
    assert problem(bad, 422, "invalid")["errors"][0]["pointer"] == "/why"


async def test_a_dead_job_is_sent_round_again_and_a_live_one_is_not(api: Api) -> None:
    job_id = await api.submit()
    live = await api.client.post(f"/v1/jobs/{job_id}/retry")
    await api.run(Cause.GAVE_UP)

    again = await api.client.post(f"/v1/jobs/{job_id}/retry")

    problem(live, 409, "conflict")
    assert (again.status_code, again.json()["state"]) == (202, "queued")


async def test_bulk_actions_count_first_and_then_act_on_what_meets_the_conditions(api: Api) -> None:
    await api.client.post("/v1/jobs/batch", json=[{"kind": f"kind-{n % 2}"} for n in range(20)])

    async def bulk(action: str, **body: Any) -> dict[str, Any]:
        answer = await api.client.post(f"/v1/jobs/{action}", json=body)
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found

    where = {"kind": "kind-1"}
    assert await bulk("cancel", where=where, dry_run=True) == {"matched": 10, "done": 0, "more": False, "dry_run": True}
    assert await bulk("cancel", where=where, limit=4) == {"matched": 4, "done": 4, "more": True, "dry_run": False}
    assert (await bulk("cancel", where=where))["done"] == 6
    assert (await bulk("cancel", where=where))["matched"] == 0
    assert (await bulk("retry", where={"state": "cancelled"}, dry_run=True))["matched"] == 10
    assert (await bulk("retry", where={"state": "cancelled,dead"}))["done"] == 10
    assert (await bulk("retry", where={"state": "succeeded"}))["matched"] == 0
    queued = (await api.client.get("/v1/jobs?state=queued&limit=200")).json()["jobs"]
    assert len(queued) == 20


async def test_a_bulk_action_without_conditions_is_refused(lone_api: Api) -> None:
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "/where"),
        ({"where": {}}, "/where"),
        ({"where": {"kind": "a b"}}, "/where/kind"),
        ({"where": {"state": "x"}}, "/where/state"),
        ({"where": {"kind": "a", "limit": 1}}, "/where/limit"),
        ({"where": {"kind": "a"}, "limit": 0}, "/limit"),
        ({"where": {"kind": "a"}, "dry_run": "yes"}, "/dry_run"),
    ]
    for body, pointer in bad:
        for action in ("cancel", "retry"):
            answer = await lone_api.client.post(f"/v1/jobs/{action}", json=body)
            assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer
