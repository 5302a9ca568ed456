"""Long work shows on a terminal how far it is, and says nothing of it elsewhere."""

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest.mock import patch

import pytest

from tests.cli.terminal import surroundings, tide
from tests.cli.test_dlq import let_die
from tests.cli.test_servers import served  # noqa: F401 - a fixture
from tidewheel.cli.main import run


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(folder: Path, *words: str, **environment: str) -> str:
    """Return what a command shows beside its output."""
    with (
        contextlib.chdir(folder),
        patch.dict(os.environ, surroundings(TERM="xterm", NO_COLOR="1", **environment), clear=True),
        patch.object(sys, "stdin", io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(err := Terminal()),
    ):
        assert run(words) == 0, err.getvalue()
    return err.getvalue()


@pytest.mark.parametrize("how", ["store", "server"])
def test_files_that_come_and_go(how: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    where = {}
    if how == "server":
        _, url, key = request.getfixturevalue("served")
        where = {"TIDE_URL": url, "TIDE_KEY": key}
    text = f"a file of its own: {tmp_path}"
    (tmp_path / "file").write_text(text)
    size = f"{len(text)}/{len(text)}"
    put = shown(tmp_path, "artifact", "put", "file", **where)
    assert size in put
    assert "bytes" in put
    digest = tide(tmp_path, "artifact", "put", "file", **where)
    assert digest.stderr == "", "here is no terminal"
    assert size in shown(tmp_path, "artifact", "get", digest.stdout.strip(), "--to", "copy", **where)


def test_dead_letters_that_go_round_again(tmp_path: Path) -> None:
    let_die(tmp_path, 3)
    bar = shown(tmp_path, "dlq", "redrive", "--yes")
    assert ("dead letters" in bar, "3/3" in bar) == (True, True)


def test_jobs_that_are_cancelled(tmp_path: Path) -> None:
    tide(tmp_path, "submit", "--", "ls")
    bar = shown(tmp_path, "job", "cancel", "--queue", "default", "--yes")
    assert ("jobs" in bar, "1/1" in bar) == (True, True)


def test_occurrences_that_are_made_up_for(tmp_path: Path) -> None:
    assert tide(tmp_path, "schedule", "add", "often", "--every", "1h", "--", "ls").returncode == 0
    words = ("--since", "2026-01-01T00:00:00Z", "--until", "2026-01-01T04:00:00Z", "--yes")
    bar = shown(tmp_path, "schedule", "backfill", "often", *words)
    assert ("occurrences" in bar, "4/4" in bar) == (True, True)
