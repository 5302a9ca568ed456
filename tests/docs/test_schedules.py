"""What the pages about schedules say is so: the program runs as it says, and the tables about clocks are true."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from tests.docs.test_examples import ROOT
from tests.docs.test_sdk_examples import run, save
from tidewheel.triggers import Trigger, parse_rule

MARCH = datetime(2030, 3, 30, 23, tzinfo=UTC), datetime(2030, 3, 31, 21, 59, tzinfo=UTC)
OCTOBER = datetime(2030, 10, 26, 22, tzinfo=UTC), datetime(2030, 10, 27, 22, 59, tzinfo=UTC)
"""The two days in Berlin on which clocks are set; their first instants are told apart below."""
BERLIN, SECOND = ZoneInfo("Europe/Berlin"), timedelta(seconds=1)


def test_the_program_of_the_how_to_prints_what_it_says(tmp_path: Path) -> None:
    _, plan = save(tmp_path, "docs/how-to/schedule-jobs.md")

    printed = re.search(
        r"It prints\n\n```text\n(.*?)```", (ROOT / "docs/how-to/schedule-jobs.md").read_text(), re.DOTALL
    )
    assert printed is not None
    assert run(tmp_path, plan).splitlines() == printed[1].splitlines()


@pytest.mark.parametrize(
    ("expression", "in_march", "in_october"),
    [
        ("30 2 * * *", ["01:00"], ["00:30"]),
        ("15,45 2 * * *", ["01:00"], ["00:15", "00:45"]),
        ("*/30 2 * * *", [], ["00:00", "00:30", "01:00", "01:30"]),
    ],
)
def test_the_table_of_the_days_on_which_clocks_are_set_is_true(
    expression: str, in_march: list[str], in_october: list[str]
) -> None:
    assert [f"{at:%H:%M}" for at in fires(expression, *MARCH)] == in_march
    assert [f"{at:%H:%M}" for at in fires(expression, *OCTOBER)] == in_october
    assert f"| `{expression}` " in (ROOT / "docs/explanation/schedules-and-time.md").read_text()


@pytest.mark.parametrize(
    ("expression", "in_march", "in_october"),
    [("0 0 * * *", 1, 1), ("*/30 * * * *", 46, 50), ("@every 30m", 46, 50)],
)
def test_the_numbers_in_that_table_are_true(expression: str, in_march: int, in_october: int) -> None:
    before = datetime(2030, 3, 30, 22, 59, tzinfo=UTC), datetime(2030, 10, 26, 21, 59, tzinfo=UTC)

    assert len(fires(expression, before[0], MARCH[1])) == in_march
    assert len(fires(expression, before[1], OCTOBER[1])) == in_october


NUMBERS = {"not": 0, "once": 1, "twice": 2, "four": 4}
PAGE = (ROOT / "docs/explanation/schedules-and-time.md").read_text()
ROWS = re.findall(r"^\| `([^`]+)` \((?:fixed|wildcard|elapsed time)\) \| ([^|]+) \| ([^|]+) \|$", PAGE, re.MULTILINE)


def test_the_table_has_all_of_its_rows() -> None:
    assert len(ROWS) == 6


@pytest.mark.parametrize(("expression", "in_march", "in_october"), ROWS, ids=[row[0] for row in ROWS])
def test_each_cell_of_that_table_says_what_happens(expression: str, in_march: str, in_october: str) -> None:
    for cell, month, day in ((in_march, 3, 31), (in_october, 10, 27)):
        midnight = datetime(2030, month, day, tzinfo=BERLIN)
        begins, ends = (at.astimezone(UTC) - SECOND for at in (midnight, midnight + timedelta(days=1)))
        local = [at.astimezone(BERLIN) for at in fires(expression, begins, ends)]
        word = re.split(r"[ ,:]", cell)[0]
        assert len(local) == (int(word) if word.isdigit() else NUMBERS[word]), cell
        if named := re.findall(r"\d\d:\d\d", cell):
            assert [f"{at:%H:%M}" for at in local] == named, cell
        if "first" in cell:
            assert [at.fold for at in local] == [0] * len(local), cell


def fires(expression: str, since: datetime, until: datetime) -> list[datetime]:
    trigger = Trigger(rule=parse_rule(expression, "Europe/Berlin"))
    return [occurrence.fire_at for occurrence in trigger.between(since, until, limit=100)]
