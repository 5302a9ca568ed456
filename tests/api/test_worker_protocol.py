"""The worker protocol: everything a worker in any language does, over a real socket, on both stores."""

import asyncio
from collections.abc import Mapping
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.api.conftest import CLOCK, Api, problem
from tests.api.test_entrance import key_of
from tests.builders import a_claim, a_job, a_worker
from tidewheel.logs import quota
from tidewheel.model.access import Role
from tidewheel.model.outcome import MAX_DETAIL, MAX_MESSAGE
from tidewheel.server import run_lines


class Hand:
    """A worker over HTTP."""

    def __init__(self, api: Api, told: Mapping[str, Any]) -> None:
        self.client = api.client
        self.told = told
        self.path = f"/v1/workers/{told['id']}"

    async def say(self, what: str, body: Any = None, **more: Any) -> httpx.Response:
        return await self.client.post(f"{self.path}/{what}", json={} if body is None else body, **more)

    async def claim(self, limit: int = 10, wait: int = 0, **fields: Any) -> list[dict[str, Any]]:
        answer = await self.say("claim", {"limit": limit, **fields}, headers={"prefer": f"wait={wait}"})
        assert answer.status_code == 200, answer.text
        runs: list[dict[str, Any]] = answer.json()["runs"]
        return runs

    async def settle(self, run: Mapping[str, Any], cause: str, **fields: Any) -> str:
        end = {"job_id": run["job_id"], "token": run["token"], "cause": cause, **fields}
        answer = await self.say("settle", {"ends": [end]})
        assert answer.status_code == 200, answer.text
        verdict: str = answer.json()["ends"][0]["verdict"]
        return verdict


async def a_hand(api: Api, **fields: Any) -> Hand:
    answer = await api.client.post("/v1/workers", json={"name": "host/1"} | fields)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"/v1/workers/{answer.json()['id']}"
    return Hand(api, answer.json())


async def test_a_worker_takes_a_job_beats_notes_logs_and_returns_a_result(api: Api) -> None:
    job_id = await api.submit(args={"to": "a@b.example"}, labels={"colour": "red"}, timeout=7)
    hand = await a_hand(api)

    [run] = await hand.claim()
    assert (run["job_id"], run["kind"], run["args"]) == (str(job_id), "mail", {"to": "a@b.example"})
    assert (run["labels"], run["timeout"], run["attempt"]) == ({"colour": "red"}, 7.0, 1)
    beat = (await hand.say("heartbeat")).json()
    assert (beat["stop"], beat["lease_until"] > hand.told["lease_until"]) == ([], True)
    key = {"job_id": run["job_id"], "token": run["token"]}
    noted = await hand.say("notes", {"notes": [{**key, "progress": 0.5, "message": "half", "checkpoint": {"at": 3}}]})
    assert noted.json() == {"stale": []}
    lines = [{**key, "number": number, "text": f"line {number}", "stream": "stdout"} for number in (1, 2)]
    assert (await hand.client.post("/v1/logs", json={"lines": lines})).json() == {"stored": 2}
    assert (await api.get(job_id))["progress"] == 0.5
    assert (await api.client.get(f"/v1/jobs/{job_id}/checkpoint")).json() == {"checkpoint": {"at": 3}}
    assert (await api.client.get(f"{hand.path}/runs")).json()["runs"][0]["job_id"] == str(job_id)

    assert await hand.settle(run, "returned", result={"sent": True}) == "accepted"
    assert await hand.settle(run, "returned", result={"sent": True}) == "repeated"
    job = await api.get(job_id)
    assert (job["state"], job["result"], job["last_worker"]) == ("succeeded", {"sent": True}, hand.told["id"])
    told = (await api.client.get(f"/v1/jobs/{job_id}/logs")).json()["lines"]
    assert [line["text"] for line in told] == ["line 1", "line 2"]


