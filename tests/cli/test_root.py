"""The root of the command line: its commands, what it loads, and how it behaves on a terminal and in a pipe."""

import os
import pty
import select
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.cli.terminal import TIDE, surroundings, tide, tide_process
from tidewheel.cli.lazy import WIDEST, LazyCommand
from tidewheel.cli.main import COMMANDS, commands


def on_a_terminal(folder: Path, *words: str, answers: str = "", **environment: str) -> tuple[int, str]:
    """Run a command on a pseudo-terminal of 200 columns, and return its exit code and all that it showed."""
    ours, theirs = pty.openpty()
    size = {"COLUMNS": "200", "LINES": "50", "TERM": "xterm-256color"}
    with subprocess.Popen(
        [TIDE, *words],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**surroundings(**environment), **size},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        os.write(ours, answers.encode())
        shown = b""
        while select.select([ours], [], [], 60)[0]:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # Linux says so when the last process has closed its end
                break
            if not piece:
                break
            shown += piece
        code = process.wait(60)
    os.close(ours)
    return code, shown.decode()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_about_a_command_is_the_first_line_of_its_own_help(name: str) -> None:
    lazy = commands().commands[name]
    assert isinstance(lazy, LazyCommand)
    own = (lazy.load().help or "").partition("\n\n")[0].replace("\n", " ")
    assert own.startswith(lazy.get_short_help_str(WIDEST).rstrip("."))


def test_help_loads_neither_a_store_nor_rich(tmp_path: Path) -> None:
    program = (
        "import sys; from tidewheel.cli.main import run; run(['--help']); "
        "print([name for name in sys.modules if name.split('.')[0] in ('rich', 'apsw', 'asyncio', 'msgspec')])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"
    assert "schedule  Make schedules, look at them and steer them." in done.stdout


def test_a_list_in_a_pipe_loads_neither_rich_nor_the_sdk_nor_postgresql(tmp_path: Path) -> None:
    program = (
        "import sys; from tidewheel.cli.main import run; run(['job', 'list']); "
        "print([n for n in sys.modules if n in ('rich', 'asyncpg', 'granian', 'tidewheel.sdk.app', 'tidewheel.blobs')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        env=surroundings(),
    )
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("scheduel", "list"), "no such command 'scheduel'. Did you mean 'schedule'"),
        (("job", "lst"), "no such command 'lst'. Did you mean 'list'? (see `tide job --help`)"),
        (("job", "show"), "missing argument 'JOB' (see `tide job show --help`)"),
        (("job", "list", "--limit", "many"), "invalid value for '--limit'"),
        (("--verison",), "no such option: --verison"),
    ],
)
def test_mistyped_words_are_told_in_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    wrong = tide(tmp_path, *words)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1), wrong.stderr
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr


def test_without_words_the_help_is_shown(tmp_path: Path) -> None:
    for words in ((), ("job",)):
        shown = tide(tmp_path, *words)
        assert (shown.returncode, "Usage: tide" in shown.stdout + shown.stderr) == (2, True)


def test_a_list_on_a_terminal_has_colours_unless_they_are_not_wanted(tmp_path: Path) -> None:
    job = tide(tmp_path, "submit", "--", "ls").stdout.strip()
    tide(tmp_path, "job", "cancel", job)
    code, shown = on_a_terminal(tmp_path, "job", "list")
    assert (code, job in shown, "\x1b[" in shown) == (0, True, True)
    code, shown = on_a_terminal(tmp_path, "job", "list", NO_COLOR="1")
    assert (code, job in shown) == (0, True)
    assert "\x1b[3" not in shown
    piped = tide_process(tmp_path, "job", "list")
    assert (piped.returncode, "\x1b" in piped.stdout) == (0, False)


def test_a_person_is_asked_before_many_jobs_are_touched(tmp_path: Path) -> None:
    for _ in range(2):
        tide(tmp_path, "submit", "--queue", "mail", "--", "ls")
    code, shown = on_a_terminal(tmp_path, "job", "cancel", "--queue", "mail", answers="n\n")
    assert (code, "2 jobs would be cancelled. Go on?" in shown) == (1, True)
    assert "Traceback" not in shown
    code, shown = on_a_terminal(tmp_path, "job", "cancel", "--queue", "mail", answers="y\n")
    assert (code, "2 cancelled, 0 asked to stop" in shown) == (0, True)
    assert "2/2" in shown, "a bar"


def test_a_reader_that_goes_away_is_no_error_to_be_told(tmp_path: Path) -> None:
    tide(tmp_path, "submit", "--", "ls")
    with subprocess.Popen(
        [TIDE, "job", "list"], cwd=tmp_path, env=surroundings(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait(60)


def test_a_copy_shows_bars_on_a_terminal(tmp_path: Path, postgres_database: str) -> None:
    tide(tmp_path, "submit", "--", "ls")
    code, shown = on_a_terminal(tmp_path, "db", "copy", "--to", postgres_database)
    assert (code, "job_history" in shown, "1/1" in shown) == (0, True, True), shown


def test_shells_complete_commands_and_options(tmp_path: Path) -> None:
    def complete(words: str) -> list[str]:
        done = tide_process(
            tmp_path, _TIDE_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
        )
        return done.stdout.split()

    assert complete("tide sch") == ["schedule"]
    assert complete("tide schedule tr") == ["trigger"]
    assert "--queue" in complete("tide job list --q")


def test_the_module_is_the_command() -> None:
    told = subprocess.run([sys.executable, "-m", "tidewheel", "--version"], capture_output=True, text=True, check=True)
    assert told.stdout == f"tide {version('tidewheel')}\n"
