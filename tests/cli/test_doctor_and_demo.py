"""`tide doctor` and `tide demo`."""

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import TIDE, surroundings, tide
from tests.worker.running import until
from tidewheel.cli import doctor


def findings(folder: Path, code: int, *words: str) -> dict[str, dict[str, Any]]:
    done = tide(folder, "doctor", "-o", "json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return {finding["what"]: finding for finding in json.loads(done.stdout)}


def test_a_healthy_place_is_found_healthy(tmp_path: Path) -> None:
    tide(tmp_path, "db", "upgrade")
    found = findings(tmp_path, 0)
    assert {name: found[name]["health"] for name in ("program", "database", "clock", "workers", "blobs")} == {
        "program": "good",
        "database": "good",
        "clock": "good",
        "workers": "warning",
        "blobs": "good",
    }
    assert "isolation: landlock" in found
    assert found[f"disk: {tmp_path}"]["health"] == "good"


def test_what_is_bad_is_said_with_what_to_do_and_an_exit_code(tmp_path: Path) -> None:
    found = findings(tmp_path, 1, "--blobs", "file:///proc/nowhere")
    assert (found["database"]["health"], found["blobs"]["health"]) == ("bad", "bad")
    assert "`tide db upgrade` makes it" in found["database"]["found"]
    assert not (tmp_path / "jobs.db").exists()


def test_a_full_disk_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tide(tmp_path, "db", "upgrade")
    monkeypatch.setattr(doctor, "NO_ROOM", 2**70)
    assert findings(tmp_path, 1)[f"disk: {tmp_path}"]["found"].endswith("GiB free: make room")


def test_the_demo_fills_a_store_with_one_of_everything(tmp_path: Path) -> None:
    done = tide(tmp_path, "demo", "--no-run")
    assert (done.returncode, "Run it by: tide worker --app" in done.stdout) == (0, True)
    jobs = json.loads(tide(tmp_path, "job", "list", "--limit", "1000", "-o", "json").stdout)
    assert {job["state"] for job in jobs} == {"queued", "blocked"}
    assert {job["priority"] for job in jobs} == {0, 1, 2}
    [gate] = json.loads(tide(tmp_path, "gate", "list", "-o", "json").stdout)
    assert gate["kind"] == "shop.newsletter"


def test_the_demo_moves(tmp_path: Path) -> None:
    words = [str(TIDE), "demo", "--port", "0"]
    with subprocess.Popen(words, cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: {"succeeded", "dead"} <= _states(tmp_path), "jobs to end well and badly", 60)
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1]) == (0, "stopped")
    schedules = json.loads(tide(tmp_path, "schedule", "list", "-o", "json").stdout)
    assert {"shop-heartbeat", "shop-nightly-report"} <= {schedule["name"] for schedule in schedules}


def _states(folder: Path) -> set[str]:
    if not (folder / "jobs.db").exists():
        return set()
    return {job["state"] for job in json.loads(tide(folder, "job", "list", "-o", "json").stdout)}