async def test_nobody_is_led_to_the_result_of_another_tenant(api: Api) -> None:
    ada, bob = {"tide-tenant": "ada"}, {"tide-tenant": "bob"}
    for tenant in (ada, bob):
        assert (await api.client.post("/v1/jobs", json={"kind": "mail"}, headers=tenant)).status_code == 202
    theirs, mine = await a_hand(api, tenant="bob"), await a_hand(api, tenant="ada")
    [secret], [run] = await theirs.claim(), await mine.claim()
    location = await api.blobs.store_result(UUID(secret["job_id"]), 1, '"of bob alone"')

    assert await theirs.settle(secret, "returned", result_location=location) == "accepted"
    assert await mine.settle(run, "returned", result_location=location) == "unstorable"

    found = await api.client.get(f"/v1/jobs/{secret['job_id']}/result", headers=bob)
    assert found.json() == "of bob alone"
    problem(await api.client.get(f"/v1/jobs/{run['job_id']}/result", headers=ada), 409, "no-result")


@pytest.mark.parametrize(
    ("cause", "fields", "state", "failures"),
    [
        ("failed", {"error": {"reason": "error", "message": "no route"}, "delay": 60}, "queued", 1),
        ("failed", {"error": {"reason": "error"}}, "queued", 1),
        ("gave_up", {"error": {"reason": "error", "message": "no such user"}}, "dead", 1),
        ("snoozed", {"delay": 60}, "queued", 0),
        ("released", {}, "queued", 0),
        ("stopped", {}, "cancelled", 0),
    ],
)
async def test_every_end_moves_the_job(api: Api, cause: str, fields: dict[str, Any], state: str, failures: int) -> None:
    job_id = await api.submit(retry={"max_attempts": 3, "delay": 5, "jitter": "none"})
    hand = await a_hand(api)
    [run] = await hand.claim()

    assert await hand.settle(run, cause, **fields) == "accepted"
    job = await api.get(job_id)
    assert (job["state"], job["failures"]) == (state, failures)


async def test_a_failure_without_a_delay_follows_the_policy_of_the_job_to_its_end(lone_api: Api) -> None:
    job_id = await lone_api.submit(retry={"max_attempts": 2, "delay": 0, "cap": 0, "jitter": "none"})
    hand = await a_hand(lone_api)

    for state in ("queued", "dead"):
        [run] = await hand.claim(wait=10)
        assert await hand.settle(run, "failed", error={"reason": "error", "message": "no"}) == "accepted"
        assert (await lone_api.get(job_id))["state"] == state
    assert len((await lone_api.client.get(f"/v1/jobs/{job_id}/attempts")).json()["attempts"]) == 2


async def test_what_is_stale_changes_nothing_and_is_told_so(api: Api) -> None:
    job_id = await api.submit()
    first, second = await a_hand(api), await a_hand(api)
    [old] = await first.claim()
    assert await first.settle(old, "released") == "accepted"
    [new] = await second.claim(wait=10)
    assert new["token"] > old["token"]

    for hand, run in ((first, old), (first, new), (second, old)):
        assert await hand.settle(run, "returned", result=1) == "stale"
        note = {"job_id": run["job_id"], "token": run["token"], "progress": 0.9}
        noted = await hand.say("notes", {"notes": [note]})
        assert noted.json() == {"stale": [{"job_id": run["job_id"], "token": run["token"]}]}
    job = await api.get(job_id)
    assert (job["state"], job["progress"], job["token"]) == ("running", None, new["token"])
    assert await second.settle(new, "returned") == "accepted"


async def test_a_cancelled_run_hears_of_it_with_the_next_beat(api: Api) -> None:
    job_id = await api.submit()
    hand = await a_hand(api)
    [run] = await hand.claim()

    assert (await api.client.post(f"/v1/jobs/{job_id}/cancel")).status_code == 202
    stop = [{"job_id": run["job_id"], "token": run["token"]}]
    assert (await hand.say("heartbeat")).json()["stop"] == stop
    assert (await api.client.get(f"{hand.path}/stopping")).json() == {"stop": stop}
    assert await hand.settle(run, "stopped") == "accepted"
    assert (await api.get(job_id))["state"] == "cancelled"


