"""The programs in the pages about the SDK are run as a reader would run them."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.docs.test_examples import ROOT, programs


def run(folder: Path, *command: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, *command],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def save(folder: Path, page: str) -> list[str]:
    found = programs(page)
    for name, program in found:
        (folder / name).write_text(program)
    return [name for name, _ in found]


@contextmanager
def working(folder: Path, line: str) -> Iterator[None]:
    """Let `tide` work in a folder meanwhile."""
    tide = str(Path(sys.executable).with_name("tide"))
    with subprocess.Popen([tide, *line.split()], cwd=folder) as worker:
        try:
            yield
        finally:
            worker.terminate()
            assert worker.wait(timeout=60) == 0


def test_the_programs_about_writing_tasks_do_what_they_say(tmp_path: Path, postgres_database: str) -> None:
    shop, buy, _calls, programs, order, order_sqlite = save(tmp_path, "docs/how-to/write-tasks.md")

    bought = run(tmp_path, buy).splitlines()
    assert re.fullmatch(r"[0-9a-f-]{36} queued", bought[0])
    assert bought[1:] == ["1:00:00", "True", "2 ['cancelled', 'cancelled']"]
    assert "env" in run(tmp_path, programs)
    assert run(tmp_path, order_sqlite) == "queued\n"

    text = (tmp_path / shop).read_text().replace('App("sqlite:///shop.db")', "App()")
    (tmp_path / shop).write_text(text)
    assert run(tmp_path, order, TIDE_DATABASE=postgres_database) == "queued\n"


def test_the_executables_and_calls_of_that_page_end_as_it_says(tmp_path: Path) -> None:
    save(tmp_path, "docs/how-to/write-tasks.md")
    with working(tmp_path, "worker --database sqlite:///shop.db --queue host"):
        counted, pinged = run(tmp_path, "calls.py").splitlines()

    assert counted == str({"exit_code": 3, "output": "try 1\n"})
    assert pinged.startswith("GET http://127.0.0.1:9/health: ")


def test_the_tasks_of_that_page_can_be_run(tmp_path: Path) -> None:
    save(tmp_path, "docs/how-to/write-tasks.md")
    program = """
from decimal import Decimal
from shop import app, charge, receipt
from tidewheel.testing import in_memory
with in_memory(app) as test:
    paid, free, sent = charge.enqueue(7, Decimal("9.90")), charge.enqueue(8, Decimal(0)), receipt.enqueue("busy")
    test.run_inline()
    test.advance("5m")
    test.run_inline()
    print(charge.kind, paid.result(), free.state(), sent.result())
"""
    assert run(tmp_path, "-c", program) == "shop.charge charged 9.90 for order 7 dead 4\n"


def test_the_tests_of_the_page_about_testing_pass(tmp_path: Path) -> None:
    (name,) = save(tmp_path, "docs/how-to/test-your-tasks.md")

    assert "3 passed" in run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", name)


def test_the_program_about_dead_letters_does_what_it_says(tmp_path: Path) -> None:
    (name,) = save(tmp_path, "docs/how-to/dead-letters.md")

    assert run(tmp_path, name).splitlines() == [
        "5 letters.charge ConnectionError: no answer for order 4",
        "5 would go",
        "5 go, two a second",
        "1 ran at once",
        "4 more ran, and 0 are dead",
        "charged order 9",
    ]


def test_the_program_about_fencing_does_what_it_says(tmp_path: Path) -> None:
    (name,) = save(tmp_path, "docs/explanation/guarantees.md")

    assert run(tmp_path, name).splitlines() == ["[1, 2]", "(1, 1) is older than (1, 2)"]


def test_a_worker_that_is_started_as_its_page_says_runs_the_program_of_that_page(tmp_path: Path) -> None:
    (name,) = save(tmp_path, "docs/how-to/run-workers.md")
    page = (ROOT / "docs/how-to/run-workers.md").read_text()
    (line,) = re.findall(r"^tide (worker --app numbers_app.*)$", page, re.MULTILINE)
    with working(tmp_path, line):
        assert run(tmp_path, name) == "6\n"
