"""`tide server` and `tide up` as a user runs them."""

import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests import command
from tests.api.conftest import CLOCK, make_certificate
from tests.worker.running import Worker, until

pytestmark = pytest.mark.slow
COMMAND = {"kind": "command", "args": {"argv": ["echo", "hello"]}}


@contextmanager
def tide(folder: Path, name: str, *words: str) -> Iterator[tuple[Worker, httpx.Client]]:
    """Run a command that serves, with a client; at the end it must stop cleanly and leave nothing."""
    process = Worker(words, folder / f"{name}.log", cwd=folder)
    try:
        found = until(
            lambda: re.search(r"answers at (https?://\S+)", process.said) or process.popen.poll() is not None,
            "a server",
        )
        assert isinstance(found, re.Match), process.said
        with httpx.Client(base_url=found[1], timeout=60, verify=False) as client:
            yield process, client
        if process.popen.poll() is None:
            process.stop()
    finally:
        process.kill()


def test_up_serves_runs_and_keeps_with_one_command_and_stops_cleanly(tmp_path: Path) -> None:
    with tide(tmp_path, "up", "up", "--slots", "1", "--port", "0") as (up, client):
        done = client.post("/v1/jobs", json=COMMAND, headers={"Prefer": "wait=50"})

        assert (done.status_code, done.json()["job"]["state"]) == (200, "succeeded"), done.text
        lines = client.get(done.json()["location"] + "/logs").json()["lines"]
        assert [line["text"] for line in lines if line["stream"] == "stdout"] == ["hello"]
        assert "docs: http://127.0.0.1:" in up.said
        until(lambda: client.get("/v1/queues").json()["as_of"], "the keeper's census")


def test_several_processes_share_a_port_and_one_that_dies_is_started_again(tmp_path: Path) -> None:
    words = ("server", "--port", "0", "--workers", "2", "--no-keeper", "--database", "sqlite:///jobs.db")
    with tide(tmp_path, "server", *words) as (server, client):
        until(lambda: len(server.children()) == 2, "both")
        first = {child.pid for child in server.children()}
        ids = {client.post("/v1/jobs", json=COMMAND).json()["id"] for _ in range(10)}
        for _ in range(12):
            httpx.get(f"{client.base_url}/livez", timeout=60)  # each by a connection of its own
        pages = [httpx.get(f"{client.base_url}/metrics", timeout=60).text for _ in range(4)]
        assert [page.count('tide_http_requests_total{endpoint="live",status="200"} 12\n') for page in pages] == [1] * 4
        assert 'tide_process_resident_memory_bytes{process="server-1"}' in pages[0]
        server.children()[0].kill()

        until(lambda: len({child.pid for child in server.children()} - first) == 1, "another one")
        with httpx.Client(base_url=client.base_url, timeout=60, verify=False) as other:
            until(lambda: _is_live(other), "an answer")
            found = {job["id"] for job in other.get("/v1/jobs").json()["jobs"]}

    assert found == ids


def test_servers_side_by_side_on_postgresql_see_the_same_jobs_and_keys(tmp_path: Path, postgres_database: str) -> None:
    words = ("server", "--port", "0", "--no-keeper", "--database", postgres_database)
    with tide(tmp_path, "one", *words) as (_, one), tide(tmp_path, "two", *words) as (_, two):
        headers = {"idempotency-key": "once"}
        first = one.post("/v1/jobs", json=COMMAND, headers=headers)
        again = two.post("/v1/jobs", json=COMMAND, headers=headers)

        assert (first.status_code, again.status_code) == (202, 200)
        assert two.get(first.headers["location"]).json()["id"] == again.json()["id"]
        page = one.get("/v1/jobs?limit=1&kind=command").json()
        rest = two.get("/v1/jobs", params={"kind": "command", "cursor": page["next_cursor"]})
        assert rest.json()["jobs"] == []

        root = one.post("/v1/keys", json={"name": "root", "role": "admin", "all_tenants": True}).json()
        own = {"authorization": f"Bearer {root['key']}"}
        made = one.post("/v1/keys", json={"name": "grafana", "role": "viewer"}, headers=own).json()
        key = {"authorization": f"Bearer {made['key']}"}
        assert two.get("/v1/jobs", headers=key).status_code == 200
        assert one.delete(f"/v1/keys/{made['id']}", headers=own).status_code == 200
        latest = CLOCK.monotonic() + 1.5  # a second, and the time of an answer
        while two.get("/v1/jobs", headers=key).status_code != 401:
            assert CLOCK.monotonic() < latest, "what one server revokes opens nothing at the other a second later"


def test_a_request_under_way_is_answered_before_the_server_ends(tmp_path: Path) -> None:
    words = ("server", "--port", "0", "--no-keeper", "--database", "sqlite:///jobs.db")
    with tide(tmp_path, "server", *words) as (server, client):
        location = client.post("/v1/jobs", json=COMMAND).headers["location"]
        with client.stream("GET", f"{location}/events") as answer:
            lines = answer.iter_lines()
            assert next(lines) == ": hello"
            server.tell(signal.SIGTERM)
            rest = list(lines)

        assert "event: state" in rest
        assert server.gone() == 0, server.said


def test_a_server_that_asks_for_keys_shows_the_first_one_once_and_speaks_https(tmp_path: Path) -> None:
    certificate = make_certificate(tmp_path)
    place = (
        "--port",
        "0",
        "--host",
        "127.0.0.2",
        "--tls-cert",
        str(certificate.chain),
        "--tls-key",
        str(certificate.key),
    )
    words = ("server", "--auth", "required", "--no-keeper", "--key-rate", "100", *place)
    with tide(tmp_path, "one", *words) as (server, client):
        [text] = re.findall(r"^tide_\S+$", server.said, re.MULTILINE)
        assert (client.base_url.scheme, client.get("/v1/jobs").status_code) == ("https", 401)
        answer = client.get("/v1/jobs", headers={"authorization": f"Bearer {text}"})
        assert (answer.status_code, answer.headers["ratelimit-policy"]) == (200, '"key";q=200;w=2')
    with tide(tmp_path, "two", *words) as (server, client):
        assert "tide_" not in server.said
        assert client.get("/v1/jobs", headers={"authorization": f"Bearer {text}"}).status_code == 200


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--host", "0.0.0.0", "--auth", "off"), "auth: cannot be off while the server is bound to 0.0.0.0"),
        (("--auth", "perhaps"), "--auth"),
        (("--tls-key", "key.pem"), "tls-cert: must be named together"),
        (("--host", "no.such.host.invalid"), "host: 'no.such.host.invalid' is no address"),
        (("--port", "70000"), "--port"),
        (("--workers", "0"), "--workers"),
        (("--database", "mysql://x"), "database: must be sqlite:///"),
        (("--blobs", "ftp://x"), "blobs: must be file:///folder"),
    ],
)
def test_bad_input_of_a_server_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    done = command.tide(tmp_path, "server", "--port", "0", *words)

    assert done.returncode in (2, 3)
    assert "Traceback" not in done.stderr
    assert why in done.stderr


def _is_live(client: httpx.Client) -> bool:
    try:
        return client.get("/livez").status_code == 200
    except httpx.TransportError:
        return False
