"""Artifacts over HTTP: brought by a signed address to this server or to a bucket, checked, listed, fetched, removed."""

import os
from collections.abc import AsyncIterator
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.conftest import CLOCK, Api, problem, serving
from tests.builders import DAY
from tests.s3 import S3
from tidewheel.blobs.names import upload_is_over
from tidewheel.keeper.artifacts import Gravedigger
from tidewheel.server.grants import Download, seal
from tidewheel.testing.clock import FakeClock

PROGRAM = b"#!/bin/sh\necho hello\n" * 1000
DIGEST = sha256(PROGRAM).hexdigest()


@pytest.fixture(params=["folder", "bucket"])
async def placed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """A server whose blobs are in a folder, and one whose blobs are in a bucket."""
    blobs = None
    if request.param == "bucket":
        s3: S3 = request.getfixturevalue("s3")
        blobs = s3.url(f"api-{uuid4()}")
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path, blobs_url=blobs) as served:
        yield served


async def offer(api: Api, content: bytes = PROGRAM, **fields: Any) -> httpx.Response:
    body = {"digest": sha256(content).hexdigest(), "size": len(content), "name": "hello.sh"} | fields
    return await api.client.post("/v1/artifacts", json=body)


async def bring(api: Api, content: bytes = PROGRAM, sent: bytes | None = None, **fields: Any) -> httpx.Response:
    """Bring an artifact as a client does, and return the last answer."""
    offered = await offer(api, content, **fields)
    assert offered.status_code == 202, offered.text
    upload = offered.json()["upload"]
    async with httpx.AsyncClient(base_url=api.address.url, verify=False, timeout=60) as keyless:
        answer = await keyless.request(upload["method"], upload["url"], content=content if sent is None else sent)
        if upload["complete"] is not None:
            assert answer.status_code == 200, answer.text
            answer = await keyless.post(upload["complete"])
    return answer


async def test_an_artifact_is_brought_looked_at_and_fetched(placed: Api) -> None:
    brought = await bring(placed)
    assert brought.status_code == 201, brought.text
    assert {name: brought.json()[name] for name in ("digest", "size", "name")} == {
        "digest": DIGEST,
        "size": len(PROGRAM),
        "name": "hello.sh",
    }

    known = await offer(placed)
    assert (known.status_code, known.json()["upload"]) == (200, None)
    assert (await placed.client.get(f"/v1/artifacts/{DIGEST}")).json()["digest"] == DIGEST
    listed = (await placed.client.get("/v1/artifacts")).json()
    assert [one["digest"] for one in listed["artifacts"]] == [DIGEST]
    led = await placed.client.get(f"/v1/artifacts/{DIGEST}/content")
    assert led.status_code == 307
    async with httpx.AsyncClient(base_url=placed.address.url, verify=False, timeout=60) as keyless:
        fetched = await keyless.get(led.headers["location"])
    assert (fetched.status_code, fetched.content) == (200, PROGRAM)


@pytest.mark.parametrize("sent", [b"something else", PROGRAM + b"!", PROGRAM[:-1], b"", PROGRAM[:-1] + b"?"])
async def test_what_is_not_what_was_said_is_refused_and_leaves_nothing(placed: Api, sent: bytes) -> None:
    problem(await bring(placed, sent=sent), 422, "wrong-content")

    assert (await placed.client.get("/v1/artifacts")).json()["artifacts"] == []
    assert not await placed.blobs.has(DIGEST)
    problem(await placed.client.get(f"/v1/artifacts/{DIGEST}/content"), 404, "not-found")


async def test_an_artifact_never_changes_whatever_is_brought_later(placed: Api) -> None:
    offered = (await offer(placed)).json()["upload"]
    assert (await bring(placed)).status_code == 201
    async with httpx.AsyncClient(base_url=placed.address.url, verify=False, timeout=60) as keyless:
        later = await keyless.put(offered["url"], content=b"x" * len(PROGRAM))
        if offered["complete"] is not None:
            later = await keyless.post(offered["complete"])

    problem(later, 422, "wrong-content")
    assert await placed.blobs.read(f"blob:sha256/{DIGEST[:2]}/{DIGEST[2:]}", 10**6) == PROGRAM


async def test_a_job_may_name_only_artifacts_that_are_there(api: Api) -> None:
    body = {"kind": "command", "args": {"artifact": DIGEST}}
    missing = await api.client.post("/v1/jobs", json=body)
    assert problem(missing, 422, "invalid")["errors"][0]["pointer"] == "/args/artifact"
    batch = await api.client.post("/v1/jobs/batch", json=[{"kind": "mail"}, body])
    assert problem(batch, 422, "invalid")["errors"][0]["pointer"] == "/1/args/artifact"
    schedule = await api.client.post("/v1/schedules", json={"name": "s", "cron": "@daily", **body})
    assert problem(schedule, 422, "invalid")["errors"][0]["pointer"] == "/args/artifact"

    await bring(api)
    assert (await api.client.post("/v1/jobs", json=body)).status_code == 202
    assert (await api.client.post("/v1/jobs/batch", json=[body])).status_code == 202
    assert (await api.client.post("/v1/jobs", json={"kind": "mail", "args": {"artifact": 7}})).status_code == 202


