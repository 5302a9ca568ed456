"""Bad input of every sort is refused with the place where it is wrong, and nothing is stored."""

import json
from typing import Any

import pytest

from tests.api.conftest import Api, problem

DEEP = '{"kind":"a","args":{"x":' + "[" * 70 + "]" * 70 + "}}"


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b" ",
        b"{",
        b'{"kind":"a"} x',
        b'{"kind":"a"}{"kind":"a"}',
        b"{'kind':'a'}",
        b'{"kind":NaN}',
        b'{"kind":"a","args":{"x":Infinity}}',
        b'{"kind":"a","args":{"x":1e999}}',
        b'{"kind":"a","args":{"x":' + b"9" * 6000 + b"}}",
        b'{"kind":"\xff"}',
        b'{"kind":"\xed\xa0\x80"}',
        b'{"kind":"\\ud800"}',
        b'{"kind":"a","kind":"b"}',
        b'{"kind":"a","args":{"x":1,"x":1}}',
        b'{"kind":"a","args":{"x":":\\":","x":":"}}',
        b"[" * 100_000,
        b'{"a":' * 50_000,
    ],
    ids=lambda body: body[:30].decode("latin-1").encode("unicode_escape").decode(),
)
async def test_what_is_not_json_is_malformed(lone_api: Api, body: bytes) -> None:
    answer = await lone_api.client.post("/v1/jobs", content=body, headers={"content-type": "application/json"})

    problem(answer, 400, "malformed")


@pytest.mark.parametrize("text", [DEEP, '{"kind":"a","args":{"x":"' + "y" * 300_000 + '"}}'])
async def test_what_is_too_deep_or_too_long_to_be_kept_is_refused(lone_api: Api, text: str) -> None:
    answer = await lone_api.client.post("/v1/jobs", content=text, headers={"content-type": "application/json"})

    assert problem(answer, 422, "invalid")["errors"][0]["pointer"] == "/args"


async def test_a_repeated_key_is_named_and_colons_in_texts_are_none(lone_api: Api) -> None:
    headers = {"content-type": "application/json"}
    twin = await lone_api.client.post("/v1/jobs", content=b'{"kind":"a","args":{"b":1,"b":2}}', headers=headers)
    hidden = await lone_api.client.post(
        "/v1/jobs", content=rb'{"kind":"a","args":{"b":1,"b":"\u003a"}}', headers=headers
    )
    fine = {"kind": "a", "args": {'x":"': 'a:b\\":', "\\": ":", "{:": [":", {"y": '"'}]}}

    for answer in (twin, hidden):
        assert "'b' stands twice" in problem(answer, 400, "malformed")["detail"]
    assert (await lone_api.client.post("/v1/jobs", json=fine)).status_code == 202


