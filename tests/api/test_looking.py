"""Looking at jobs over HTTP, on both stores."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest

from tests.api.conftest import Api, problem
from tests.builders import a_job
from tidewheel.model.outcome import MAX_RESULT_BYTES
from tidewheel.model.states import Cause


async def pages(api: Api, path: str, name: str, **query: Any) -> list[Any]:
    """Return all of a list, page by page."""
    found: list[Any] = []
    while True:
        answer = await api.client.get(path, params=query)
        assert answer.status_code == 200, answer.text
        found += answer.json()[name]
        if (cursor := answer.json()["next_cursor"]) is None:
            return found
        query["cursor"] = cursor


async def test_lists_show_jobs_newest_first_page_by_page_without_what_may_be_large(api: Api) -> None:
    answer = await api.client.post("/v1/jobs/batch", json=[{"kind": f"kind-{n % 3}"} for n in range(23)])
    ids = [job["id"] for job in answer.json()["jobs"]]

    found = await pages(api, "/v1/jobs", "jobs", limit=10)
    of_kind = await pages(api, "/v1/jobs", "jobs", limit=3, kind="kind-1")

    assert [job["id"] for job in found] == sorted(ids, reverse=True)
    assert "args" not in found[0]
    assert "result" not in found[0]
    assert [job["id"] for job in of_kind] == sorted(ids[1::3], reverse=True)


async def test_lists_are_filtered(api: Api) -> None:
    dead = await api.submit(queue="default")
    await api.run(Cause.GAVE_UP)
    labelled = await api.submit(queue="other", labels={"team": "web"})
    created = (await api.get(labelled))["created_at"]

    async def ids(**query: str) -> list[str]:
        return [job["id"] for job in await pages(api, "/v1/jobs", "jobs", **query)]

    assert await ids() == [str(labelled), str(dead)]
    assert await ids(state="dead") == await ids(state="dead,succeeded") == [str(dead)]
    assert await ids(queue="other") == await ids(label="team=web") == [str(labelled)]
    assert await ids(created_after=created) == [str(labelled)]
    assert await ids(created_before=created) == [str(dead)]
    assert await ids(schedule_id=str(uuid4())) == await ids(kind="none") == []


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("limit=0", "limit"),
        ("limit=1000", "limit"),
        ("limit=many", "limit"),
        ("limit=1&limit=2", "limit"),
        ("limit=99999999999999999999999", "limit"),
        ("state=", "state"),
        ("state=asleep", "state"),
        ("state=queued,,dead", "state"),
        ("kind=", "kind"),
        ("kind=no%20spaces", "kind"),
        ("kind=%00", "kind"),
        ("queue=" + "x" * 201, "queue"),
        ("label=team", "label"),
        ("label=%00=x", "label"),
        ("label=a=%00", "label"),
        ("schedule_id=7", "schedule_id"),
        ("schedule_id=null", "schedule_id"),
        ("created_after=yesterday", "created_after"),
        ("created_after=2026-01-01T00:00:00", "created_after"),
        ("created_before=9999-12-31T23:59:59Z", "created_before"),
        ("colour=red", "colour"),
    ],
)
async def test_a_wrong_parameter_is_named(lone_api: Api, query: str, name: str) -> None:
    found = problem(await lone_api.client.get(f"/v1/jobs?{query}"), 400, "bad-parameter")

    assert [flaw["parameter"] for flaw in found["errors"]] == [name]


@pytest.mark.parametrize("query", ["kind=%ff", "x=" + "&x=".join(["1"] * 60)])
async def test_a_query_that_cannot_be_read_is_refused(lone_api: Api, query: str) -> None:
    problem(await lone_api.client.get(f"/v1/jobs?{query}"), 400, "bad-parameter")


async def test_a_cursor_belongs_to_its_list(api: Api) -> None:
    await api.client.post("/v1/jobs/batch", json=[{"kind": "mail"}] * 3)
    cursor = (await api.client.get("/v1/jobs?limit=1&kind=mail")).json()["next_cursor"]
    job_id = (await api.client.get("/v1/jobs?limit=1")).json()["jobs"][0]["id"]

    assert (await api.client.get(f"/v1/jobs?kind=mail&limit=2&cursor={cursor}")).status_code == 200
    for path in (
        f"/v1/jobs?cursor={cursor}",
        f"/v1/jobs?kind=other&cursor={cursor}",
        f"/v1/jobs?kind=mail&cursor={cursor[:-2]}",
        f"/v1/jobs?kind=mail&cursor={cursor[:-3]}AAA",
        "/v1/jobs?cursor=",
        "/v1/jobs?cursor=%C3%A4",
        f"/v1/jobs/{job_id}/logs?cursor={cursor}",
        f"/v1/jobs/{job_id}/children?cursor={cursor}",
    ):
        found = problem(await api.client.get(path), 400, "bad-cursor")
        assert [flaw["parameter"] for flaw in found["errors"]] == ["cursor"]


async def test_attempts_and_lines_of_runs_are_shown(api: Api) -> None:
    job_id = await api.submit(retry={"delay": 0, "cap": 0})
    await api.run(Cause.FAILED, lines=["one", "two"])
    await api.run(lines=["three"])

    attempts = (await api.client.get(f"/v1/jobs/{job_id}/attempts")).json()["attempts"]
    lines = await pages(api, f"/v1/jobs/{job_id}/logs", "lines", limit=2)

    assert [(attempt["token"], attempt["cause"]) for attempt in attempts] == [(1, "failed"), (2, "returned")]
    assert [(line["token"], line["number"], line["text"]) for line in lines] == [
        (1, 0, "one"),
        (1, 1, "two"),
        (2, 0, "three"),
    ]
    assert lines[0]["stream"] == "stdout"


async def test_a_result_is_fetched_wherever_it_is(api: Api) -> None:
    small, large = await api.submit(), await api.submit()
    await api.run(result="[1,2]")
    content = json.dumps({"rows": ["x" * 1000] * 900})
    assert len(content) > MAX_RESULT_BYTES
    location = await api.blobs.store_result(large, 1, content)
    await api.run(result=None, result_location=location)

    assert (await api.client.get(f"/v1/jobs/{small}/result")).json() == [1, 2]
    assert (await api.client.get(f"/v1/jobs/{large}/result")).text == content
    assert (await api.get(large))["result_location"] == location
    await api.blobs.delete(location)
    problem(await api.client.get(f"/v1/jobs/{large}/result"), 410, "gone")


async def test_large_results_are_served_again_and_again(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    location = await lone_api.blobs.store_result(job_id, 1, json.dumps("x" * 1_000_000))
    await lone_api.run(result=None, result_location=location)

    answers = await asyncio.gather(*(lone_api.client.get(f"/v1/jobs/{job_id}/result") for _ in range(8)))

    assert {(answer.status_code, len(answer.content)) for answer in answers} == {(200, 1_000_002)}


async def test_a_result_is_waited_for_and_missed_with_a_reason(api: Api) -> None:
    job_id = await api.submit()

    early = await api.client.get(f"/v1/jobs/{job_id}/result")
    waiting = asyncio.create_task(api.client.get(f"/v1/jobs/{job_id}/result", headers={"prefer": "wait=20"}))
    await api.run(result="7")

    problem(early, 409, "not-finished")
    assert early.headers["retry-after"] == "1"
    assert (await waiting).json() == 7


async def test_ids_that_are_none_or_nobody_s_lead_nowhere(api: Api) -> None:
    for job_id in (uuid4(), "x", "%00", "{}", "0" * 36, f"{{{uuid4()}}}", uuid4().hex, "🦊"):
        for end in ("", "/result", "/attempts", "/logs", "/parents", "/children", "/events"):
            problem(await api.client.get(f"/v1/jobs/{job_id}{end}"), 404, "not-found")
        for end in ("/cancel", "/retry"):
            problem(await api.client.post(f"/v1/jobs/{job_id}{end}"), 404, "not-found")


async def test_jobs_of_another_tenant_do_not_exist(api: Api) -> None:
    [foreign] = await api.store.submit([a_job(tenant="other")])

    problem(await api.client.get(f"/v1/jobs/{foreign.job_id}"), 404, "not-found")
    problem(await api.client.post(f"/v1/jobs/{foreign.job_id}/cancel"), 404, "not-found")
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []


async def test_pages_of_large_lines_are_no_larger_than_others(api: Api) -> None:
    job_id = await api.submit()
    await api.run(lines=[f"{number} {'x' * 16_384}" for number in range(150)])
    path, seen, cursor = f"/v1/jobs/{job_id}/logs", list[int](), None
    while cursor is not None or not seen:
        answer = await api.client.get(path, params={"limit": 1000} | ({"cursor": cursor} if cursor else {}))
        assert len(answer.content) < 1.2 * 2**20
        seen += [line["number"] for line in answer.json()["lines"]]
        cursor = answer.json()["next_cursor"]
    assert seen == list(range(150))
    last = (await api.client.get(path, params={"limit": 1000, "last": "true"})).json()["lines"]
    assert (last[-1]["number"], len(last) < 70) == (149, True)
    found = await api.client.get("/v1/logs", params={"job_id": str(job_id), "limit": 200})
    assert (len(found.content) < 1.2 * 2**20, found.json()["next_cursor"] is None) == (True, False)
