"""The commands around a worker: submit and wait, up in a fresh folder, and what they say to bad input."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests import command
from tests.worker.running import ROOT, Scene, Worker, until

pytestmark = pytest.mark.slow
OPTIONS = ("--slots", "2")


def tide(*words: str, cwd: Path = ROOT) -> "subprocess.CompletedProcess[str]":
    return command.tide(cwd, *words, PYTHONPATH=str(ROOT))


def test_submit_waits_prints_both_streams_and_ends_with_one_if_the_command_failed(scene: Scene) -> None:
    script = "echo out; echo err >&2; exit 3"

    done = tide("submit", "--database", scene.database, "--wait", "--attempts", "1", "--", "sh", "-c", script)

    assert (done.returncode, done.stdout) == (1, "out\n")
    lines = done.stderr.splitlines()
    assert lines[1] == "err"
    assert lines[2] == f"tide: job {lines[0]} is dead: exit code 3"


def test_up_in_a_fresh_folder_runs_what_is_submitted_beside_it(tmp_path: Path) -> None:
    up = Worker(["up", "--slots", "1", "--port", "0"], tmp_path / "log", cwd=tmp_path).ready()
    try:
        done = tide("submit", "--wait", "--", "echo", "hello", cwd=tmp_path)

        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
        up.tell(signal.SIGINT)
        assert up.gone() == 0, up.said
    finally:
        up.kill()


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--app", "no.such.module:app"], "app: there is no module no"),
        (["--app", "tests.worker.running_app:nothing"], "app: tests.worker.running_app has no attribute nothing"),
        (["--app", "tests.worker.running_app:ROOT.x"], "has no attribute"),
        (["--app", "tests.worker.running_app:PATIENCE"], "is not an app, but of type float"),
        (["--app", "gibberish"], "must be written like package.module:attribute"),
        (["--app", "broken_app:app"], "importing broken_app failed: ZeroDivisionError: division by zero"),
        (["--slots", "-1"], "--slots"),
        (["--inline", "0", "--slots", "0"], "a worker without runners and without slots runs nothing"),
        (["--lease", "1s"], "lease: must be between 2 s and 1 h, not 1 s"),
        (["--lease", "soon"], "lease: must be a duration"),
        (["--grace", "-5s"], "grace"),
        (["--queue", "no spaces\n"], "queues"),
        (["--queue", ""], "queues"),
        (["--label", "zone"], "label: must be name=value"),
        (["--label", "a b=c"], "label"),
        (["--resource", "gpu=many"], "resource: gpu must be a number"),
        (["--env", "=x"], "env"),
        (["--name", "a\x1bb"], "name"),
        (["--database", "mysql://x"], "database: must be sqlite:///"),
        (["--database", "sqlite:////no/such/folder/tide.db"], "no/such/folder"),
        (["--database", "postgresql://nobody@127.0.0.1:1/none"], "PostgreSQL cannot be reached"),
        (["--blobs", "ftp://x"], "blobs: must be file:///folder"),
        (["--metrics-port", "70000"], "--metrics-port"),
        (
            ["--metrics-port", "0", "--metrics-host", "no.such.host.invalid"],
            "metrics-port: no.such.host.invalid port 0",
        ),
        (["--log-format", "xml"], "log-format: must be text or json, not 'xml'"),
        (["--log-level", "loud"], "log-level: must be debug, info, warning or error"),
        (["--otel-endpoint", "collector:4317"], "otel-endpoint: must be the http:// or https:// address"),
    ],
    ids=lambda value: " ".join(value).encode("unicode_escape").decode() if isinstance(value, list) else "",
)
def test_bad_input_of_a_worker_is_told_in_one_line(tmp_path: Path, words: list[str], why: str) -> None:
    (tmp_path / "broken_app.py").write_text("1 / 0\n")
    database = [] if "--database" in words else ["--database", f"sqlite:///{tmp_path}/tide.db"]

    done = tide("worker", *database, *words, cwd=tmp_path)

    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert why in done.stderr
    told = [line for line in done.stderr.splitlines() if line.startswith("tide: ")]
    assert len(told) == 1


def test_a_worker_ends_when_it_is_told_to_before_it_has_begun(tmp_path: Path) -> None:
    slow = tmp_path / "slow_app.py"
    slow.write_text("import time\ntime.sleep(60)\n")
    words = ["worker", "--app", "slow_app:app", "--database", f"sqlite:///{tmp_path}/tide.db"]
    worker = Worker(words, tmp_path / "log", cwd=tmp_path)
    try:
        until(lambda: len(worker.children()) == 1, "the app to be loaded")
        worker.tell(signal.SIGTERM)

        assert worker.gone() == 0, worker.said
    finally:
        worker.kill()
