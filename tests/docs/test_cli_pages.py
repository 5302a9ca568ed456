"""The pages about the command line say what it does."""

import json
import re
import shlex
import signal
from pathlib import Path

import pytest

from harness import cli_reference
from tests.cli.terminal import tide
from tests.worker.running import Worker
from tidewheel.cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
CRONTAB = "*/5 * * * * /opt/bin/poll\n@reboot /opt/bin/start\n"
BEAT = {"nightly": {"task": "shop.report", "schedule": {"hour": "5", "minute": "0"}}}


def test_the_reference_is_what_the_commands_say() -> None:
    page = cli_reference.PAGE.read_text()
    assert page == cli_reference.page(), "run `make reference`"
    assert all(f"\n## tide {name}\n" in page for name in COMMANDS)


def test_what_the_page_about_importing_says_works(tmp_path: Path) -> None:
    (tmp_path / "jobs.cron").write_text(CRONTAB)
    (tmp_path / "system.cron").write_text("17 * * * * root run-parts /etc/cron.hourly\n")
    (tmp_path / "beat.json").write_text(json.dumps(BEAT))
    page = (ROOT / "docs/how-to/import-from-cron.md").read_text()
    lines = [line for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    commands = [shlex.split(line)[1:] for line in lines if line.startswith("tide ")]
    assert len(commands) > 5
    for words in commands:
        done = tide(tmp_path, *words)
        assert done.returncode == 0, (words, done.stderr)
    schedules = json.loads(tide(tmp_path, "schedule", "list", "-o", "json").stdout)
    assert [(each["name"], each["overlap"]) for each in schedules] == [("poll", "queue"), ("nightly", "skip")]


@pytest.mark.parametrize("page", ["dead-letters", "limit-and-rate"])
def test_the_commands_on_a_page_about_flow_are_those_that_there_are(tmp_path: Path, page: str) -> None:
    """What they do is tested elsewhere; here nothing is dead, so that the one that names a letter finds none."""
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    lines = [line for block in re.findall(r"```console\n(.*?)```", text, re.DOTALL) for line in block.splitlines()]
    assert len(lines) >= 3
    for words in (shlex.split(line)[1:] for line in lines):
        done = tide(tmp_path, *words)
        found = "no job" not in done.stderr
        assert (done.returncode == 0) == found == (words[:2] != ["dlq", "retry"]), (words, done.stderr)


def test_the_first_five_minutes_of_the_readme_go_as_it_says(tmp_path: Path) -> None:
    page = (ROOT / "README.md").read_text().partition("## The first five minutes")[2].partition("\n## ")[0]
    lines = [line for block in re.findall(r"```console\n(.*?)```", page, re.DOTALL) for line in block.splitlines()]
    commands = [shlex.split(line, comments=True)[1:] for line in lines if line.startswith("tide ")]
    assert commands.pop(0) == ["demo"]
    demo = Worker(["demo", "--port", "0"], tmp_path / "log", cwd=tmp_path).ready()
    try:
        told = {}
        for words in commands:
            done = tide(tmp_path, *words, TIDE_DATABASE="sqlite:///tidewheel-demo.db")
            assert done.returncode == 0, (words, done.stderr)
            told[" ".join(words[:2])] = done.stdout
        demo.tell(signal.SIGINT)
        assert demo.gone() == 0, demo.said
    finally:
        demo.kill()
    assert "shop.charge" in told["job list"]
    assert "shop-heartbeat" in told["schedule list"]
    assert "is open" in told["gate open"]
    assert "07:00:00+0" in told["schedule preview"]
