"""`tide import`: crontabs and Celery's beat."""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import tide
from tidewheel.cli.foreign.celery_beat import read_beat
from tidewheel.cli.foreign.crontab import read_crontab
from tidewheel.errors import Invalid

CRONTAB = r"""
# m h dom mon dow command
SHELL=/bin/bash
PATH="/usr/local/bin:/usr/bin"
MAILTO=ops@example.com

*/5 * * * *   /opt/bin/poll --fast
30 2 * * 1-5  cd /srv && nice -n 10 ./backup.sh >> /var/log/backup.log 2>&1
CRON_TZ=Europe/Paris
@daily        mail -s "100\% done" ada@example.com%Dear Ada,%all is well.
@reboot       /opt/bin/poll
"""


def test_lines_of_a_crontab_are_read_as_cron_does() -> None:
    poll, backup, mail, reboot = read_crontab(CRONTAB, timezone="UTC")
    environment = {"PATH": "/usr/local/bin:/usr/bin"}
    assert poll.args == {"argv": ["/bin/bash", "-c", "/opt/bin/poll --fast"], "env": environment}
    assert (poll.name, poll.when) == ("poll", {"cron": "*/5 * * * *", "timezone": "UTC"})
    assert (backup.name, backup.source) == ("backup.sh", "line 8")
    assert backup.args["argv"][2] == "cd /srv && nice -n 10 ./backup.sh >> /var/log/backup.log 2>&1"
    assert mail.args["argv"][2] == 'mail -s "100% done" ada@example.com'
    assert mail.args["stdin"] == "Dear Ada,\nall is well.\n"
    assert mail.when == {"cron": "@daily", "timezone": "Europe/Paris"}
    assert (reboot.name, "@reboot has no counterpart" in reboot.note) == ("poll-2", True)


def test_a_crontab_of_the_system_has_a_column_for_the_user() -> None:
    [entry] = read_crontab("17 * * * *  root  run-parts /etc/cron.hourly", timezone="UTC", system=True)
    assert entry.args["argv"] == ["/bin/sh", "-c", "run-parts /etc/cron.hourly"]


def test_a_crontab_becomes_schedules_after_they_were_shown(tmp_path: Path) -> None:
    (tmp_path / "tab").write_text(CRONTAB)
    shown = tide(tmp_path, "import", "crontab", "tab", "--dry-run")
    assert (shown.returncode, shown.stdout.count("would be made")) == (0, 3)
    assert shown.stderr == "tide: 1 of 4 cannot be taken over; see their outcome\n"
    assert json.loads(tide(tmp_path, "schedule", "list", "-o", "json").stdout) == []
    asked = tide(tmp_path, "import", "crontab", "tab")
    assert (asked.returncode, asked.stderr) == (2, "tide: yes: 3 schedules would be made; add --yes to do it\n")
    made = tide(tmp_path, "import", "crontab", "tab", "--yes", "--timezone", "Asia/Tokyo")
    assert (made.returncode, made.stdout.count("  made\n")) == (0, 3)
    schedules = json.loads(tide(tmp_path, "schedule", "list", "-o", "json").stdout)
    assert [(each["name"], each["overlap"], each["misfire"]["policy"]) for each in schedules] == [
        ("poll", "allow", "skip"),
        ("backup.sh", "allow", "skip"),
        ("mail", "allow", "skip"),
    ]
    assert schedules[0]["trigger"]["rule"]["zone"] == "Asia/Tokyo"
    assert schedules[0]["retry"]["max_attempts"] == 1
    again = tide(tmp_path, "import", "crontab", "tab", "--yes")
    assert again.stdout.count("was there already") == 3


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "file: has no line of a crontab"),
        ("# only a comment\nA=b\n", "file: has no line of a crontab"),
        ("def main():\n    pass\n", "file: line 1 is none of a crontab: 'def main():' should be five fields"),
        ("0 5 * * *\n", "file: line 1 is none of a crontab: '0 5 * * *' should be five fields and a command"),
        ("0 5 * * * ls\n61 5 * * * ls\n", "file: line 2 is none of a crontab: "),
        ("@often ls\n", "file: line 1 is none of a crontab: "),
        ("\0\1\2", "file: line 1 is no text"),
    ],
)
def test_a_file_that_is_no_crontab_is_told_in_one_line_and_nothing_is_made(tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "tab").write_text(text)
    wrong = tide(tmp_path, "import", "crontab", "tab", "--yes")
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr
    assert not (tmp_path / "jobs.db").exists()


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff\xfe")
    for file, why in (("picture", "is no text"), ("nowhere", "cannot be read: No such file")):
        wrong = tide(tmp_path, "import", "crontab", file)
        assert (wrong.returncode, wrong.stderr.startswith(f"tide: file: {file} {why}")) == (2, True)


