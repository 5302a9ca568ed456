"""`tide submit --resource`: what a worker must have free for a job."""

from pathlib import Path

import pytest

from tests.cli.terminal import tide
from tests.cli.test_jobs import answer, submit

WORDS = ("--resource", "cpu=500m", "--resource", "memory=64MiB")
NEEDS = {"cpu": 500, "memory": 64 << 20}


def test_a_command_is_submitted_with_the_resources_that_it_needs(tmp_path: Path) -> None:
    job = submit(tmp_path, *WORDS, "--", "make")

    assert answer(tmp_path, "job", "show", job)["needs"]["resources"] == NEEDS


def test_a_task_is_submitted_with_resources_besides_its_own(tmp_path: Path) -> None:
    job = submit(tmp_path, *WORDS, "--task", "shop.greet")

    assert answer(tmp_path, "job", "show", job)["needs"]["resources"] == NEEDS


def test_the_jobs_of_a_schedule_get_them_too(tmp_path: Path) -> None:
    assert tide(tmp_path, "submit", *WORDS, "--every", "1h", "--", "make").returncode == 0

    assert answer(tmp_path, "schedule", "show", "make")["needs"]["resources"] == NEEDS


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("cpu",), "must be a list such as cpu=500m"),
        (("cpu=x",), "cpu must be a number"),
        (("gpu=1", "gpu=2"), "names gpu twice"),
        (("a b=1",), "must consist of letters"),
        (("",), "must be name=amount"),
    ],
)
def test_resources_that_are_none_are_refused_in_one_line(tmp_path: Path, given: tuple[str, ...], why: str) -> None:
    wrong = tide(tmp_path, "submit", *(word for text in given for word in ("--resource", text)), "--", "make")

    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert wrong.stderr.startswith(f"tide: resource: {why}"), wrong.stderr
