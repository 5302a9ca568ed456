"""The programs in the docs are run as a reader would run them."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def programs(page: str) -> list[tuple[str, str]]:
    """Return the Python programs of a page, with the names that their first lines give them."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)
    return [(block.split("\n", 1)[0].removeprefix("# "), block) for block in blocks]


def run(folder: Path, name: str, program: str) -> str:
    (folder / name).write_text(program)
    done = subprocess.run([sys.executable, name], cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    (submit, work, look) = programs("docs/tutorial/first-jobs.md")
    first = run(tmp_path, *submit)
    assert first.count("created") == 3
    second = run(tmp_path, *submit)
    assert second.splitlines()[0].endswith("was there already")
    assert second.count("created") == 2
    worked = run(tmp_path, *work)
    assert re.findall(r'running mail {"to":"(\w+)@', worked) == ["bob", "bob", "ada"]
    assert worked.count("accepted") == 3
    assert re.search(r"next job is due at 20\d\d-", worked)
    looked = run(tmp_path, *look)
    assert looked.count("succeeded {'sent': True}") == 2
    assert "dead mailbox full" in looked
    assert "sent round again: 1" in looked


def test_the_example_of_triggers_runs(tmp_path: Path) -> None:
    ((_, program),) = programs("docs/explanation/triggers.md")
    assert (
        run(tmp_path, "triggers.py", program + "print(len(trigger.between(now, now + timedelta(7), limit=9, key='k')))")
        == "7\n"
    )


def test_the_functions_of_the_readme_run_as_it_says(tmp_path: Path) -> None:
    ((name, program),) = programs("README.md")
    tide = str(Path(sys.executable).with_name("tide"))
    database = ("--database", "sqlite:///shop.db")
    with subprocess.Popen(
        [tide, "up", "--port", "0", "--app", "shop:app", *database], cwd=_saved(tmp_path, name, program)
    ) as up:
        try:
            assert run(tmp_path, name, program) == "hello Ada 307200\n"
        finally:
            up.terminate()
            assert up.wait(timeout=60) == 0


def _saved(folder: Path, name: str, program: str) -> Path:
    (folder / name).write_text(program)
    return folder


def test_the_program_about_blobs_runs(tmp_path: Path) -> None:
    ((name, program),) = programs("docs/how-to/store-results.md")
    location = "blob:outputs/00000000-0000-0000-0000-000000000001/1/result.json"
    assert sorted(run(tmp_path, name, program).splitlines()) == ["0", f"{location} b'{{\"rows\": 3}}'", "hello"]


def test_the_programs_about_flow_control_run(tmp_path: Path) -> None:
    (mailer, operate, cap, refresh) = programs("docs/how-to/limit-and-rate.md")
    assert run(tmp_path, *mailer).splitlines() == [
        "('task:mailer.send', 'rate:mailer.send')",
        "('rate:mailer.notify=7',)",
        "('task:mailer.export=a1:acme',)",
        "True",
    ]
    shown = run(tmp_path, *operate).splitlines()
    assert "rate:mailer.send None 2/s by hand" in shown
    assert "task:mailer.export 2 None declared" in shown
    assert "task:mailer.export=a2:default 0 9 1" in shown
    assert run(tmp_path, *cap) == "queue 'mail' is full: at most 2 jobs may wait in it\n['drop_oldest']\n"
    assert run(tmp_path, *refresh).splitlines() == [
        "['dropped', 'queued', 'queued']",
        "key 'cap:refresh.rebuild' is full: at most 2 jobs may wait with it",
        "[('cap:refresh.rebuild', 10, 'reject'), ('cap:refresh.refresh', 1, 'replace')]",
    ]
