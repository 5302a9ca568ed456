"""The port of a worker on which it shows its numbers: those of all its processes, also when one dies."""

import re
from collections.abc import Callable

import httpx
import psutil
import pytest

from tests.worker.running import Scene, Worker, until
from tidewheel.model.job import JobSpec, Options
from tidewheel.model.states import State
from tidewheel.observe.catalogue import CATALOGUE, GROUPS

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "2", "--metrics-port", "0")
OF_SERVERS = {metric.name for metric in dict(GROUPS)["Servers"]}


def address(worker: Worker) -> str:
    found = until(lambda: re.search(r"numbers at (http://\S+)/metrics", worker.said), "the port")
    assert isinstance(found, re.Match)
    return found[1]


def numbers(url: str) -> dict[str, float]:
    answer = httpx.get(f"{url}/metrics", timeout=30)
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    values = (line.rpartition(" ") for line in answer.text.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in values}


def seen(url: str, look: Callable[[dict[str, float]], bool]) -> dict[str, float]:
    """Return the numbers once they are as wanted: an outcome is stored a moment before it is counted."""
    found = until(lambda: numbers(url) if look(numbers(url)) else None, "the numbers")
    assert isinstance(found, dict)
    return found


def test_a_worker_shows_what_its_processes_did_and_forgets_nothing_when_one_dies(scene: Scene) -> None:
    worker = scene.workers[0]
    url = address(worker)
    assert scene.enqueue("add", 1, 2).result(timeout="1m") == 3
    assert scene.app.command(["sh", "-c", "echo hello"]).result(timeout="1m")["exit_code"] == 0
    scene.app.command(["false"], retry=1).wait(timeout="1m")

    found = seen(url, lambda now: now.get('tide_runs_total{kind="command",outcome="gave_up"}') == 1)
    assert found['tide_runs_total{kind="add",outcome="returned"}'] == 1
    assert found['tide_runs_total{kind="command",outcome="returned"}'] == 1
    assert found['tide_job_run_seconds_count{kind="command"}'] == 2
    assert found['tide_job_wait_seconds_count{queue="default"}'] == 3
    assert found['tide_slots{part="host",state="free"}'] == 2
    assert found['tide_slots{part="runner",state="free"}'] == 100
    assert found['tide_claims_total{result="some"}'] >= 3
    assert found["tide_claim_seconds_count"] >= 3
    assert found["tide_lease_lost_total"] == 0
    assert found['tide_log_lines_total{fate="stored"}'] >= 1
    assert found['tide_log_lines_total{fate="lost"}'] == 0
    assert found['tide_process_resident_memory_bytes{process="runner-0"}'] > 1e6
    assert found['tide_process_starts_total{process="runner-0"}'] == 1

    [runner] = [child for child in worker.children() if "tidewheel.cli.children.runner" in _words(child)]
    runner.kill()
    again = seen(url, lambda now: now['tide_process_starts_total{process="runner-0"}'] == 2)
    assert again['tide_runs_total{kind="add",outcome="returned"}'] == 1
    assert scene.enqueue("add", 1, 2).result(timeout="1m") == 3
    seen(url, lambda now: now['tide_runs_total{kind="add",outcome="returned"}'] == 2)


def test_the_port_names_every_metric_of_workers_and_answers_nothing_else(scene: Scene) -> None:
    url = address(scene.workers[0])
    until(lambda: httpx.get(f"{url}/readyz").status_code == 200, "all children")
    text = httpx.get(f"{url}/metrics").text

    assert set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE)) == CATALOGUE.keys() - OF_SERVERS
    assert httpx.get(f"{url}/livez").text == "ok\n"
    assert httpx.get(f"{url}/").status_code == 404
    assert httpx.post(f"{url}/metrics").status_code == 405
    assert url.startswith("http://127.0.0.1:")


def test_a_runner_whose_loop_a_task_holds_does_not_hold_the_page(scene: Scene) -> None:
    url = address(scene.workers[0])
    seen(url, lambda now: now['tide_slots{part="runner",state="free"}'] == 100)
    job = scene.enqueue("block", 3.0)
    until(lambda: job.info().state is State.RUNNING, "it to run")
    found = numbers(url)

    assert job.info().finished_at is None, "it was answered while the loop was held"
    assert found["tide_claim_seconds_count"] > 0, "with what the runner had said before"
    job.wait(timeout="1m")


def test_a_run_hands_on_the_span_of_its_submit_where_nobody_makes_spans(scene: Scene) -> None:
    span = f"00-{'a' * 32}-{'b' * 16}-01"
    options = Options(traceparent=span, tracestate="v=1")
    argv = ["sh", "-c", "echo $TRACEPARENT $TRACESTATE"]
    specs = [
        JobSpec(kind="command", args={"argv": argv}, options=options),
        JobSpec(kind="trace.plain", options=options),
        JobSpec(kind="trace.async", options=options),
        JobSpec(kind="trace.plain"),  # in the same process as the other, perhaps
    ]
    jobs = [scene.app.job(one.job_id) for one in scene.store(lambda store: store.submit(specs))]

    results = [job.result(timeout="1m") for job in jobs]
    assert results[0]["output"] == f"{span} v=1\n"
    assert results[1:] == [[span, span, "v=1"], span, [None, None, None]]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