async def test_who_lost_its_lease_is_told_by_a_code(api: Api) -> None:
    job_id = await api.submit()
    hand = await a_hand(api)
    [run] = await hand.claim()

    assert (await hand.say("deregister")).json() == {"requeued": 1, "cancelled": 0}
    problem(await hand.say("heartbeat"), 409, "lease-lost")
    problem(await hand.say("claim"), 409, "lease-lost")
    assert await hand.settle(run, "returned", result=1) == "stale"
    assert (await api.get(job_id))["state"] == "queued"


async def test_a_claim_waits_for_a_job_and_no_longer_than_asked(api: Api) -> None:
    hand = await a_hand(api)
    assert await hand.claim(wait=1) == []

    waiting = asyncio.create_task(hand.claim(wait=30))
    while not api.service.doorbell._bells:
        await CLOCK.sleep(0.01)
    began = CLOCK.monotonic()
    job_id = await api.submit()
    [run] = await waiting
    assert run["job_id"] == str(job_id)
    assert CLOCK.monotonic() - began < 20


async def test_a_client_that_went_away_while_it_waited_gets_no_job(lone_api: Api) -> None:
    hand = await a_hand(lone_api)
    gone = asyncio.create_task(hand.claim(wait=60))
    while not lone_api.service.doorbell._bells:
        await CLOCK.sleep(0.01)
    gone.cancel()
    await asyncio.wait([gone])
    async with asyncio.timeout(30):
        while lone_api.service.under_way:
            await CLOCK.sleep(0.01)

    job_id = await lone_api.submit()
    assert (await lone_api.client.get(f"{hand.path}/runs")).json() == {"runs": []}
    assert (await lone_api.get(job_id))["state"] == "queued"


async def test_a_server_that_ends_answers_those_who_wait(lone_api: Api) -> None:
    hand = await a_hand(lone_api)
    waiting = asyncio.create_task(hand.claim(wait=60))
    while not lone_api.service.doorbell._bells:
        await CLOCK.sleep(0.01)
    lone_api.service.stopping.set()
    lone_api.service.doorbell.ring()

    assert await waiting == []


async def test_hints_come_as_events(api: Api) -> None:
    async with api.client.stream("GET", "/v1/hints") as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "event: hint"
        await api.submit()
        async with asyncio.timeout(20):
            assert [await anext(lines) for _ in range(3)][-1] == "event: hint"


async def test_a_worker_says_what_it_can_run(api: Api) -> None:
    await api.submit(kind="a", queue="x")
    await api.submit(kind="b", queue="x")
    await api.submit(kind="a", needs={"resources": {"gpu": 1}}, queue="x")
    hand = await a_hand(api, queues=["x"], kinds=["a"], offer={"resources": {"gpu": 2}})

    [run] = await hand.claim(free={"gpu": 0})
    assert (run["kind"], run["needs"]) == ("a", {})
    unfit = await hand.say("unfit", {"free": {"gpu": 0}, "total": {"gpu": 2}})
    assert unfit.json()["needs"] == {"resources": {"gpu": 1}}
    assert [one["needs"] for one in await hand.claim(free={"gpu": 1})] == [{"resources": {"gpu": 1}}]
    assert await hand.claim() == []
    assert [one["kind"] for one in await hand.claim(kinds=["b"], queues=["x"])] == ["b"]


