"""The workers in examples/ do what the worker protocol says, against a real `tide server`."""

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest

from tests.api.test_processes import tide
from tests.worker.running import until

pytestmark = [pytest.mark.slow, pytest.mark.chaos]
EXAMPLES = Path(__file__).parents[2] / "examples"


class Example(NamedTuple):
    """A worker, and what its kinds are called."""

    argv: tuple[str, ...]
    good: dict[str, Any]
    result: object
    said: str
    bad: str
    slow: str


NODE = Example(
    ("node", str(EXAMPLES / "node-worker/worker.mjs")),
    {"kind": "demo.add", "args": {"a": 2, "b": 40}},
    42,
    "adding 2 and 40",
    "demo.fail",
    "demo.slow",
)
BASH = Example(
    ("bash", str(EXAMPLES / "bash-worker/worker.sh"), str(EXAMPLES / "bash-worker/tasks")),
    {"kind": "shell.sum", "args": {"numbers": [1, 2, 39]}},
    42,
    "adding 1 2 39",
    "shell.fail",
    "shell.sleep",
)


@pytest.fixture(params=["node", "bash"])
def example(request: pytest.FixtureRequest) -> Example:
    wanted = ("node",) if request.param == "node" else ("bash", "curl", "awk")
    if missing := [name for name in wanted if shutil.which(name) is None]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    return NODE if request.param == "node" else BASH


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    words = ("server", "--port", "0", "--database", "sqlite:///jobs.db")
    with tide(tmp_path_factory.mktemp("examples"), "server", *words) as (_, found):
        yield found


@contextmanager
def running(example: Example, client: httpx.Client, log: Path, ttl: int = 6) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a worker in a session of its own, and end what is left of it."""
    environment = {**os.environ, "TIDE_URL": str(client.base_url).rstrip("/"), "TTL": str(ttl)}
    with log.open("wb") as said:
        process = subprocess.Popen(
            example.argv, env=environment, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            yield process
        except AssertionError as error:
            error.add_note(log.read_text())
            raise
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(30)


def submit(client: httpx.Client, kind: str, args: dict[str, Any] | None = None, **fields: Any) -> str:
    answer = client.post("/v1/jobs", json={"kind": kind, "args": args or {}, **fields})
    assert answer.status_code == 202, answer.text
    location: str = answer.json()["location"]
    return location


def ended(client: httpx.Client, location: str) -> dict[str, Any]:
    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(location).json()
        return job if job["finished_at"] else None

    job = until(look, "the end of the job", 60)
    assert isinstance(job, dict)
    return job


def starts(client: httpx.Client, location: str) -> None:
    until(lambda: client.get(location).json()["state"] == "running", "the start of the job", 60)


def test_jobs_succeed_with_result_and_lines_or_fail_with_an_error(
    example: Example, client: httpx.Client, tmp_path: Path
) -> None:
    good = submit(client, **example.good)
    secretive = submit(client, example.good["kind"], {"a": [{"$secret": "password"}]})
    bad = submit(client, example.bad, retry={"max_attempts": 2, "delay": 0, "cap": 0})
    with running(example, client, tmp_path / "log"):
        done, dead, refused = ended(client, good), ended(client, bad), ended(client, secretive)

    assert (done["state"], done["result"]) == ("succeeded", example.result)
    assert (dead["state"], dead["failures"]) == ("dead", 2)
    assert "no luck today" in dead["error"]["message"]
    assert (refused["state"], refused["token"], refused["error"]["reason"]) == ("dead", 1, "error")
    assert [line["text"] for line in client.get(f"{good}/logs").json()["lines"]] == [example.said]


def test_a_cancelled_job_is_stopped(example: Example, client: httpx.Client, tmp_path: Path) -> None:
    slow = submit(client, example.slow, {"seconds": 600})
    with running(example, client, tmp_path / "log"):
        starts(client, slow)
        assert client.post(f"{slow}/cancel").status_code == 202
        assert ended(client, slow)["state"] == "cancelled"


def test_a_worker_that_is_told_to_end_finishes_its_job_and_leaves(
    example: Example, client: httpx.Client, tmp_path: Path
) -> None:
    slow = submit(client, example.slow, {"seconds": 3})
    with running(example, client, tmp_path / "log") as process:
        starts(client, slow)
        process.send_signal(signal.SIGTERM)
        until(lambda: process.poll() is not None, "it to leave", 60)
        assert process.returncode == 0

    job = client.get(slow).json()
    assert job["state"] == "succeeded", (tmp_path / "log").read_text()
    workers = {worker["id"]: worker for worker in client.get("/v1/workers").json()["workers"]}
    assert workers[job["last_worker"]]["alive"] is False


@pytest.mark.proof
def test_the_job_of_a_killed_worker_runs_again_elsewhere(
    example: Example, client: httpx.Client, tmp_path: Path
) -> None:
    slow = submit(client, example.slow, {"seconds": 5})
    with running(example, client, tmp_path / "first", ttl=2) as process:
        starts(client, slow)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)
    with running(example, client, tmp_path / "second"):
        job = ended(client, slow)

    assert (job["state"], job["losses"], job["token"]) == ("succeeded", 1, 2)


@pytest.mark.proof
def test_a_worker_that_lost_its_lease_is_not_believed_and_begins_anew(
    example: Example, client: httpx.Client, tmp_path: Path
) -> None:
    slow, log = submit(client, example.slow, {"seconds": 3}), tmp_path / "log"
    with running(example, client, log, ttl=2) as process:
        starts(client, slow)
        os.killpg(process.pid, signal.SIGSTOP)
        until(lambda: client.get(slow).json()["losses"] == 1, "the job to be taken from it", 60)
        os.killpg(process.pid, signal.SIGCONT)
        job = ended(client, slow)

        assert (job["state"], job["token"], job["losses"]) == ("succeeded", 2, 1)
        assert "the lease is lost" in log.read_text() or ", stale" in log.read_text()
        assert log.read_text().count("registered as") == 2
        assert log.read_text().count("no beat") <= 1, "the others arrived"
    causes = [attempt["cause"] for attempt in client.get(f"{slow}/attempts").json()["attempts"]]
    assert causes == ["lost", "returned"]


def test_the_node_worker_brings_large_results_and_puts_those_of_parents_in(
    client: httpx.Client, tmp_path: Path
) -> None:
    if shutil.which("node") is None:
        pytest.skip("not installed: node")
    first = submit(client, "demo.text", {"length": 100_000})
    parent = first.rpartition("/")[2]
    second = submit(client, "demo.add", {"a": {"$result_of": parent}, "b": "y"}, after=[parent])
    with running(NODE, client, tmp_path / "log"):
        assert [ended(client, one)["state"] for one in (first, second)] == ["succeeded", "succeeded"]

    assert client.get(f"{first}/result").json() == "x" * 100_000
    assert client.get(f"{second}/result").json() == "x" * 100_000 + "y"