BAD_FIELDS: list[tuple[str, Any, str]] = [
    ("kind", 1, "/kind"),
    ("kind", None, "/kind"),
    ("kind", "", "/kind"),
    ("kind", "x" * 201, "/kind"),
    ("kind", "a\0b", "/kind"),
    ("args", [], "/args"),
    ("args", None, "/args"),
    ("args", {"x": "\0"}, "/args"),
    ("args", {"x": 10**30}, "/args"),
    ("queue", ["a"], "/queue"),
    ("queue", "a b", "/queue"),
    ("priority", "urgent", "/priority"),
    ("priority", 1, "/priority"),
    ("name", "", "/name"),
    ("name", "\x07", "/name"),
    ("description", 5, "/description"),
    ("description", "x" * 10_001, "/description"),
    ("labels", {"a b": "c"}, "/labels"),
    ("labels", {"a": "\n"}, "/labels"),
    ("labels", {f"l{n}": "" for n in range(33)}, "/labels"),
    ("needs", {"resources": {"cpu": -1}}, "/needs/resources"),
    ("needs", {"resources": {"cpu": "1"}}, "/needs/resources"),
    ("needs", {"gpu": 1}, "/needs/gpu"),
    ("retry", {"max_attempts": 0}, "/retry/max_attempts"),
    ("retry", {"backoff": "never"}, "/retry/backoff"),
    ("retry", {"delay": "soon"}, "/retry/delay"),
    ("retry", {"delay": "2h"}, "/retry/cap"),
    ("retry", {"tries": 3}, "/retry/tries"),
    ("timeout", 0, "/timeout"),
    ("timeout", -1, "/timeout"),
    ("timeout", "8d", "/timeout"),
    ("timeout", "P1Y", "/timeout"),
    ("timeout", 1e300, "/timeout"),
    ("timeout", True, "/timeout"),
    ("run_at", "tomorrow", "/run_at"),
    ("run_at", "2026-01-01T00:00:00", "/run_at"),
    ("run_at", "1999-01-01T00:00:00Z", "/run_at"),
    ("run_at", 1_700_000_000, "/run_at"),
    ("delay", "-5s", "/delay"),
    ("delay", "P9999999D", "/delay"),
    ("start_by", "2300-01-01T00:00:00Z", "/start_by"),
    ("limit_keys", "smtp", "/limit_keys"),
    ("limit_keys", ["a", "a"], "/limit_keys"),
    ("limit_keys", ["a"] * 9, "/limit_keys"),
    ("idempotency_key", "", "/idempotency_key"),
    ("unique_key", " x", "/unique_key"),
    ("unique", "maybe", "/unique"),
    ("id", "x", "/id"),
    ("id", "01a1e32c-9236-40a0-8007-cb2475315829", "/id"),
    ("after", ["x"], "/after/0"),
    ("after", ["01a1e32c-9236-70a0-8007-cb2475315829"], "/after"),
    ("on_parent_failure", "cry", "/on_parent_failure"),
    ("tenant", "a b", "/tenant"),
    ("state", "succeeded", "/state"),
]


async def test_a_wrong_value_in_any_field_is_pointed_to(api: Api) -> None:
    for field, value, pointer in BAD_FIELDS:
        answer = await api.client.post(
            "/v1/jobs",
            content=json.dumps({"kind": "a"} | {field: value}).encode(),
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == 422, (field, value, answer.text)
        assert [flaw["pointer"] for flaw in problem(answer, 422, "invalid")["errors"]] == [pointer], (field, value)
    assert (await api.client.get("/v1/jobs")).json()["jobs"] == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/json", "content-encoding": "gzip"},
        {"content-type": "application/x-ndjson"},
    ],
)
async def test_a_wrong_content_type_is_refused(lone_api: Api, headers: dict[str, str]) -> None:
    answer = await lone_api.client.post("/v1/jobs", content=b'{"kind":"a"}', headers=headers)

    problem(answer, 415, "unsupported-media-type")


async def test_the_content_type_may_be_written_in_several_ways(lone_api: Api) -> None:
    for written in (
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF-8"',
    ):
        answer = await lone_api.client.post("/v1/jobs", content=b'{"kind":"a"}', headers={"content-type": written})
        assert answer.status_code == 202, written


@pytest.mark.parametrize("key", ["", "x" * 201, '""', "tab\there"])
async def test_a_bad_idempotency_key_is_refused(lone_api: Api, key: str) -> None:
    answer = await lone_api.client.post("/v1/jobs", json={"kind": "a"}, headers={"Idempotency-Key": key})

    assert problem(answer, 400, "bad-header")["errors"][0]["header"] == "Idempotency-Key"


async def test_too_many_jobs_in_a_batch_are_refused(lone_api: Api) -> None:
    many = b"[" + b",".join([b'{"kind":"a"}'] * 10_001) + b"]"
    headers = {"content-type": "application/json"}
    problem(await lone_api.client.post("/v1/jobs/batch", content=many, headers=headers), 413, "too-large")
    lines = b"\n".join([b'{"kind":"a"}'] * 10_001)
    headers = {"content-type": "application/x-ndjson"}
    problem(await lone_api.client.post("/v1/jobs/batch", content=lines, headers=headers), 413, "too-large")
