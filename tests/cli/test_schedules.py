"""`tide schedule`."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import tide


def answer(folder: Path, *words: str) -> Any:
    done = tide(folder, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def nightly(tmp_path: Path) -> Path:
    words = ("nightly", "--cron", "30 2 * * *", "--timezone", "Europe/Paris", "--overlap", "queue", "--misfire", "all")
    done = tide(tmp_path, "schedule", "add", *words, "--priority", "low", "--", "backup.sh", "all")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_a_schedule_is_made_and_shown(nightly: Path) -> None:
    shown = answer(nightly, "schedule", "show", "nightly")
    assert (shown["kind"], shown["args"], shown["priority"]) == ("command", {"argv": ["backup.sh", "all"]}, 2)
    assert (shown["overlap"], shown["misfire"]["policy"], shown["occurrences"]) == ("queue", "all", [])
    text = tide(nightly, "schedule", "show", "nightly").stdout
    assert "At 02:30 every day (Europe/Paris)" in text
    assert [line.split()[0] for line in tide(nightly, "schedule", "list").stdout.splitlines()] == ["name", "nightly"]


def test_coming_times_are_previewed_also_of_what_is_not_made_yet(nightly: Path) -> None:
    assert len(answer(nightly, "schedule", "preview", "nightly", "--count", "3")) == 3
    words = ("--cron", "30 2 29 3 *", "--timezone", "Europe/Paris", "--count", "12")
    coming = answer(nightly, "schedule", "preview", *words)
    assert len(coming) == 12
    assert any("clocks go forward" in each.get("note", "") for each in coming)
    [first] = answer(nightly, "schedule", "preview", "--every", "10m", "--count", "1")
    assert first["fire_at"].endswith("0:00Z")


def test_a_schedule_is_changed_paused_resumed_triggered_and_removed(nightly: Path) -> None:
    changed = answer(nightly, "schedule", "edit", "nightly", "--rename", "hourly", "--every", "1h")
    assert (changed["name"], changed["version"], changed["args"]["argv"]) == ("hourly", 2, ["backup.sh", "all"])
    other = tide(nightly, "schedule", "edit", "hourly", "-o", "json", "--", "other.sh")
    assert json.loads(other.stdout)["args"]["argv"] == ["other.sh"]
    assert answer(nightly, "schedule", "pause", "hourly")["paused"] is True
    job = tide(nightly, "schedule", "trigger", "hourly").stdout.strip()
    assert [each["id"] for each in answer(nightly, "job", "list")] == [job]
    assert [each["job_id"] for each in answer(nightly, "schedule", "show", "hourly")["occurrences"]] == [job]
    assert answer(nightly, "schedule", "resume", "hourly")["paused"] is False
    asked = tide(nightly, "schedule", "delete", "hourly")
    assert (asked.returncode, asked.stderr) == (
        2,
        "tide: yes: 1 schedule would be removed: hourly; add --yes to do it\n",
    )
    assert tide(nightly, "schedule", "delete", "hourly", "--yes").stdout == "hourly is removed\n"
    assert answer(nightly, "schedule", "list") == []


def test_a_backfill_is_counted_before_it_runs(nightly: Path) -> None:
    span = ("nightly", "--since", "2026-01-01T00:00:00Z", "--until", "2026-01-04T00:00:00Z")
    assert len(answer(nightly, "schedule", "backfill", *span, "--dry-run")) == 3
    asked = tide(nightly, "schedule", "backfill", *span)
    assert (asked.returncode, asked.stderr) == (2, "tide: yes: 3 occurrences would run; add --yes to do it\n")
    assert answer(nightly, "job", "list") == []
    assert len(answer(nightly, "schedule", "backfill", *span, "--yes", "--spacing", "10s")) == 3
    assert len(answer(nightly, "job", "list")) == 3


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (("add", "x", "--cron", "0 5 * *", "--", "ls"), 2, "cron: has 4 fields"),
        (("add", "x", "--", "ls"), 2, "cron: or every or at must be given"),
        (("add", "x", "--every", "1h"), 2, "argv: must name a program"),
        (("add", "x", "--every", "1h", "--overlap", "skpi", "--", "ls"), 2, "overlap: must be one of "),
        (("add", "x", "--every", "1h", "--misfire", "none", "--", "ls"), 2, "misfire: must be one of latest, all"),
        (("add", "x", "--at", "2030-13-01", "--", "ls"), 2, "at: must be a date and time"),
        (("add", "nightly", "--every", "1h", "--", "ls"), 1, "there is a schedule named 'nightly' already"),
        (("preview", "--cron", "*/5 * * *"), 2, "cron: has 4 fields"),
        (("preview",), 2, "name: name a schedule, or give --cron or --every"),
        (("show", "nigthly"), 1, "no schedule nigthly; did you mean nightly?"),
        (("edit", "nightly", "--queue", "mail"), 2, "argv: must name a program"),
        (("backfill", "nightly", "--since", "now"), 2, "since: must be a date and time"),
        (("shwo", "nightly"), 2, "no such command 'shwo'. Did you mean 'show'? (see `tide schedule --help`)"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(nightly: Path, words: tuple[str, ...], code: int, why: str) -> None:
    wrong = tide(nightly, "schedule", *words)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (code, "", 1), wrong.stderr
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr
