"""Submitting over HTTP, on both stores."""

import asyncio
import json
import secrets
from datetime import datetime
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import Api, problem
from tidewheel.model.states import Cause, State


async def test_a_job_is_accepted_when_it_is_stored_and_shows_every_field(api: Api) -> None:
    asked = {
        "kind": "mail.send",
        "args": {"to": "ada", "n": [1, 2.5, None, True]},
        "queue": "mails",
        "priority": "high",
        "name": "greeting",
        "description": "says hello",
        "labels": {"team": "web"},
        "needs": {"resources": {"cpu": 500}, "labels": {"zone": "a"}},
        "retry": {"max_attempts": 3, "backoff": "linear", "delay": "10s", "cap": "PT1M", "jitter": "none"},
        "timeout": "1m30s",
        "delay": 3600,
        "start_by": "2199-01-01T00:00:00+01:00",
        "limit_keys": ["smtp"],
        "unique_key": "greet ada",
    }

    answer = await api.client.post("/v1/jobs", json=asked)

    assert answer.status_code == 202
    accepted = answer.json()
    assert answer.headers["location"] == accepted["location"] == f"/v1/jobs/{accepted['id']}"
    assert accepted["created"] is True
    job = (await api.client.get(accepted["location"])).json()
    due = datetime.fromisoformat(job.pop("due_at"))
    assert round((due - datetime.fromisoformat(job["created_at"])).total_seconds()) == 3600
    assert job.pop("created_at") == job.pop("updated_at")
    assert datetime.fromisoformat(job.pop("run_at")) == due
    assert job == {
        "gates": [],
        "erased_at": None,
        "id": accepted["id"],
        "kind": "mail.send",
        "args": {"to": "ada", "n": [1, 2.5, None, True]},
        "queue": "mails",
        "tenant": "default",
        "priority": "high",
        "name": "greeting",
        "description": "says hello",
        "labels": {"team": "web"},
        "needs": {"resources": {"cpu": 500}, "labels": {"zone": "a"}},
        "retry": {"max_attempts": 3, "backoff": "linear", "delay": 10.0, "cap": 60.0, "jitter": "none"},
        "timeout": 90.0,
        "start_by": "2198-12-31T23:00:00Z",
        "limit_keys": ["smtp"],
        "unique_key": "greet ada",
        "idempotency_key": None,
        "schedule_id": None,
        "recurring": False,
        "recurrence": None,
        "traceparent": None,
        "after": [],
        "on_parent_failure": None,
        "state": "queued",
        "shown": "scheduled",
        "task_status": "scheduled",
        "execution_status": "not_started",
        "cancelling": False,
        "paused": False,
        "gate": "open",
        "waits_for": None,
        "waiting_for": 0,
        "token": 0,
        "failures": 0,
        "losses": 0,
        "last_started_at": None,
        "last_ended_at": None,
        "last_worker": None,
        "finished_at": None,
        "result": None,
        "result_location": None,
        "error": None,
        "usage": None,
        "progress": None,
        "progress_message": "",
    }


async def test_a_job_that_ran_says_when_where_and_with_what_result(api: Api) -> None:
    job_id = await api.submit()

    await api.run(result='{"sent":true}')

    job = await api.get(job_id)
    assert (job["state"], job["task_status"], job["execution_status"]) == ("succeeded", "completed", "success")
    assert job["result"] == {"sent": True}
    assert job["last_started_at"] <= job["last_ended_at"] == job["finished_at"]
    assert UUID(job["last_worker"]).version == 7


async def test_the_same_key_with_the_same_body_makes_one_job_and_with_another_is_refused(api: Api) -> None:
    headers = {"Idempotency-Key": '"order 7"'}

    first = await api.client.post("/v1/jobs", json={"kind": "mail"}, headers=headers)
    again = await api.client.post("/v1/jobs", json={"kind": "mail"}, headers={"Idempotency-Key": "order 7"})
    other = await api.client.post("/v1/jobs", json={"kind": "other"}, headers=headers)

    assert (first.status_code, again.status_code) == (202, 200)
    assert again.json() == first.json() | {"created": False}
    assert again.headers["location"] == first.headers["location"]
    problem(other, 422, "key-reused")
    assert (await api.get(first.json()["id"]))["idempotency_key"] == "order 7"
    twice = await api.client.post("/v1/jobs", json={"kind": "mail", "idempotency_key": "x"}, headers=headers)
    assert problem(twice, 422, "invalid")["errors"][0]["pointer"] == "/idempotency_key"


