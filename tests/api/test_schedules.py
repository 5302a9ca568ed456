"""Schedules over HTTP: made, looked at, changed by version, steered and removed."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.conftest import CLOCK, Api, problem

NIGHTLY = {"name": "nightly", "kind": "report", "args": {"region": "eu"}, "cron": "0 2 * * *"}
NO_SUCH = "/v1/schedules/019a0000-0000-7000-8000-000000000000"


async def create(api: Api, **fields: Any) -> httpx.Response:
    answer = await api.client.post("/v1/schedules", json=NIGHTLY | fields)
    assert answer.status_code == 201, answer.text
    return answer


async def change(api: Api, made: httpx.Response, *, tag: str | None = None, **fields: Any) -> httpx.Response:
    headers = {"if-match": made.headers["etag"] if tag is None else tag}
    return await api.client.patch(made.headers["location"], json=fields, headers=headers)


async def test_a_schedule_says_all_that_was_asked_for(api: Api) -> None:
    made = await create(
        api,
        description="for the morning",
        queue="slow",
        priority="high",
        labels={"team": "web"},
        retry={"max_attempts": 2, "delay": "5s"},
        timeout="PT10M",
        limit_keys=["db"],
        timezone="Europe/Paris",
        end="2099-01-01T00:00:00Z",
        max_occurrences=1000,
        spread="5m",
        overlap="queue",
        max_concurrency=3,
        misfire={"policy": "all", "most": 7, "grace": "1h"},
    )

    found = (await api.client.get(made.headers["location"])).json()
    assert found == made.json()
    expected = {
        "type": "cron",
        "cron": "0 2 * * *",
        "timezone": "Europe/Paris",
        "every": None,
        "at": None,
        "args": {"region": "eu"},
        "priority": "high",
        "timeout": 600.0,
        "spread": 300.0,
        "overlap": "queue",
        "max_concurrency": 3,
        "misfire": {"policy": "all", "most": 7, "grace": 3600.0},
        "end": "2099-01-01T00:00:00Z",
        "paused": False,
        "version": 1,
        "fired": 0,
    }
    assert {name: found[name] for name in expected} == expected
    assert found["retry"]["max_attempts"] == 2
    assert found["next_fire_at"] is not None
    assert "02:00" in found["recurrence"]
    assert made.headers["etag"] == '"1"'


@pytest.mark.parametrize(
    ("fields", "kind"),
    [({"every": "15m", "cron": None}, "interval"), ({"at": "2099-01-01T00:00:00Z", "cron": None}, "once")],
)
async def test_intervals_and_single_instants_are_schedules_too(
    lone_api: Api, fields: dict[str, Any], kind: str
) -> None:
    assert (await create(lone_api, **fields)).json()["type"] == kind


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"cron": "99 * * * *"}, "/cron"),
        ({"cron": None}, "/cron"),
        ({"every": "5m"}, "/every"),
        ({"cron": None, "every": "1ms"}, "/every"),
        ({"cron": None, "at": "2001-01-01T00:00:00Z"}, "/at"),
        ({"cron": "0 0 30 2 *"}, "/cron"),
        ({"timezone": "Mars/Olympus"}, "/timezone"),
        ({"end": "2001-01-01T00:00:00Z"}, "/cron"),
        ({"name": "no spaces"}, "/name"),
        ({"name": ""}, "/name"),
        ({"overlap": "maybe"}, "/overlap"),
        ({"misfire": {"most": 0}}, "/misfire/most"),
        ({"misfire": {"grace": "soon"}}, "/misfire/grace"),
        ({"retry": {"delay": "soon"}}, "/retry/delay"),
        ({"limit_keys": list("abcdefgh")}, "/limit_keys"),
        ({"run_at": "2099-01-01T00:00:00Z"}, "/run_at"),
        ({"start": "2099-01-01T00:00:00"}, "/start"),
    ],
)
async def test_what_is_wrong_with_a_schedule_is_pointed_to(lone_api: Api, fields: dict[str, Any], pointer: str) -> None:
    answer = await lone_api.client.post("/v1/schedules", json=NIGHTLY | fields)

    assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer
    assert (await lone_api.client.get("/v1/schedules")).json()["schedules"] == []


async def test_a_change_names_the_version_that_it_was_made_from(api: Api) -> None:
    made = await create(api)

    changed = await change(api, made, cron="0 3 * * *", priority="low")
    assert (changed.status_code, changed.headers["etag"]) == (200, '"2"'), changed.text
    assert (changed.json()["cron"], changed.json()["priority"], changed.json()["args"]) == (
        "0 3 * * *",
        "low",
        {"region": "eu"},
    )

    late = await change(api, made, cron="0 4 * * *")
    assert "version 2" in problem(late, 412, "precondition-failed")["detail"]
    assert late.headers["etag"] == '"2"'
    whole = await api.client.put(made.headers["location"], json=NIGHTLY, headers={"if-match": '"1"'})
    problem(whole, 412, "precondition-failed")
    assert (await api.client.get(made.headers["location"])).json()["cron"] == "0 3 * * *"


async def test_of_two_changes_of_one_version_one_wins(api: Api) -> None:
    made = await create(api)

    async def once(hour: int) -> int:
        return (await change(api, made, cron=f"0 {hour} * * *")).status_code

    assert sorted(await asyncio.gather(*(once(hour) for hour in range(4, 12)))) == [200, *[412] * 7]
    assert (await api.client.get(made.headers["location"])).json()["version"] == 2


async def test_a_change_must_say_of_which_version(lone_api: Api) -> None:
    made = await create(lone_api)
    place = made.headers["location"]

    for method, body in (("PUT", NIGHTLY), ("PATCH", {"priority": "low"})):
        answer = await lone_api.client.request(method, place, json=body)
        problem(answer, 428, "precondition-required")
        assert answer.headers["etag"] == '"1"'
    for sent in ("1", '"1', "", '"1" "2"', 'W/"1'):
        bad = await change(lone_api, made, tag=sent, priority="low")
        assert problem(bad, 400, "bad-header")["errors"][0]["header"] == "If-Match"
    problem(await change(lone_api, made, tag='W/"1"', priority="low"), 412, "precondition-failed")
    assert (await change(lone_api, made, tag='"7", "1"', priority="low")).json()["version"] == 2
    assert (await change(lone_api, made, tag="*", priority="high")).json()["version"] == 3


async def test_put_replaces_all_and_patch_only_what_is_given(api: Api) -> None:
    made = await create(api, end="2099-01-01T00:00:00Z", max_concurrency=2, labels={"a": "b"}, misfire={"most": 5})
    place = made.headers["location"]

    patched = (await change(api, made, end=None, max_concurrency=None, description="x", misfire={"grace": 60})).json()
    assert (patched["end"], patched["max_concurrency"], patched["description"]) == (None, None, "x")
    assert (patched["labels"], patched["cron"]) == ({"a": "b"}, "0 2 * * *")

    put = await api.client.put(place, json=NIGHTLY | {"cron": "@daily"}, headers={"if-match": "*"})
    assert (put.json()["labels"], put.json()["description"], put.json()["cron"]) == ({}, "", "0 0 * * *")


async def test_names_are_unique_and_lead_to_their_schedule(api: Api) -> None:
    made = await create(api)
    other = await create(api, name="other")

    problem(await api.client.post("/v1/schedules", json=NIGHTLY), 409, "name-taken")
    problem(await change(api, other, name="nightly"), 409, "name-taken")
    found = (await api.client.get("/v1/schedules", params={"name": "nightly"})).json()
    assert ([one["id"] for one in found["schedules"]], found["next_cursor"]) == ([made.json()["id"]], None)
    assert (await api.client.get("/v1/schedules?name=none")).json()["schedules"] == []


async def test_schedules_are_listed_page_by_page(api: Api) -> None:
    names = [f"s{number}" for number in range(5)]
    for name in names:
        await create(api, name=name)

    seen: list[str] = []
    query: dict[str, Any] = {"limit": 2}
    for _ in range(4):
        page = (await api.client.get("/v1/schedules", params=query)).json()
        seen += [one["name"] for one in page["schedules"]]
        if page["next_cursor"] is None:
            break
        query["cursor"] = page["next_cursor"]

    assert seen == names
    problem(await api.client.get("/v1/schedules?cursor=AAAA"), 400, "bad-cursor")


async def test_a_trigger_that_is_sent_again_with_its_key_makes_no_second_job(api: Api) -> None:
    place = f"{(await create(api)).headers['location']}/trigger"
    first = await api.client.post(place, headers={"idempotency-key": "monday"})
    again = await api.client.post(place, headers={"idempotency-key": '"monday"'}, json={"idempotency_key": "monday"})

    assert (first.status_code, first.json()["created"]) == (202, True)
    assert (again.status_code, again.json()) == (200, first.json() | {"created": False})
    assert again.headers["location"] == first.headers["location"]
    other = f"{(await create(api, name='other')).headers['location']}/trigger"
    problem(await api.client.post(other, headers={"idempotency-key": "monday"}), 422, "key-reused")
    differs = await api.client.post(place, headers={"idempotency-key": "a"}, json={"idempotency_key": "b"})
    assert problem(differs, 422, "invalid")["errors"][0]["pointer"] == "/idempotency_key"
    problem(await api.client.post(place, headers={"idempotency-key": ""}), 400, "bad-header")
    audit = (await api.client.get("/v1/audit")).json()["entries"]
    assert len([entry for entry in audit if entry["detail"].get("did") == "trigger"]) == 1


async def test_a_schedule_is_paused_resumed_triggered_and_removed(api: Api) -> None:
    made = await create(api)
    place = made.headers["location"]

    paused = await api.client.post(f"{place}/pause")
    assert (paused.json()["paused"], paused.json()["next_fire_at"]) == (True, None)
    fired = await api.client.post(f"{place}/trigger")
    assert (fired.status_code, fired.json()["source"], fired.json()["outcome"]) == (202, "manual", "made")
    job = (await api.client.get(fired.headers["location"])).json()
    assert (job["schedule_id"], job["recurring"], job["args"]) == (made.json()["id"], True, {"region": "eu"})
    resumed = await api.client.post(f"{place}/resume")
    assert (resumed.json()["paused"], resumed.json()["next_fire_at"] is None) == (False, False)
    problem(await api.client.delete(place, headers={"if-match": '"1"'}), 412, "precondition-failed")
    gone = await api.client.delete(place, headers={"if-match": resumed.headers["etag"]})
    assert gone.status_code == 204
    problem(await api.client.get(place), 404, "not-found")
    assert (await api.client.get(fired.headers["location"])).json()["state"] == "cancelled"


async def test_what_is_to_come_is_shown_with_days_on_which_clocks_are_set(lone_api: Api) -> None:
    made = await create(lone_api, cron="30 2 * * *", timezone="Europe/Paris")
    place = made.headers["location"]

    coming = (await lone_api.client.get(f"{place}/preview?count=3")).json()["occurrences"]
    assert coming[0]["fire_at"] == made.json()["next_fire_at"]
    assert len(coming) == 3
    within = {"since": "2025-03-29T00:00:00Z", "until": "2025-03-31T12:00:00Z"}
    days = (await lone_api.client.get(f"{place}/between", params=within)).json()["occurrences"]
    assert [day["change"] for day in days] == [None, "gap", None]
    assert "runs right after it" in days[1]["note"]
    assert days[1]["local"] == "2025-03-30T03:00:00+02:00"
    bad = await lone_api.client.get(f"{place}/between", params=within | {"until": within["since"]})
    assert problem(bad, 400, "bad-parameter")["errors"][0]["parameter"] == "until"


async def test_a_backfill_tells_first_and_then_runs_what_did_not_run(api: Api) -> None:
    place = (await create(api, cron="0 * * * *")).headers["location"]
    now = CLOCK.now()
    wish = {"since": (now - timedelta(hours=5)).isoformat(), "until": now.isoformat(), "every": "1m"}

    told = await api.client.post(f"{place}/backfill", json=wish | {"dry_run": True})
    assert (told.status_code, len(told.json()["occurrences"])) == (200, 5), told.text
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []
    done = await api.client.post(f"{place}/backfill", json=wish | {"priority": "low"})
    assert done.status_code == 202
    times = [one["fire_at"] for one in done.json()["occurrences"]]
    assert times == [one["fire_at"] for one in told.json()["occurrences"]]
    job = await api.get(done.json()["occurrences"][0]["job_id"])
    assert (job["labels"]["fire_at"], job["priority"]) == (times[0].replace("Z", "+00:00"), "low")
    again = await api.client.post(f"{place}/backfill", json=wish)
    assert again.json()["occurrences"] == []
    bad = await api.client.post(f"{place}/backfill", json=wish | {"until": wish["since"]})
    assert problem(bad, 422, "invalid")["errors"][0]["pointer"] == "/until"

    first = (await api.client.get(f"{place}/occurrences?limit=3")).json()
    rest = (await api.client.get(f"{place}/occurrences", params={"limit": 3, "cursor": first["next_cursor"]})).json()
    listed = first["occurrences"] + rest["occurrences"]
    assert [one["fire_at"] for one in reversed(listed)] == times
    assert {(one["source"], one["outcome"]) for one in listed} == {("backfill", "made")}
    assert rest["next_cursor"] is None


async def test_there_is_nothing_under_an_id_that_is_unknown(api: Api) -> None:
    for method, path, body in (
        ("GET", "", None),
        ("PUT", "", NIGHTLY),
        ("PATCH", "", {}),
        ("DELETE", "", None),
        ("POST", "/pause", None),
        ("POST", "/resume", None),
        ("POST", "/trigger", None),
        ("GET", "/preview", None),
        ("GET", "/between?since=2025-03-29T00:00:00Z&until=2025-03-31T12:00:00Z", None),
        ("POST", "/backfill", {"since": "2025-03-29T00:00:00Z", "until": "2025-03-31T12:00:00Z"}),
        ("GET", "/occurrences", None),
    ):
        for place in (NO_SUCH, f"/v1/schedules/{uuid4()}", "/v1/schedules/nightly"):
            answer = await api.client.request(method, place + path, json=body, headers={"if-match": "*"})
            problem(answer, 404, "not-found")
