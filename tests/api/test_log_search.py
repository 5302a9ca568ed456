"""Searching and following lines over the API, on both stores."""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tests.api.conftest import Api, problem
from tests.api.test_events import Event, events
from tidewheel.model.log_place import place_of
from tidewheel.model.log_query import LogKey


async def search(api: Api, **query: Any) -> dict[str, Any]:
    answer = await api.client.get("/v1/logs", params=query)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def a_run(api: Api, *lines: str, **fields: Any) -> str:
    await api.submit(**fields)
    return str(await api.run(lines=lines))


async def test_lines_are_found_with_marks_and_fields(api: Api) -> None:
    job_id = await a_run(api, "nothing", "x" * 300 + " payment refused", '{"user":7,"text":"payment"}', kind="shop")
    page = await search(api, q="payment")
    assert [line["number"] for line in page["lines"]] == [2, 1]
    as_json, plain = page["lines"]
    assert as_json["fields"] == {"user": 7, "text": "payment"}
    assert (plain["job_id"], plain["kind"], plain["queue"], plain["tenant"]) == (job_id, "shop", "default", "default")
    [mark] = plain["marks"]
    assert plain["excerpt"][mark["start"] : mark["end"]] == "payment"
    assert len(plain["excerpt"]) < 250
    assert [line["number"] for line in (await search(api, q="user:7", kind="shop"))["lines"]] == [2]


async def test_pages_lead_to_all_lines(api: Api) -> None:
    await a_run(api, *(f"tick {number}" for number in range(25)))
    seen: list[int] = []
    cursor: dict[str, str] = {}
    while True:
        page = await search(api, q="tick", limit=10, **cursor)
        seen += [line["number"] for line in page["lines"]]
        if page["next_cursor"] is None:
            break
        cursor = {"cursor": page["next_cursor"]}
    assert seen == [*range(24, -1, -1)]
    answer = await api.client.get("/v1/logs", params={"q": "tock", **cursor})
    problem(answer, 400, "bad-cursor")


@pytest.mark.parametrize(("name", "value"), [("q", '"open'), ("level", "a b"), ("limit", "0"), ("stream", "smoke")])
async def test_what_makes_no_sense_is_refused_with_one_reason(api: Api, name: str, value: str) -> None:
    for path in ("/v1/logs", "/v1/logs/tail") if name != "limit" else ("/v1/logs",):
        found = problem(await api.client.get(path, params={name: value}), 400, "bad-parameter")
        assert found["errors"][0]["parameter"] == name


async def follow(api: Api, count: int, started: asyncio.Event, last: str | None = None, **query: str) -> list[Event]:
    headers = {} if last is None else {"Last-Event-ID": last}
    got: list[Event] = []
    async with api.client.stream("GET", "/v1/logs/tail", headers=headers, params=query) as answer:
        assert answer.headers["content-type"] == "text/event-stream"
        started.set()
        async with aclosing(events(answer)) as stream:  # type: ignore[type-var]
            async for event in stream:
                got.append(event)
                if len(got) == count:
                    break
    return got


async def test_lines_are_followed_from_now_on_and_from_where_one_was(api: Api) -> None:
    await a_run(api, "before")
    started = asyncio.Event()
    following = asyncio.create_task(follow(api, 3, started, q="tick"))
    await asyncio.wait_for(started.wait(), 10)
    await a_run(api, "tick 1", "tock", "tick 2")
    await a_run(api, "tick 3")
    seen = await asyncio.wait_for(following, 20)
    assert [event.data["text"] for event in seen] == ["tick 1", "tick 2", "tick 3"]

    again = await asyncio.wait_for(follow(api, 2, started, seen[0].id, q="tick"), 20)
    assert [event.data["text"] for event in again] == ["tick 2", "tick 3"]


async def test_whoever_polls_asks_for_what_could_not_be_seen_before(api: Api) -> None:
    await a_run(api, "old")
    sight = (await search(api))["sight"]
    await a_run(api, "new")
    page = await search(api, unseen_at=sight, oldest_first=True)
    assert [line["text"] for line in page["lines"]] == ["new"]
    assert (await search(api, unseen_at=page["sight"], oldest_first=True))["lines"] == []
    assert [line["text"] for line in (await search(api, seen_at=sight))["lines"]] == ["old"]
    for query in ({"unseen_at": "17", "seen_at": "::"}, {"unseen_at": sight}, {"seen_at": "x", "oldest_first": "true"}):
        found = problem(await api.client.get("/v1/logs", params=query), 400, "bad-parameter")
        assert found["errors"][0]["parameter"] in query


async def test_a_place_that_nobody_gave_out_is_refused(api: Api) -> None:
    for last in ("x", "00" * 41, "7f" * 42):
        answer = await api.client.get("/v1/logs/tail", headers={"Last-Event-ID": last})
        problem(answer, 400, "bad-header")


async def test_a_place_at_an_instant_at_which_nothing_was_stored_is_refused(api: Api) -> None:
    for year in (1, 1999, 2200, 9999):
        place = place_of(LogKey(datetime(year, 1, 1, tzinfo=UTC), UUID(int=0), 0, 0)).hex()
        answer = await api.client.get("/v1/logs/tail", headers={"Last-Event-ID": place})
        assert problem(answer, 400, "bad-header")["errors"][0]["header"] == "Last-Event-ID"
        answer = await api.client.get("/v1/logs", params={"after": place})
        assert problem(answer, 400, "bad-parameter")["errors"][0]["parameter"] == "after"