@pytest.mark.parametrize("form", ["json", "ndjson"])
async def test_a_batch_is_stored_whole_in_its_order(api: Api, form: str) -> None:
    jobs = [{"kind": f"kind-{number}", "args": {"n": number}} for number in range(300)]
    content, media = json.dumps(jobs), "application/json"
    if form == "ndjson":
        content, media = "\n".join(map(json.dumps, jobs)) + "\n", "application/x-ndjson"
    headers = {"content-type": media, "idempotency-key": "all of it"}

    answer = await api.client.post("/v1/jobs/batch", content=content, headers=headers)
    again = await api.client.post("/v1/jobs/batch", content=content, headers=headers)

    assert (answer.status_code, answer.json()["created"]) == (202, 300)
    ids = [job["id"] for job in answer.json()["jobs"]]
    assert (await api.get(ids[123]))["args"] == {"n": 123}
    assert (again.status_code, again.json()["created"]) == (200, 0)
    assert [job["id"] for job in again.json()["jobs"]] == ids


async def test_the_key_of_a_batch_is_for_that_batch_and_no_other(api: Api) -> None:
    async def send(kinds: str, key: str) -> httpx.Response:
        jobs = [{"kind": kind, "traceparent": f"00-{secrets.token_hex(16)}-{'b' * 16}-01"} for kind in kinds]
        return await api.client.post("/v1/jobs/batch", json=jobs, headers={"Idempotency-Key": key})

    first = await send("abc", "k" * 195)
    assert (first.status_code, first.json()["created"]) == (202, 3)
    for other in ("abcd", "ab", "acb", "a"):
        problem(await send(other, "k" * 195), 422, "key-reused")
    again = await send("abc", "k" * 195)
    assert (again.status_code, again.json()["created"]) == (200, 0)
    assert len((await api.client.get("/v1/jobs")).json()["jobs"]) == 3
    long = problem(await send("a", "k" * 196), 400, "bad-header")
    assert [flaw["header"] for flaw in long["errors"]] == ["Idempotency-Key"]


@pytest.mark.parametrize(
    ("bad", "pointer"), [({"kind": "no spaces"}, "/2/kind"), ({"kind": 7}, "/2/kind"), ({"kind": "a", "x": 1}, "/2/x")]
)
async def test_one_bad_job_refuses_the_whole_batch_and_is_pointed_to(api: Api, bad: object, pointer: str) -> None:
    jobs = [{"kind": "good"}, {"kind": "good"}, bad, {"kind": "good"}]

    answer = await api.client.post("/v1/jobs/batch", json=jobs)

    assert [flaw["pointer"] for flaw in problem(answer, 422, "invalid")["errors"]] == [pointer]
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []


BAD = {
    "kind": "no spaces",
    "queue": "no spaces",
    "labels": {"no spaces": "x"},
    "timeout": "soon",
    "retry": {"delay": "soon", "cap": "later"},
    "delay": "-1s",
    "start_by": "1990-01-01T00:00:00Z",
    "limit_keys": ["a", "a"],
    "unique_key": " x",
}
BAD_PLACES = ["kind", "queue", "labels", "timeout", "retry/delay", "retry/cap", "delay"]
BAD_PLACES += ["start_by", "limit_keys", "unique_key"]


def pointers(answer: httpx.Response) -> list[str]:
    """Return all places that a problem points to."""
    return sorted(flaw["pointer"] for flaw in problem(answer, 422, "invalid")["errors"])


async def test_all_that_is_wrong_with_a_job_is_told_at_once(lone_api: Api) -> None:
    one = await lone_api.client.post("/v1/jobs", json=BAD)
    assert pointers(one) == sorted(f"/{place}" for place in BAD_PLACES)
    many = await lone_api.client.post("/v1/jobs/batch", json=[{"kind": "a"}, BAD, {"kind": "no spaces"}])
    assert pointers(many) == sorted(["/2/kind", *(f"/1/{place}" for place in BAD_PLACES)])
    types = {"queue": 7, "args": [], "retry": {"max_attempts": 0, "jitter": "x"}, "what": 1, "a/b.c": 2}
    wrong = ["/kind", "/queue", "/args", "/retry/max_attempts", "/retry/jitter", "/what", "/a~1b.c"]
    assert pointers(await lone_api.client.post("/v1/jobs", json=types)) == sorted(wrong)
    both = await lone_api.client.post("/v1/jobs/batch", json=[{"kind": 1}, {"kind": "a"}, types])
    assert pointers(both) == sorted(["/0/kind", *(f"/2{place}" for place in wrong)])
    crowd = await lone_api.client.post("/v1/jobs/batch", json=[{"kind": "no spaces"}] * 100)
    assert len(pointers(crowd)) == 20
    assert (await lone_api.client.get("/v1/jobs")).json()["jobs"] == []


