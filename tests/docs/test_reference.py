"""What the docs say about the code is compared with the code."""

import re
from pathlib import Path
from unittest.mock import Mock

import pytest

from tidewheel.keeper import chores_of
from tidewheel.model.message_text import NAMES
from tidewheel.model.states import Cause, State, diagram
from tidewheel.observe import own_log
from tidewheel.observe.catalogue import CATALOGUE
from tidewheel.observe.catalogue import reference as metrics
from tidewheel.settings import reference
from tidewheel.testing import FakeClock

ROOT = Path(__file__).parents[2]
DOCS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


def test_the_state_diagram_is_the_transition_table() -> None:
    text = (ROOT / "docs/reference/states.md").read_text()
    block = re.search(r"```mermaid\n(.*?)```", text, re.DOTALL)
    assert block is not None
    assert block[1].strip() == diagram(), "paste the output of tidewheel.model.states.diagram()"


def test_every_state_and_cause_is_explained() -> None:
    words = set(re.findall(r"`(\w+)`", (ROOT / "docs/reference/states.md").read_text()))
    assert {*map(str, State), *map(str, Cause)} - {Cause.CLAIMED} <= words


def test_every_chore_is_explained() -> None:
    words = set(re.findall(r"`([\w/-]+)`", (ROOT / "docs/explanation/keeper.md").read_text()))
    chores = {chore.name for chore in chores_of(Mock(), FakeClock(), blobs=Mock())}
    assert {name for name in chores if name.partition("/")[2] in ("", "0")} <= words


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), f"{target} in {page.name}"


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_are_named_exist(page: Path) -> None:
    if page.name == "CHANGELOG.md":
        return
    for name in re.findall(r"`((?:src|tests|docs|bench|harness)/[\w./-]+)`", page.read_text()):
        assert (ROOT / name).exists(), f"{name} in {page.name}"


def test_the_tables_of_metrics_are_those_of_the_program() -> None:
    text = (ROOT / "docs/reference/metrics.md").read_text()
    assert text.endswith(metrics() + "\n"), "paste the output of tidewheel.observe.catalogue.reference()"


def test_the_usual_names_of_the_field_are_among_the_metrics() -> None:
    usual = (
        "jobs_submitted_total jobs_finished_total job_run_seconds job_wait_seconds queue_depth queue_oldest_seconds "
        "running_jobs lease_lost_total retries_total dead_letters schedule_lag_seconds schedule_missed_total limit "
        "limit_in_use leader db_dead_tuples store_latency_seconds"
    )
    assert {f"tide_{name}" for name in usual.split()} <= CATALOGUE.keys()


def test_metrics_that_pages_name_exist() -> None:
    series = {f"{name}{end}" for name in CATALOGUE for end in ("", "_bucket", "_sum", "_count")}
    for page in DOCS:
        named = set(re.findall(r"`(tide_[a-z_]+[a-z])(?=[`{])", page.read_text()))
        assert named <= series, page.name


def test_every_field_of_the_own_logs_is_explained() -> None:
    words = set(re.findall(r"`(\w+)`", (ROOT / "docs/how-to/observe.md").read_text()))
    assert {*own_log.FIELDS, "ts", "level", "msg", "logger", "pid", "process", "error"} <= words


def test_every_word_of_a_template_is_explained() -> None:
    page = (ROOT / "docs/how-to/notifications-and-alerts.md").read_text()
    assert {f"${name}" for name in NAMES} <= set(re.findall(r"`(\$\w+)`", page))


def test_the_table_of_settings_is_that_of_the_program() -> None:
    text = (ROOT / "docs/reference/settings.md").read_text()
    assert text.endswith(reference() + "\n"), "paste the output of tidewheel.settings.reference()"
