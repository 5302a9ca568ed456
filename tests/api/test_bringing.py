"""What runs leave behind, brought by workers that reach nothing but the server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest

from tests.api.conftest import Api, problem, serving
from tests.api.test_worker_protocol import Hand, a_hand
from tests.s3 import S3
from tidewheel.model.outcome import MAX_RESULT_BYTES
from tidewheel.wiring import open_blobs

RESULT = json.dumps({"rows": ["x" * 1000] * 100}).encode()


@pytest.fixture(params=["folder", "bucket"])
async def placed(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Api]:
    """A server whose blobs are in a folder, and one whose blobs are in a bucket."""
    blobs = None
    if request.param == "bucket":
        s3: S3 = request.getfixturevalue("s3")
        blobs = s3.url(f"api-{uuid4()}")
    async with serving(f"sqlite:///{tmp_path}/tide.db", tmp_path, blobs_url=blobs) as served:
        yield served


async def a_run(api: Api) -> tuple[Hand, dict[str, Any]]:
    await api.submit()
    hand = await a_hand(api)
    [run] = await hand.claim()
    return hand, run


async def offer(api: Api, run: dict[str, Any], size: Any, **fields: Any) -> httpx.Response:
    body = {"token": run["token"], "size": size} | fields
    return await api.client.post(f"/v1/jobs/{run['job_id']}/outputs", json=body)


async def send(api: Api, upload: dict[str, Any], content: bytes) -> httpx.Response:
    """Send bytes where an offer leads, without a key, and return the last answer."""
    async with httpx.AsyncClient(base_url=api.address.url, timeout=60) as keyless:
        typed = {} if upload["complete"] else {"content-type": "application/octet-stream"}
        answer = await keyless.request(upload["method"], upload["url"], content=content, headers=typed)
        return await keyless.post(upload["complete"]) if upload["complete"] else answer


async def bring(api: Api, run: dict[str, Any], content: bytes, **fields: Any) -> httpx.Response:
    offered = await offer(api, run, len(content), **fields)
    assert offered.status_code == 202, offered.text
    return await send(api, offered.json()["upload"], content)


async def test_a_large_result_and_a_file_are_brought_and_fetched(placed: Api) -> None:
    assert len(RESULT) > MAX_RESULT_BYTES
    hand, run = await a_run(placed)
    job = f"/v1/jobs/{run['job_id']}"

    brought = [await bring(placed, run, RESULT), await bring(placed, run, b"all is well", name="sub/report é.txt")]
    assert [answer.status_code for answer in brought] == [201, 201], [answer.text for answer in brought]
    assert await hand.settle(run, "returned", result_location=brought[0].json()["location"]) == "accepted"

    assert (await placed.client.get(f"{job}/result")).content == RESULT
    [output] = (await placed.client.get(f"{job}/outputs")).json()["outputs"]
    assert (output["name"], output["size"]) == ("sub/report é.txt", 11)
    led = await placed.client.get(output["content"])
    async with httpx.AsyncClient(base_url=placed.address.url, timeout=60) as keyless:
        assert (await keyless.get(led.headers["location"])).content == b"all is well"


async def test_nothing_is_taken_for_a_run_that_does_not_go_on(placed: Api) -> None:
    hand, run = await a_run(placed)
    early = (await offer(placed, run, len(RESULT))).json()
    assert (await send(placed, early["upload"], RESULT)).status_code == 201
    problem(await offer(placed, run | {"token": 2}, 1), 409, "conflict")
    assert await hand.settle(run, "returned", result_location=early["location"]) == "accepted"

    problem(await offer(placed, run, 1), 409, "conflict")
    problem(await send(placed, early["upload"], RESULT.replace(b"x", b"y")), 409, "conflict")
    assert (await placed.client.get(f"/v1/jobs/{run['job_id']}/result")).content == RESULT


@pytest.mark.parametrize(
    ("said", "sent", "name"),
    [(5, b"four", "a"), (3, b"four", "a"), (4, b"four", None), (9, b'"\\ud800"x', None), (5, b'"\xff"  ', None)],
)
async def test_what_is_not_what_was_said_leaves_nothing(placed: Api, said: int, sent: bytes, name: str | None) -> None:
    _, run = await a_run(placed)
    offered = (await offer(placed, run, said, name=name)).json()

    problem(await send(placed, offered["upload"], sent), 422, "wrong-content")

    assert await placed.blobs.delete_outputs(UUID(run["job_id"])) == 0


async def test_bad_input_is_told_by_its_field(lone_api: Api) -> None:
    _, run = await a_run(lone_api)
    bad: list[tuple[dict[str, Any], str]] = [
        ({"name": "../up"}, "/name"),
        ({"name": "a\0"}, "/name"),
        ({"name": ""}, "/name"),
        ({"size": -1}, "/size"),
        ({"size": 65 * 1024**2}, "/size"),
        ({"token": "x"}, "/token"),
        ({"key": 1}, "/key"),
    ]
    for fields, pointer in bad:
        answer = await offer(lone_api, run, **({"size": 1} | fields))
        assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == pointer
    artifact = await lone_api.client.post("/v1/artifacts", json={"digest": "a" * 64, "size": 1})
    grant = artifact.json()["upload"]["url"].removeprefix("/v1/uploads/")
    problem(await lone_api.client.put(f"/v1/outputs/{grant}", content=b"x"), 403, "forbidden")
    problem(await lone_api.client.post(f"/v1/outputs/{grant}/complete"), 403, "forbidden")
    own = (await offer(lone_api, run, 1)).json()["upload"]["url"].removeprefix("/v1/outputs/")
    problem(await lone_api.client.put(f"/v1/uploads/{own}", content=b"x"), 403, "forbidden")


async def test_the_blobs_of_a_server_serve_a_worker_elsewhere(placed: Api, tmp_path: Path) -> None:
    hand, run = await a_run(placed)
    job_id, token = UUID(run["job_id"]), run["token"]
    blobs = open_blobs(placed.address.url)
    (tmp_path / "file").write_bytes(b"y" * 300_000)
    digest = await placed.blobs.put_bytes(b"#!/bin/sh\n")

    location = await blobs.store_result(job_id, token, RESULT.decode())
    assert (
        await blobs.store_output(job_id, token, "file", tmp_path / "file")
        == f"blob:outputs/{job_id}/{token}/files/file"
    )
    assert await hand.settle(run, "returned", result_location=location) == "accepted"

    assert await blobs.read_result(job_id, token, location) == RESULT
    assert await blobs.read(f"blob:outputs/{job_id}/{token}/files/file", 10**6) == b"y" * 300_000
    await blobs.fetch(digest, tmp_path / "tool")
    assert (tmp_path / "tool").read_bytes() == b"#!/bin/sh\n"
