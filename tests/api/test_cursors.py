"""Cursors that nobody gave out: whatever stands in them, they are refused or lead nowhere, and never break anything."""

import msgspec
import pytest

from tests.api.conftest import Api, problem
from tests.api.samples import SAMPLES, Grounds
from tidewheel.server import cursors
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.table import ENDPOINTS

SIZES = (1, 8, 15, 16, 17, 18, 19, 41, 42, 43, 100)
FILLS = (b"\x00", b"\x01", b"\x7f", b"\x80", b"\xff")


def listing() -> list[Endpoint]:
    """Return all endpoints that take a cursor."""
    return [one for one in ENDPOINTS if "cursor" in {field.name for field in msgspec.structs.fields(one.query)}]


def forged() -> list[str]:
    """Return cursors with a right digest, as anyone can make who has read the source."""
    texts = [b"[]", b'["a"]', b'["a","b"]', b'["a","\\u0000"]', b'["","b"]', b'["a",7]', b'["\xff","b"]']
    return [cursors.seal("", place) for place in (*texts, *(fill * size for size in SIZES for fill in FILLS))]


async def test_a_forged_cursor_is_never_more_than_a_bad_one(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursors, "_digest", lambda *_: b"digested")
    grounds, told = Grounds(api), set[int]()
    for endpoint in listing():
        path = await grounds.path_of(SAMPLES[endpoint.name], "default")
        for cursor in forged():
            answer = await api.client.get(path, params={"cursor": cursor})
            assert answer.status_code in (200, 400), (endpoint.name, cursor, answer.text)
            if answer.status_code == 400:
                assert problem(answer, 400, "bad-cursor")["errors"][0]["parameter"] == "cursor"
            told.add(answer.status_code)
    assert told == {200, 400}


async def test_every_list_refuses_what_is_no_cursor(lone_api: Api) -> None:
    grounds = Grounds(lone_api)
    for endpoint in listing():
        path = await grounds.path_of(SAMPLES[endpoint.name], "default")
        for cursor in ("", "A", "AAAA", "\u00e9", "!" * 200, "A" * 200):
            answer = await lone_api.client.get(path, params={"cursor": cursor})
            assert (answer.status_code, answer.json()["code"]) == (400, "bad-cursor"), (endpoint.name, answer.text)


async def test_places_of_lines_that_cannot_be_are_refused(lone_api: Api) -> None:
    for fill in ("7f", "80"):
        answer = await lone_api.client.get("/v1/logs", params={"after": fill * 42})
        assert problem(answer, 400, "bad-parameter")["errors"][0]["parameter"] == "after"
