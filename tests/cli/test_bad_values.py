"""Silly values for every option and argument of every command: each is refused in one line, or taken."""

import contextlib
import io
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.cli.terminal import surroundings, tide
from tests.cli.test_config import commands
from tidewheel.cli.main import run

NUMBERS = ("", "-1", "9" * 20, "nan", "1e400")
TEXTS = ("", "9" * 20, "a\0b", "\udcff", "x" * 5000, "0001-01-01T00:00:00")
RUNNING = ("demo", "keeper", "server", "up", "worker")
"""What would go on until it is told to stop."""


def _distinct() -> list[tuple[tuple[str, ...], list[Any]]]:
    """Return the commands, each with those of its options that no other had before it."""
    seen: set[tuple[str, Any]] = set()
    found = []
    for path, command in commands().items():
        marks = {(each.opts[0], getattr(each, "help", None) or path): each for each in command.params}
        new = [each for mark, each in marks.items() if mark not in seen and not getattr(each, "is_flag", False)]
        seen |= marks.keys()
        if new:
            found.append((path, new))
    return found


def _name(value: object) -> str:
    return "-".join(value) if isinstance(value, tuple) else ""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder with one of each, and what to give a command for what it must have."""
    place = tmp_path_factory.mktemp("silly")
    (place / "file.json").write_text("{}")
    job = tide(place, "submit", "--", "ls").stdout.strip()
    assert tide(place, "schedule", "add", "hourly", "--every", "1h", "--", "ls").returncode == 0
    digest = tide(place, "artifact", "put", "file.json").stdout.strip()
    good = {"job": job, "name": "hourly", "file": "file.json", "source": "file.json", "digest": digest}
    with contextlib.ExitStack() as stack:
        for module in RUNNING:
            stack.enter_context(patch(f"tidewheel.cli.{module}.run_worker"))
        yield place, {**good, "most": "5", "chore": "reaper", "since": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(("path", "options"), _distinct(), ids=_name)
def test_silly_values_are_taken_or_refused_in_one_line(
    folder: tuple[Path, dict[str, str]], path: tuple[str, ...], options: list[Any]
) -> None:
    place, good = folder
    [command] = [found for name, found in commands().items() if name == path]
    for option in options:
        needed = [each for each in command.params if each.required and each.name != option.name]
        needed.sort(key=lambda each: each.param_type_name == "option")
        words = [word for each in needed for word in _given(each, good.get(each.name, "x"))]
        for value in NUMBERS if option.type.name.startswith(("int", "float")) else TEXTS:
            given = [*_given(option, value), *_rest(path, option)]
            if option.param_type_name != "option":
                given = ["--", *given]
            code, told = _run(place, *path, *words, *given)
            where = f"{' '.join(path)} {option.opts[0]} {value[:30]!r}: {code} {told}"
            assert code in (0, 1, 2, 3), where
            assert code != 3 or option.name in ("database", "url", "to", "replica", "blobs"), where
            assert code == 0 or len(told.splitlines()) == 1, where
            assert "Traceback" not in told, where


def _given(option: Any, value: str) -> list[str]:
    return [f"{option.opts[0]}={value}"] if option.param_type_name == "option" else [value]


def _rest(path: tuple[str, ...], option: Any) -> list[str]:
    if option.param_type_name != "option":
        return []
    command = path in (("submit",), ("schedule", "add")) and option.name not in ("task", "app", "args")
    task = ["--task", "t"] if option.name == "args" and path == ("submit",) else []
    return ["--", "ls"] if command else task


def _run(folder: Path, *words: str) -> tuple[int, str]:
    """Run a command with streams that are as those of a process."""
    out = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    err = io.TextIOWrapper(io.BytesIO(), "utf-8", errors="backslashreplace")
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, surroundings(TIDE_PORT="0"), clear=True),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO())),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        code = run(words)
        err.flush()
    return code, err.buffer.getvalue().decode()


def test_what_is_piped_in_and_no_text_is_refused(tmp_path: Path) -> None:
    with (
        contextlib.chdir(tmp_path),
        patch.dict(os.environ, surroundings(), clear=True),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff"), "utf-8")),
        contextlib.redirect_stderr(err := io.StringIO()),
    ):
        assert run(["import", "celery-beat", "-"]) == 2
    assert err.getvalue() == "tide: file: what is piped in is no text in UTF-8\n"


def test_a_file_that_cannot_be_written_is_named_before_anything_is_fetched(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    digest = tide(tmp_path, "artifact", "put", "a").stdout.strip()
    for to, why in (
        ("nowhere/b", "there is no folder nowhere"),
        (".", "must name a file, not '.'"),
        ("a/b", "there is no folder a"),
    ):
        done = tide(tmp_path, "artifact", "get", digest, "--to", to)
        assert (done.returncode, done.stderr) == (2, f"tide: to: {why}\n")
