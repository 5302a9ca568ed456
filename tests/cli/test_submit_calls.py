"""`tide submit --isolation --preempt`, and what is wrong with the arguments of a command or an HTTP call."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import tide
from tests.cli.test_jobs import answer, submit

WORDS = ("--isolation", "strict", "--preempt", "requeue")
STANDING = {"isolation": "strict", "preempt": "requeue"}


def test_a_command_is_submitted_with_its_isolation_and_for_whom_it_makes_way(tmp_path: Path) -> None:
    job = submit(tmp_path, *WORDS, "--", "make")

    assert answer(tmp_path, "job", "show", job)["args"] == {"argv": ["make"], **STANDING}


def test_the_jobs_of_a_schedule_have_them_too(tmp_path: Path) -> None:
    assert tide(tmp_path, "schedule", "add", "often", "--every", "1h", *WORDS, "--", "make").returncode == 0

    assert answer(tmp_path, "schedule", "show", "often")["args"] == {"argv": ["make"], **STANDING}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--isolation", "some", "--", "make"), "isolation: must be one of standard, strict, none"),
        (("--preempt", "", "--", "make"), "preempt: must be one of never, pause, requeue"),
        (("--isolation", "strict", "--task", "shop.greet"), "isolation: is for a command"),
        (("--preempt", "pause", "--task", "http"), "preempt: is for a command"),
    ],
)
def test_what_cannot_be_chosen_is_refused_in_one_line(tmp_path: Path, words: tuple[str, ...], said: str) -> None:
    refused(tmp_path, said, *words)


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({}, "args.url: is missing"),
        ({"url": "example.com"}, "args.url: must begin with http:// or https://"),
        ({"url": "http://a", "method": "GET /"}, "args.method: must be a word"),
        ({"url": "http://a", "headers": {"A B": "c"}}, "args.headers: 'A B' must be a plain name"),
        ({"url": "http://a", "headers": {"A": "b\nC: d"}}, "args.headers: 'A' must be a plain name"),
        ({"url": "http://a", "headers": {"A": 1}}, "args.headers[...]: Expected `str`"),
        ({"url": "http://a", "verify": False}, "args.verify: is no field of an HTTP call"),
    ],
)
def test_an_http_call_that_cannot_be_made_is_refused_in_one_line(
    tmp_path: Path, args: dict[str, Any], said: str
) -> None:
    refused(tmp_path, said, "--task", "http", "--args", json.dumps(args))


def test_a_command_named_as_a_task_is_checked_too(tmp_path: Path) -> None:
    refused(tmp_path, "args.argv: must name a program", "--task", "command", "--args", "{}")


@pytest.mark.parametrize("deep", ["[" * 50_000, '{"a":' * 20_000 + "1" + "}" * 20_000], ids=["list", "object"])
def test_arguments_that_are_nested_without_end_are_refused_in_one_line(tmp_path: Path, deep: str) -> None:
    refused(tmp_path, "args: must ", "--task", "shop.greet", "--args", deep)


def refused(folder: Path, said: str, *words: str) -> None:
    wrong = tide(folder, "submit", *words)

    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong.stderr
    assert wrong.stderr.startswith(f"tide: {said}"), wrong.stderr
    assert answer(folder, "job", "list") == []
