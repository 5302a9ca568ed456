"""The table of endpoints is the source of all: each is in the OpenAPI document and in the docs, and bears garbage."""

import re
from uuid import uuid4

import msgspec
import pytest

from tests.api.conftest import Api, problem
from tidewheel.model.problem import CODES
from tidewheel.observe.own_log import JsonFormatter
from tidewheel.server.access import is_loopback
from tidewheel.server.endpoint import Endpoint
from tidewheel.server.entrance import host_of
from tidewheel.server.openapi import openapi_of, plain_path
from tidewheel.server.table import ENDPOINTS

DOCUMENT = msgspec.json.decode(msgspec.json.encode(openapi_of(ENDPOINTS)))
GARBAGE = (
    b"\xff\xfe",
    b"{",
    b"null",
    b"[]",
    b"7",
    b'"x"',
    b'{"a":1,"a":2}',
    b'{"\xff":1}',
    b'{"where":7}',
    b'{"mode":"x"}',
)


def name_of(endpoint: Endpoint) -> str:
    return endpoint.name


def test_names_and_routes_are_unique() -> None:
    assert len({endpoint.name for endpoint in ENDPOINTS}) == len(ENDPOINTS)
    assert len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=name_of)
def test_every_endpoint_is_in_the_document_with_all_its_answers(endpoint: Endpoint) -> None:
    operation = DOCUMENT["paths"][plain_path(endpoint.path)][endpoint.method.lower()]

    assert operation["operationId"] == endpoint.name
    documented = set(operation["responses"])
    assert documented == {str(status) for status in endpoint.answers} | {
        str(CODES[code].status) for code in endpoint.codes
    }
    assert operation.get("x-action") == endpoint.action
    assert ("admin" in operation.get("x-roles", ())) == (endpoint.action is not None)
    assert bool(operation["security"]) == (endpoint.action is not None)
    assert ("requestBody" in operation) == (endpoint.body is not None)
    variables = re.findall(r"\{(\w+)\}", plain_path(endpoint.path))
    assert [one["name"] for one in operation["parameters"] if one["in"] == "path"] == variables


def test_every_reference_leads_to_something_and_nothing_is_superfluous() -> None:
    used = set(re.findall(r"#/components/schemas/(\w+)", str(DOCUMENT)))

    assert used == set(DOCUMENT["components"]["schemas"])


async def test_every_endpoint_answers_garbage_with_a_problem(api: Api) -> None:
    for endpoint in ENDPOINTS:
        path = re.sub(r"\{\w+:path\}", "%00", endpoint.path.replace("{id}", str(uuid4())))
        for content in GARBAGE if endpoint.body is not None else ():
            answer = await api.client.request(
                endpoint.method, path, content=content, headers={"content-type": "application/json"}
            )
            if content == b"[]" and endpoint.name == "submit_batch":
                continue
            assert answer.status_code in {CODES[code].status for code in endpoint.codes}, (endpoint.name, content)
            problem(answer, answer.status_code, answer.json()["code"])
            assert answer.json()["code"] in endpoint.codes
        strange = await api.client.request(endpoint.method, f"{path}?no_such_parameter=%00")
        found = problem(strange, 400, "bad-parameter")
        assert found["errors"] == [
            {"detail": "Object contains unknown field 'no_such_parameter'", "parameter": "no_such_parameter"}
        ]


async def test_what_is_not_there_is_told_so(lone_api: Api) -> None:
    for path in (
        "/v1",
        "/v1/jobs/",
        "/v1/jobs//",
        "/v2/jobs",
        "/v1/jobs/x/y/z",
        "/%00",
        "/..%2f..%2fetc/passwd",
    ):
        assert problem(await lone_api.client.get(path), 404, "not-found")["instance"]
    for method, path, allowed in (
        ("PATCH", "/v1/jobs", "POST, GET"),
        ("GET", "/v1/jobs/batch", "POST"),
        ("TRACE", "/livez", "GET"),
    ):
        answer = await lone_api.client.request(method, path)
        problem(answer, 405, "method-not-allowed")
        assert answer.headers["allow"] == allowed