class Crontab:
    """As Celery has it, as far as it is looked at."""

    def __init__(self, **fields: str) -> None:
        for field in ("minute", "hour", "day_of_month", "month_of_year", "day_of_week"):
            setattr(self, f"_orig_{field}", fields.get(field, "*"))


class Every:
    def __init__(self, seconds: int) -> None:
        self.run_every = timedelta(seconds=seconds)


def test_entries_of_beat_are_read_whatever_their_schedules_are_made_of() -> None:
    entry = {"task": "shop.report"}
    found = read_beat(
        {
            "a crontab": {**entry, "schedule": Crontab(minute="0", hour="7, 19"), "kwargs": {"all": True}},
            "an interval": {**entry, "schedule": Every(90), "options": {"queue": "mail", "priority": 9}},
            "seconds": {**entry, "schedule": 30.0},
            "a duration": {**entry, "schedule": timedelta(hours=2)},
            "fields": {**entry, "schedule": {"minute": "5", "day_of_week": "mon"}},
            "text": {**entry, "schedule": "0 5 * * *"},
            "by place": {**entry, "schedule": 5, "args": [16, 16]},
            "both days": {**entry, "schedule": Crontab(day_of_month="13", day_of_week="fri")},
            "the sun": {**entry, "schedule": object()},
        },
        timezone="Europe/Paris",
    )
    assert [each.when for each in found[:6]] == [
        {"cron": "0 7,19 * * *", "timezone": "Europe/Paris"},
        {"every": "1m30s"},
        {"every": "30s"},
        {"every": "2h"},
        {"cron": "5 * * * mon", "timezone": "Europe/Paris"},
        {"cron": "0 5 * * *", "timezone": "Europe/Paris"},
    ]
    assert (found[0].args, found[1].options) == ({"all": True}, {"queue": "mail", "priority": "low"})
    assert [bool(each.note) for each in found] == [False] * 6 + [True] * 3


def test_beat_is_brought_in_from_json_and_from_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schedule: dict[str, Any] = {"nightly": {"task": "shop.report", "schedule": {"hour": "5", "minute": "0"}}}
    (tmp_path / "beat.json").write_text(json.dumps(schedule))
    assert tide(tmp_path, "import", "celery-beat", "beat.json", "--yes").stdout.count("  made\n") == 1
    (tmp_path / "beat_conf.py").write_text(
        "class conf:\n    timezone = 'Asia/Tokyo'\n"
        "    beat_schedule = {'often': {'task': 't', 'schedule': '* * * * *'}}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert tide(tmp_path, "import", "celery-beat", "beat_conf:conf", "--yes").returncode == 0
    nightly, often = json.loads(tide(tmp_path, "schedule", "list", "-o", "json").stdout)
    assert (nightly["kind"], often["trigger"]["rule"]["zone"]) == ("shop.report", "Asia/Tokyo")


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("nothing", "source: must be package.module:attribute, a JSON file or -"),
        ("no_such_module:app", "source: no_such_module:app cannot be loaded: ModuleNotFoundError"),
        ("json:loads", "schedule: is no beat_schedule, which looks like"),
        ("none.json", "file: none.json cannot be read"),
    ],
)
def test_what_is_no_beat_schedule_is_told_in_one_line(tmp_path: Path, source: str, why: str) -> None:
    wrong = tide(tmp_path, "import", "celery-beat", source)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr
    with pytest.raises(Invalid, match="must have a task and a schedule"):
        read_beat({"x": {"task": "t"}}, timezone="UTC")


def test_a_file_that_is_nested_without_end_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "beat.json").write_text("[" * 100_000)

    wrong = tide(tmp_path, "import", "celery-beat", "beat.json")

    assert (wrong.returncode, wrong.stderr) == (2, "tide: source: must not be nested so deep, or contain itself\n")