async def test_addresses_are_only_good_for_what_they_were_signed_for(lone_api: Api) -> None:
    offered = (await offer(lone_api)).json()["upload"]["url"]
    grant = offered.removeprefix("/v1/uploads/")
    said, _, digest = grant.partition(".")
    now = int(CLOCK.now().timestamp())
    place = f"blob:sha256/{DIGEST[:2]}/{DIGEST[2:]}"
    key = await lone_api.store.signing_key()
    fetch = seal(Download(location=place, name="x", tenant="default", until=now + 60), key)
    over = seal(Download(location=place, name="x", tenant="default", until=now - 1), key)
    forged = seal(Download(location=place, name="x", tenant="default", until=now + 60), b"\0" * 32)

    for path in (f"{said}.{digest[::-1]}", f"{said}A.{digest}", said, f"{said}.", "x", "%00", "x" * 5000, fetch):
        problem(await lone_api.client.put(f"/v1/uploads/{path}", content=PROGRAM), 403, "forbidden")
        problem(await lone_api.client.post(f"/v1/uploads/{path}/complete"), 403, "forbidden")
    for path in (grant, over, forged, "x"):
        problem(await lone_api.client.get(f"/v1/downloads/{path}"), 403, "forbidden")
    problem(await lone_api.client.get(f"/v1/downloads/{fetch}"), 404, "not-found")


@pytest.mark.parametrize(
    ("fields", "pointer"),
    [
        ({"digest": "../../etc/passwd"}, "/digest"),
        ({"digest": DIGEST.upper()}, "/digest"),
        ({"size": -1}, "/size"),
        ({"size": 2**40}, "/size"),
        ({"name": "x" * 201}, "/name"),
        ({"name": "\0"}, "/name"),
    ],
)
async def test_what_can_be_no_artifact_is_refused(lone_api: Api, fields: dict[str, Any], pointer: str) -> None:
    assert problem(await offer(lone_api, **fields), 422, "invalid")["errors"][0]["pointer"] == pointer


async def test_files_that_runs_left_behind_are_listed_and_fetched(placed: Api, tmp_path: Path) -> None:
    job_id = await placed.submit()
    await placed.run()
    (tmp_path / "report").write_bytes(b"all is well")
    await placed.blobs.store_output(job_id, 1, "sub folder/report é.txt", tmp_path / "report")

    [found] = (await placed.client.get(f"/v1/jobs/{job_id}/outputs")).json()["outputs"]
    assert (found["token"], found["name"], found["size"]) == (1, "sub folder/report é.txt", 11)
    async with httpx.AsyncClient(
        base_url=placed.address.url, verify=False, follow_redirects=True, timeout=60
    ) as client:
        fetched = await client.get(found["content"])
    assert fetched.content == b"all is well"
    for wrong in ("1/nothing", "2/report", "1/..%2f..%2fresult.json", "1/%2e%2e/x", "x/report", f"{2**70}/x", "-1/x"):
        answer = await placed.client.get(f"/v1/jobs/{job_id}/outputs/{wrong}")
        problem(answer, 404, "not-found")
    problem(await placed.client.get(f"/v1/jobs/{uuid4()}/outputs"), 404, "not-found")


async def test_a_link_in_the_folder_leads_nowhere(lone_api: Api, tmp_path: Path) -> None:
    await bring(lone_api)
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    place = tmp_path / "blobs" / "sha256" / DIGEST[:2] / DIGEST[2:]
    led = (await lone_api.client.get(f"/v1/artifacts/{DIGEST}/content")).headers["location"]
    assert (await lone_api.client.get(led)).content == PROGRAM

    place.unlink()
    place.symlink_to(secret)
    problem(await lone_api.client.get(led), 404, "not-found")
    place.unlink()
    place.parent.rmdir()
    place.parent.symlink_to(tmp_path / "elsewhere")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / DIGEST[2:]).write_bytes(b"secret")
    answer = await lone_api.client.get(led)
    assert b"secret" not in answer.content


async def test_what_nobody_names_any_more_is_removed_with_its_bytes(placed: Api) -> None:
    await bring(placed)
    other = b"kept"
    await bring(placed, other)
    digger = Gravedigger(placed.store, placed.blobs, CLOCK)
    assert await digger.run_once() == 0

    real = placed.store.bury_artifacts
    placed.store.bury_artifacts = lambda **_: real(keep=timedelta(0))  # type: ignore[method-assign]
    body = {"kind": "command", "args": {"artifact": sha256(other).hexdigest()}, "delay": "1d"}
    assert (await placed.client.post("/v1/jobs", json=body)).status_code == 202
    assert await digger.run_once() == 1
    assert [await placed.blobs.has(sha256(one).hexdigest()) for one in (PROGRAM, other)] == [False, True]
    assert (await bring(placed)).status_code == 201


async def test_what_was_brought_to_a_bucket_and_never_completed_is_swept(s3: S3, tmp_path: Path) -> None:
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path, blobs_url=s3.url(f"api-{uuid4()}")) as api:
        upload = (await offer(api)).json()["upload"]
        async with httpx.AsyncClient(verify=False, timeout=60) as keyless:
            assert (await keyless.put(upload["url"], content=PROGRAM)).status_code == 200
        later = FakeClock(CLOCK.now() + DAY)

        assert await Gravedigger(api.store, api.blobs, CLOCK).run_once() == 0
        assert await Gravedigger(api.store, api.blobs, later).run_once() == 1
        problem(await api.client.post(upload["complete"]), 404, "not-found")
    assert upload_is_over("uploads/strange", 0)


async def test_a_reader_that_goes_away_gives_its_place_to_another(lone_api: Api) -> None:
    large = os.urandom(20 * 1024 * 1024)
    await bring(lone_api, large)
    led = (await lone_api.client.get(f"/v1/artifacts/{sha256(large).hexdigest()}/content")).headers["location"]

    for _ in range(40):
        async with lone_api.client.stream("GET", led) as answer:
            assert answer.status_code == 200
            assert len(await anext(answer.aiter_bytes())) > 0
    whole = await lone_api.client.get(led)
    assert sha256(whole.content).digest() == sha256(large).digest()