async def test_probes_and_docs_are_open_and_load_nothing_from_outside(lone_api: Api) -> None:
    assert (await lone_api.client.get("/livez")).json() == {"status": "ok"}
    for path in ("/readyz", "/healthz"):
        assert (await lone_api.client.get(path)).json() == {"status": "ok"}
    assert (await lone_api.client.head("/livez")).status_code == 200
    assert (await lone_api.client.get("/openapi.json")).json() == DOCUMENT
    page = await lone_api.client.get("/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"<script|<link|<img|src=|@import|url\(|https?://", page.text)
    assert [endpoint.name for endpoint in ENDPOINTS if f'id="{endpoint.name}"' not in page.text] == []
    assert [code for code in CODES if f'<tr id="{code}"' not in page.text] == []


async def test_a_server_that_is_about_to_end_is_not_ready(lone_api: Api) -> None:
    lone_api.service.stopping.set()

    for path in ("/readyz", "/healthz"):
        problem(await lone_api.client.get(path), 503, "unavailable")
    assert (await lone_api.client.get("/livez")).status_code == 200


async def test_whoever_keeps_a_connection_to_a_server_that_is_about_to_end_is_told(lone_api: Api) -> None:
    job_id = await lone_api.submit()
    await lone_api.run(result=None, result_location=await lone_api.blobs.store_result(job_id, 1, '"large"'))
    paths = ("/livez", "/v1/jobs", "/v1/nothing", f"/v1/jobs/{job_id}/result")
    assert [(await lone_api.client.get(path)).headers.get("connection") for path in paths] == [None] * 4

    lone_api.service.stopping.set()

    assert [(await lone_api.client.get(path)).headers.get("connection") for path in paths] == ["close"] * 4


async def test_a_store_that_is_gone_is_told_with_503_and_without_its_secrets(lone_api: Api) -> None:
    await lone_api.store.close()

    for answer in (await lone_api.client.post("/v1/jobs", json={"kind": "a"}), await lone_api.client.get("/v1/jobs")):
        found = problem(answer, 503, "unavailable")
        assert answer.headers["retry-after"] == "1"
        assert "tide.db" not in found["detail"]


async def test_a_request_about_a_job_names_it_and_the_trace_that_it_came_in(
    lone_api: Api, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caplog.handler, "formatter", JsonFormatter({}))  # all tests share it
    trace = {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}
    with caplog.at_level("DEBUG", logger="tidewheel.access"):
        made = (await lone_api.client.post("/v1/jobs", json={"kind": "mail"}, headers=trace)).json()
        await lone_api.client.get(f"/v1/jobs/{made['id']}")
        await lone_api.client.get("/v1/jobs", headers={"traceparent": "nonsense"})
    submit, look, found = (msgspec.json.decode(line) for line in caplog.text.splitlines() if '"endpoint"' in line)

    assert (submit["job_id"], submit["kind"], submit["trace_id"]) == (made["id"], "mail", "a" * 32)
    assert (look["job_id"], look["endpoint"]) == (made["id"], "get_job")
    assert not {"job_id", "trace_id"} & found.keys()


async def test_a_request_is_a_line_of_the_log_without_its_query_or_its_grant(
    lone_api: Api, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("DEBUG", logger="tidewheel.access"):
        await lone_api.client.get("/livez")
        await lone_api.client.get("/v1/jobs?limit=a-secret")
        await lone_api.client.get("/v1/downloads/a-secret-grant")
    lines = [record for record in caplog.records if record.name == "tidewheel.access"]

    said = [(line.levelname, line.getMessage(), vars(line)["endpoint"], vars(line)["status"]) for line in lines]
    assert said == [
        ("DEBUG", "GET /livez", "live", 200),
        ("INFO", "GET /v1/jobs", "list_jobs", 400),
        ("INFO", "GET /v1/downloads/{grant}", "download", 403),
    ]
    assert "secret" not in caplog.text


async def test_request_ids_are_taken_over_if_they_are_sound(lone_api: Api) -> None:
    given = await lone_api.client.get("/livez", headers={"x-request-id": "abc-1"})
    unsound = await lone_api.client.get("/livez", headers={"x-request-id": "a b" * 100})

    assert given.headers["x-request-id"] == "abc-1"
    assert re.fullmatch("[0-9a-f]{24}", unsound.headers["x-request-id"])


@pytest.mark.parametrize(
    ("header", "value"), [("host", "evil.example"), ("host", ""), ("sec-fetch-site", "cross-site")]
)
async def test_without_keys_web_pages_of_others_are_not_answered(lone_api: Api, header: str, value: str) -> None:
    problem(await lone_api.client.get("/v1/jobs", headers={header: value}), 403, "forbidden")


def test_names_of_this_machine_are_known() -> None:
    hosts = ["localhost:80", "LOCALHOST", "127.0.0.1:8433", "127.9.9.9", "[::1]:80", "[::1]", "::1"]
    assert [host for host in hosts if not is_loopback(host_of(host))] == []
    others = ["", "example.com", "localhost.example.com", "10.0.0.1:80", "0.0.0.0", "[::]:80", "127.0.0.1.example.com"]
    assert [host for host in others if is_loopback(host_of(host))] == []
