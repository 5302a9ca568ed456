"""`tide doctor` and `tide demo`."""

import json
import re
import signal
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import TIDE, surroundings, tide
from tests.cli.test_servers import served  # noqa: F401 - a fixture
from tests.worker.running import until
from tidewheel.cli import doctor
from tidewheel.clock import SystemClock

OWN = ("--database", "sqlite:///tidewheel-demo.db")


def findings(folder: Path, code: int, *words: str) -> dict[str, dict[str, Any]]:
    done = tide(folder, "doctor", "-o", "json", *words)
    assert done.returncode == code, done.stdout + done.stderr
    return {finding["what"]: finding for finding in json.loads(done.stdout)}


def test_a_healthy_place_is_found_healthy(tmp_path: Path) -> None:
    tide(tmp_path, "db", "upgrade")
    found = findings(tmp_path, 0)
    looked = ("program", "settings", "database", "clock", "workers", "blobs")
    assert {name: found[name]["health"] for name in looked} == {
        "program": "good",
        "settings": "good",
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


def told_of_settings(folder: Path, **environment: str) -> list[tuple[str, str]]:
    done = tide(folder, "doctor", "-o", "json", **environment)
    assert "Traceback" not in done.stderr
    found = [finding for finding in json.loads(done.stdout) if finding["what"] == "settings"]
    return [(finding["health"], finding["found"]) for finding in found]


def test_settings_that_are_wrong_or_contradict_one_another_are_found(tmp_path: Path) -> None:
    tide(tmp_path, "db", "upgrade")
    [(_, good)] = told_of_settings(tmp_path)
    assert "1 are not as by default (no file)" in good
    file = tmp_path / "tidewheel.toml"
    for text, why in (
        ('tls_cert = "a.pem"', "tls-key: must be named together with the other of the two files"),
        ("key_burst = 3", "key-burst: is for a server with a --key-rate"),
        ('auth = "off"\nhost = "0.0.0.0"', "auth: cannot be off while the server is bound to 0.0.0.0"),
        ('replica = "postgresql://a/b"', "replica: is for a database on PostgreSQL, and the database is none"),
        ('lease = "1s"', "lease: must be between 2 s and 1 h"),
        ('secrets = "nowhere"', "secrets: there is no folder nowhere"),
        ('log_level = "loud"', "log-level: must be"),
        ('keep = ["dead=for ever"]', "keep: "),
        ("databse = 1", "did you mean database?"),
        ("= nonsense", "config: "),
    ):
        file.write_text(text)
        [(health, found)] = told_of_settings(tmp_path)
        assert (health, why in found) == ("bad", True), found
    file.unlink()
    assert ("bad", "TIDE_WORKERS: 'many' is no value of workers") in told_of_settings(tmp_path, TIDE_WORKERS="many")
    assert ("bad", "TIDE_PROT: is no setting; did you mean TIDE_PORT?") in told_of_settings(tmp_path, TIDE_PROT="1")
    assert ("warning", "TIDE_SHOES is no setting, and is not heeded") in told_of_settings(tmp_path, TIDE_SHOES="1")


@pytest.mark.parametrize("far", [timedelta(seconds=7), timedelta(seconds=-7)], ids=["ahead", "behind"])
def test_a_clock_that_is_far_from_the_databases_is_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, far: timedelta
) -> None:
    tide(tmp_path, "db", "upgrade")

    class OtherClock(SystemClock):
        def now(self) -> datetime:
            return super().now() - far

    monkeypatch.setattr(doctor, "SystemClock", OtherClock)
    clock = findings(tmp_path, 0)["clock"]
    word = "ahead" if far > timedelta(0) else "behind"
    assert clock["health"] == "warning"
    assert re.fullmatch(rf"that of the database is [67]\.\d+ s {word}; let NTP set both", clock["found"]), clock


def test_through_a_server_its_clock_and_its_blobs_are_looked_at(
    served: tuple[Path, str, str],  # noqa: F811 - the fixture
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _, url, key = served
    place = {"TIDE_URL": url, "TIDE_KEY": key}
    found = {each["what"]: each for each in json.loads(tide(tmp_path, "doctor", "-o", "json", **place).stdout)}
    assert {name: found[name]["health"] for name in ("server", "clock", "blobs")} == dict.fromkeys(
        ("server", "clock", "blobs"), "good"
    )
    monkeypatch.setattr(doctor, "LARGE_OFFSET", -1.0)
    far = {each["what"]: each for each in json.loads(tide(tmp_path, "doctor", "-o", "json", **place).stdout)}
    assert "let NTP set both" in far["clock"]["found"]


def test_the_demo_fills_a_store_with_one_of_everything(tmp_path: Path) -> None:
    (tmp_path / "tidewheel.toml").write_text('database = "sqlite:///jobs.db"\n')
    done = tide(tmp_path, "demo", "--no-run")
    assert (done.returncode, "Run it by: tide worker --app" in done.stdout) == (0, True)
    assert not (tmp_path / "jobs.db").exists(), "it has a file of its own, whatever the settings say"
    jobs = json.loads(tide(tmp_path, "job", "list", "--limit", "1000", "-o", "json", *OWN).stdout)
    assert {job["state"] for job in jobs} == {"queued", "blocked"}
    assert {job["priority"] for job in jobs} == {0, 1, 2}
    [gate] = json.loads(tide(tmp_path, "gate", "list", "-o", "json", *OWN).stdout)
    assert gate["kind"] == "shop.newsletter"


def test_the_demo_leaves_a_store_alone_that_holds_other_jobs(tmp_path: Path) -> None:
    tide(tmp_path, "submit", "--", "ls")
    refused = tide(tmp_path, "demo", "--no-run", "--database", "sqlite:///jobs.db")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert "database: sqlite:///jobs.db holds other jobs than the example's" in refused.stderr
    assert len(json.loads(tide(tmp_path, "job", "list", "-o", "json").stdout)) == 1
    for _ in range(2):  # one of its own it fills again
        filled = tide(tmp_path, "demo", "--no-run", "--database", "sqlite:///another.db")
        assert filled.returncode == 0, filled.stderr


def test_the_demo_moves(tmp_path: Path) -> None:
    words = [str(TIDE), "demo", "--port", "0"]
    with subprocess.Popen(words, cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE, text=True) as process:
        try:
            until(lambda: {"succeeded", "dead"} <= _states(tmp_path), "jobs to end well and badly", 60)
        finally:
            process.send_signal(signal.SIGINT)
            out, _ = process.communicate(timeout=60)
    assert (process.returncode, out.splitlines()[-1]) == (0, "stopped")
    schedules = json.loads(tide(tmp_path, "schedule", "list", "-o", "json", *OWN).stdout)
    assert {"shop-heartbeat", "shop-nightly-report"} <= {schedule["name"] for schedule in schedules}


def _states(folder: Path) -> set[str]:
    if not (folder / "tidewheel-demo.db").exists():
        return set()
    return {job["state"] for job in json.loads(tide(folder, "job", "list", "-o", "json", *OWN).stdout)}