async def test_all_that_is_wrong_with_a_schedule_is_told_at_once(lone_api: Api) -> None:
    body = {"name": "n", "kind": "no spaces", "every": "soon", "jitter": "x", "timeout": "y", "limit_keys": ["a", "a"]}
    answer = await lone_api.client.post("/v1/schedules", json=body | {"misfire": {"grace": "z"}})
    assert pointers(answer) == ["/every", "/jitter", "/kind", "/limit_keys", "/misfire/grace", "/timeout"]


async def test_a_bad_line_is_named(api: Api) -> None:
    async def send(content: bytes) -> httpx.Response:
        return await api.client.post(
            "/v1/jobs/batch", content=content, headers={"content-type": "application/x-ndjson"}
        )

    for line in (b'{"kind":', b"7", b'{"kind":"a"},{"kind":"b"}', b'{"kind":"a","kind":"b"}', b'{"kind":"\xff"}'):
        found = problem(await send(b'{"kind":"good"}\n' + line + b'\n{"kind":"good"}'), 400, "malformed")
        assert found["errors"][0]["pointer"] == "/1", found
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []


async def test_a_graph_of_jobs_goes_in_at_once(api: Api) -> None:
    first, second = "01a1e32c-9236-70a0-8007-cb2475315829", "01a1e32c-9236-70a0-8007-cb2475315830"
    now = (await api.get(await api.submit()))["id"]
    first, second = (now[:14] + text[14:] for text in (first, second))

    answer = await api.client.post(
        "/v1/jobs/batch", json=[{"kind": "a", "id": first}, {"kind": "b", "id": second, "after": [first]}]
    )

    assert answer.status_code == 202, answer.text
    child = await api.get(second)
    assert (child["state"], child["after"], child["waiting_for"]) == ("blocked", [first], 1)
    parents = (await api.client.get(f"/v1/jobs/{second}/parents")).json()
    assert parents == {"jobs": [{"id": first, "kind": "a", "state": "queued"}], "next_cursor": None}
    children = (await api.client.get(f"/v1/jobs/{first}/children?limit=1")).json()
    assert [job["id"] for job in children["jobs"]] == [second]
    rest = await api.client.get(f"/v1/jobs/{first}/children", params={"cursor": children["next_cursor"]})
    assert rest.json() == {"jobs": [], "next_cursor": None}
    taken = await api.client.post("/v1/jobs", json={"kind": "a", "id": first})
    problem(taken, 409, "id-taken")


async def test_submits_at_the_same_time_do_not_disturb_one_another(api: Api) -> None:
    """Good and bad ones, repeated keys and taken keys are handed in together; each gets the answer that is its own."""
    await api.submit(unique_key="taken")
    await api.client.post("/v1/jobs", json={"kind": "first"}, headers={"idempotency-key": "used"})

    async def send(number: int) -> httpx.Response:
        kind = number % 5
        body: dict[str, object] = {"kind": "no spaces" if kind == 1 else f"kind-{number}"}
        if kind == 2:
            body["unique_key"] = "taken"
        headers = {"idempotency-key": "used" if kind == 3 else f"key-{number}"}
        return await api.client.post("/v1/jobs", json=body, headers=headers)

    answers = await asyncio.gather(*map(send, range(100)))

    expected = {0: 202, 1: 422, 2: 409, 3: 422, 4: 202}
    assert [answer.status_code for answer in answers] == [expected[number % 5] for number in range(100)]
    for number, answer in enumerate(answers):
        if number % 5 in (0, 4):
            assert (await api.get(answer.json()["id"]))["kind"] == f"kind-{number}"
        elif number % 5 == 1:
            assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == "/kind"