async def test_a_key_of_one_tenant_gets_and_ends_the_jobs_of_that_tenant_alone(api: Api) -> None:
    own, other = uuid4(), uuid4()
    native = await api.store.register(a_worker())
    for tenant in ("acme", "other"):
        [made] = await api.store.submit([a_job("mail", tenant=tenant)])
        own, other = (made.job_id, other) if tenant == "acme" else (own, made.job_id)
    acme, _ = await key_of(api, Role.WORKER, "acme")
    api.client.headers.update(acme)
    hand = await a_hand(api)
    assert hand.told["tenant"] == "acme"

    [run] = await hand.claim()
    assert run["job_id"] == str(own)
    problem(await hand.say("claim", {"tenant": "other"}), 422, "invalid")
    [theirs] = (await api.store.claim(a_claim(native.id))).runs
    stolen = {"job_id": str(theirs.job_id), "token": theirs.token}
    assert await hand.settle(stolen, "returned") == "stale"
    problem(
        await hand.client.post("/v1/logs", json={"lines": [{**stolen, "number": 1, "text": "x"}]}), 404, "not-found"
    )
    for path in ("heartbeat", "claim", "deregister"):
        problem(await api.client.post(f"/v1/workers/{native.id}/{path}", json={}), 404, "not-found")
    stranger, _ = await key_of(api, Role.WORKER, "other")
    api.client.headers.update(stranger)
    problem(await hand.say("settle", {"ends": []}), 404, "not-found")
    problem(await api.client.get(hand.path), 404, "not-found")
    assert (await api.store.get(other)).state == "running"


async def test_ends_notes_and_lines_that_are_wrong_are_refused_whole(lone_api: Api) -> None:
    hand = await a_hand(lone_api)
    key = {"job_id": str(UUID(int=1)), "token": 1}

    both = await hand.say("settle", {"ends": [{**key, "cause": "returned", "result": 1, "result_text": "1"}]})
    assert problem(both, 422, "invalid")["errors"][0]["pointer"] == "/ends/0/result_text"
    problem(await hand.say("settle", {"ends": [{**key, "cause": "lost"}]}), 422, "invalid")
    wrong = await hand.say("notes", {"notes": [{**key, "checkpoint_text": "{"}]})
    assert problem(wrong, 422, "invalid")["errors"][0]["pointer"] == "/notes/0/checkpoint"
    problem(await hand.client.post("/v1/logs", json={"lines": [{**key, "number": -1, "text": ""}]}), 422, "invalid")


async def test_lines_of_any_worker_are_cleaned_and_bounded_for_each_run(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quota, "MAX_KEPT", 256)
    monkeypatch.setattr(run_lines, "LAST_BYTES", 0)
    hand, one, other = await a_hand(lone_api), await lone_api.submit(), await lone_api.submit()

    async def send(job_id: UUID, *texts: str, first: int = 0) -> int:
        lines = [{"job_id": str(job_id), "token": 1, "number": n, "text": text} for n, text in enumerate(texts, first)]
        stored: int = (await hand.client.post("/v1/logs", json={"lines": lines})).json()["stored"]
        return stored

    async def told(job_id: UUID) -> list[tuple[str, str]]:
        found = (await lone_api.client.get(f"/v1/jobs/{job_id}/logs")).json()["lines"]
        return [(line["stream"], line["text"]) for line in found]

    assert await send(one, "\x1b[31mred\x1b[0m", "a\tb\nc\x07\x00\u202e") == 2
    assert await told(one) == [("log", "red"), ("log", "a\tb\nc\\x07\\x00\\u202e")]
    assert await send(one, *["x" * 300] * 5, first=2) == 4
    assert await send(one, "more", first=9) == 0
    assert (await told(one))[-1] == ("system", "[output cut: more than 1 KiB]")
    assert await send(other, "fine") == 1


async def test_an_error_of_any_worker_has_its_bounds(lone_api: Api) -> None:
    job_id, hand = await lone_api.submit(), await a_hand(lone_api)
    [run] = await hand.claim()
    error = {"reason": "error", "message": "m" * 5_000, "detail": "d" * 100_000 + "the end"}
    assert await hand.settle(run, "gave_up", error=error) == "accepted"
    kept = (await lone_api.get(job_id))["error"]
    assert (len(kept["message"]), len(kept["detail"])) == (MAX_MESSAGE, MAX_DETAIL)
    assert kept["detail"].endswith("ddthe end")
