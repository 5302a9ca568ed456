"""Following a job as it happens, on both stores."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, NamedTuple
from uuid import UUID

import httpx
import pytest

from tests.api.conftest import Api, problem
from tidewheel.model.states import Cause


class Event(NamedTuple):
    name: str
    id: str
    data: dict[str, Any]


async def events(answer: httpx.Response) -> AsyncIterator[Event]:
    fields: dict[str, str] = {}
    async for line in answer.aiter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], fields["id"], json.loads(fields["data"]))
            fields = {}


async def follow(api: Api, job_id: UUID, last: str | None = None) -> list[Event]:
    headers = {} if last is None else {"Last-Event-ID": last}
    async with api.client.stream("GET", f"/v1/jobs/{job_id}/events", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"] == "text/event-stream"
        return [event async for event in events(answer)]


async def test_states_and_lines_come_as_they_happen_and_then_the_end(api: Api) -> None:
    job_id = await api.submit(retry={"delay": 0, "cap": 0})
    following = asyncio.create_task(follow(api, job_id))

    await api.run(Cause.FAILED, lines=["one", "two"])
    await api.run(lines=["three"])
    seen = await following

    assert [event.data["text"] for event in seen if event.name == "log"] == ["one", "two", "three"]
    assert seen[-1].name == "end"
    states = [event.data["state"] for event in seen if event.name == "state"]
    assert states[-1] == "succeeded"
    assert [event.name for event in seen].index("log") < [event.name for event in seen].index("end")


async def test_lines_that_fill_pages_by_their_size_all_come_before_the_end(
    lone_api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tidewheel.store.pages.LINES_BYTES", 1)
    job_id = await lone_api.submit()
    await lone_api.run(lines=["one", "two", "three"])
    *seen, end = await follow(lone_api, job_id)
    assert [event.data["text"] for event in seen if event.name == "log"] == ["one", "two", "three"]
    assert (seen[-1].name, end.name) == ("state", "end")


async def test_whoever_comes_back_goes_on_where_it_was_and_is_sent_away_after_the_end(api: Api) -> None:
    job_id = await api.submit()
    await api.run(lines=["one", "two", "three"])
    seen = await follow(api, job_id)
    assert [event.name for event in seen] == ["log", "log", "log", "state", "end"]

    for position in range(4):
        assert await follow(api, job_id, seen[position].id) == seen[position + 1 :]
    away = await api.client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": seen[-1].id})
    assert (away.status_code, away.content) == (204, b"")


async def test_an_id_that_no_stream_gave_out_is_refused(lone_api: Api) -> None:
    job_id = await lone_api.submit()

    for last in ("x", "1", "1.2", "99999999999999999999.1.", "1.1.zz", "", "1.1." + "0" * 17):
        answer = await lone_api.client.get(f"/v1/jobs/{job_id}/events", headers={"Last-Event-ID": last})
        assert problem(answer, 400, "bad-header")["errors"][0]["header"] == "Last-Event-ID"


async def test_a_stream_ends_when_the_client_leaves(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    async with lone_api.client.stream("GET", f"/v1/jobs/{job_id}/events") as answer:
        assert (await anext(events(answer))).data["state"] == "queued"
        assert lone_api.service.under_way == 1

    async with asyncio.timeout(10):
        while lone_api.service.under_way:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0)  # noqa: TID251 - lets the server notice


async def test_many_idle_streams_leave_room_for_others(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    head = f"GET /v1/jobs/{job_id}/events HTTP/1.1\r\nhost: localhost\r\n\r\n".encode()
    ends = [await asyncio.open_connection(*lone_api.address) for _ in range(200)]
    for reader, writer in ends:
        writer.write(head)
        assert b"200" in await reader.readline()

    await lone_api.submit()

    for _, writer in ends:
        writer.close()