async def test_a_submit_that_waits_is_answered_with_the_job_at_its_end(api: Api) -> None:
    waiting = asyncio.create_task(
        api.client.post("/v1/jobs", json={"kind": "mail"}, headers={"Prefer": "respond-async, wait=20"})
    )
    while not (await api.client.get("/v1/jobs")).json()["jobs"]:
        pass
    await api.run(result='"done"')

    answer = await waiting

    assert (answer.status_code, answer.headers["preference-applied"]) == (200, "wait=20")
    assert (answer.json()["job"]["state"], answer.json()["job"]["result"]) == (State.SUCCEEDED, "done")


async def test_a_wait_that_is_too_short_is_answered_as_without(api: Api) -> None:
    answer = await api.client.post("/v1/jobs", json={"kind": "mail"}, headers={"Prefer": "wait=1"})

    assert answer.status_code == 202
    assert "job" not in answer.json()
    await api.run(Cause.GAVE_UP)
    problem(await api.client.get(answer.json()["location"] + "/result"), 409, "no-result")


async def test_a_job_remembers_the_span_that_submitted_it_and_a_bad_header_is_ignored(lone_api: Api) -> None:
    span, own = f"00-{'a' * 32}-{'b' * 16}-01", f"00-{'c' * 32}-{'d' * 16}-00"
    one = await lone_api.client.post("/v1/jobs", json={"kind": "a"}, headers={"traceparent": span, "tracestate": "v=1"})
    jobs = [{"kind": "a"}, {"kind": "a", "traceparent": own}, {"kind": "a", "traceparent": "nonsense"}]
    many = await lone_api.client.post("/v1/jobs/batch", json=jobs, headers={"traceparent": span})
    nonsense = {"traceparent": "nonsense", "tracestate": "v=1"}
    bad = await lone_api.client.post("/v1/jobs", json={"kind": "a", **nonsense}, headers=nonsense)
    assert [answer.status_code for answer in (one, many, bad)] == [202] * 3

    async def spans(*ids: str) -> list[str | None]:
        return [(await lone_api.client.get(f"/v1/jobs/{job_id}")).json()["traceparent"] for job_id in ids]

    assert await spans(one.json()["id"], bad.json()["id"]) == [span, None]
    assert await spans(*(job["id"] for job in many.json()["jobs"])) == [span, own, span]


HTTP = {"url": "https://example.com"}
CALLS = [
    ("http", {}, "args/url"),
    ("http", {"url": "example.com"}, "args/url"),
    ("http", {**HTTP, "method": "GET /"}, "args/method"),
    ("http", {**HTTP, "headers": {"A B": "c"}}, "args/headers"),
    ("http", {**HTTP, "headers": {"A": "b\r\nC: d"}}, "args/headers"),
    ("http", {**HTTP, "preempt": "requeue"}, "args/preempt"),
    ("command", {"argv": []}, "args/argv"),
    ("command", {"argv": ["true"], "isolation": "weak"}, "args/isolation"),
    ("command", {"argv": ["true"], "preempt": None}, "args/preempt"),
]


@pytest.mark.parametrize(("kind", "args", "place"), CALLS)
async def test_commands_and_http_calls_that_no_worker_could_do_are_refused_by_their_field(
    api: Api, kind: str, args: object, place: str
) -> None:
    job = {"kind": kind, "args": args}
    one = await api.client.post("/v1/jobs", json=job)
    many = await api.client.post("/v1/jobs/batch", json=[{"kind": "good"}, job])
    schedule = await api.client.post("/v1/schedules", json={**job, "name": "often", "every": "1h"})

    assert pointers(one) == pointers(schedule) == [f"/{place}"]
    assert pointers(many) == [f"/1/{place}"]
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []
    assert (await api.client.get("/v1/schedules")).json()["schedules"] == []


async def test_a_schedule_is_not_changed_to_a_call_that_cannot_be_made(api: Api) -> None:
    made = await api.client.post("/v1/schedules", json={"kind": "http", "args": HTTP, "name": "often", "every": "1h"})
    place, version = made.headers["location"], {"if-match": made.headers["etag"]}
    bad = {"args": {"url": "nowhere"}}

    changed = await api.client.patch(place, json=bad, headers=version)

    assert pointers(changed) == ["/args/url"]
    assert (await api.client.get(place)).json()["args"] == HTTP


async def test_what_a_command_asks_of_its_worker_is_shown_with_the_job(api: Api) -> None:
    args = {"argv": ["true"], "isolation": "strict", "preempt": "pause"}

    made = await api.client.post("/v1/jobs", json={"kind": "command", "args": args})

    assert (await api.client.get(made.headers["location"])).json()["args"] == args
