"""`tide submit` and `tide job`."""

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
import yaml  # type: ignore[import-untyped]

from tests.builders import a_claim, a_worker, outcome_of
from tests.cli.terminal import tide
from tidewheel.cli import bulk, following, picking
from tidewheel.clock import SystemClock
from tidewheel.model.log import LogLine
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store


def answer(folder: Path, *words: str) -> Any:
    done = tide(folder, *words, "-o", "json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def submit(folder: Path, *words: str) -> str:
    done = tide(folder, "submit", *words)
    assert done.returncode == 0, done.stderr
    return str(UUID(done.stdout.strip()))


def work(folder: Path, cause: Cause = Cause.RETURNED, result: str | None = None, *lines: str) -> list[UUID]:
    """Run all that is due, by hand."""

    async def run_all() -> list[UUID]:
        store: Store = await open_store(folder / "jobs.db")
        worker = await store.register(a_worker(queues=("default", "mail")))
        runs = (await store.claim(a_claim(worker.id, 100, queues=("default", "mail")))).runs
        now = worker.registered_at
        said = [
            LogLine(run.job_id, run.token, number, now, "stdout", None, text)
            for run in runs
            for number, text in enumerate(lines)
        ]
        await store.append_logs(said)
        error = None if cause is Cause.RETURNED else Failure(reason="error", message="no answer\nat all")
        await store.settle(worker.id, [outcome_of(run, cause, result=result, error=error) for run in runs])
        await store.close()
        return [run.job_id for run in runs]

    return asyncio.run(run_all())


def test_a_command_is_submitted_with_all_that_may_be_said_of_it(tmp_path: Path) -> None:
    first = submit(tmp_path, "--", "echo", "hello")
    words = ("--queue", "mail", "--priority", "high", "--label", "team=web", "--timeout", "30s", "--attempts", "2")
    job = submit(tmp_path, *words, "--after", first, "--key", "k", "--name", "greeting", "--in", "5m", "--", "ls", "-l")
    again = submit(
        tmp_path, *words, "--after", first, "--key", "k", "--name", "greeting", "--in", "5m", "--", "ls", "-l"
    )
    assert again == job
    shown = answer(tmp_path, "job", "show", job)
    assert shown["args"] == {"argv": ["ls", "-l"]}
    assert (shown["queue"], shown["priority"], shown["labels"], shown["timeout"]) == (
        "mail",
        0,
        {"team": "web"},
        "PT30S",
    )
    assert (shown["name"], shown["after"], shown["retry"]["max_attempts"]) == ("greeting", [first], 2)
    assert (shown["state"], shown["attempts"]) == ("blocked", [])


def test_a_task_is_submitted_by_its_name_with_arguments_as_json(tmp_path: Path) -> None:
    job = submit(tmp_path, "--task", "shop.greet", "--args", '{"name": "Ada"}', "--at", "2030-01-01T12:00:00+01:00")
    shown = answer(tmp_path, "job", "show", job)
    assert (shown["kind"], shown["args"], shown["due_at"]) == ("shop.greet", {"name": "Ada"}, "2030-01-01T11:00:00Z")


def test_with_its_app_the_arguments_of_a_task_are_checked_and_its_options_hold(tmp_path: Path) -> None:
    app = ("--app", "tests.cli.greeting_app:app")
    job = submit(tmp_path, *app, "--task", "greet", "--args", '{"name": "Ada"}')
    assert answer(tmp_path, "job", "show", job)["queue"] == "mail"
    wrong = tide(tmp_path, "submit", *app, "--task", "greet", "--args", '{"nmae": "Ada"}')
    assert (wrong.returncode, "missing a required argument: 'name'" in wrong.stderr) == (2, True)
    wrong = tide(tmp_path, "submit", *app, "--task", "gret")
    assert wrong.stderr == "tide: task: must be one of greet, not 'gret'; did you mean greet?\n"


def test_an_artifact_is_sent_along(tmp_path: Path) -> None:
    (tmp_path / "run.sh").write_text("#!/bin/sh\necho hi\n")
    job = submit(tmp_path, "--artifact", "run.sh")
    digest = answer(tmp_path, "job", "show", job)["args"]["artifact"]
    assert submit(tmp_path, "--artifact", digest, "--", "{artifact}", "x") != job
    assert [path.read_text() for path in (tmp_path / "tidewheel-blobs").rglob(f"*{digest[4:]}*")]
    missing = tide(tmp_path, "submit", "--artifact", "nowhere.sh")
    assert (missing.returncode, "there is no file nowhere.sh" in missing.stderr) == (2, True)


def test_cron_and_every_make_a_schedule(tmp_path: Path) -> None:
    made = tide(tmp_path, "submit", "--cron", "0 5 * * *", "--timezone", "Europe/Paris", "--", "/opt/backup.sh", "x")
    assert made.returncode == 0
    [listed] = answer(tmp_path, "schedule", "list")
    assert (listed["id"], listed["name"]) == (made.stdout.strip(), "backup.sh")
    wrong = tide(tmp_path, "submit", "--every", "5m", "--wait", "--", "ls")
    assert (wrong.returncode, wrong.stderr) == (
        2,
        "tide: wait: is for a single job, and --cron and --every make a schedule\n",
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "argv: must name a program"),
        (("--task", "t", "--", "ls"), "task: cannot be given together with a command"),
        (("--args", "{}", "--", "ls"), "args: are for a task"),
        (("--task", "t", "--args", "[1]"), "args: must be a JSON object"),
        (("--at", "tomorrow", "--", "ls"), "at: must be a date and time such as 2030-"),
        (("--in", "soon", "--", "ls"), "delay: must be a duration"),
        (("--priority", "urgent", "--", "ls"), "priority: must be one of high"),
        (("--after", "x", "--", "ls"), "after: must be the id of a job"),
        (("--label", "x", "--", "ls"), "label: must be name=value"),
        (("--cron", "0 5 * *", "--", "ls"), "cron: has 4 fields; five are needed"),
        (("--cron", "0 5 * * *", "--timezone", "Europe/Pari", "--", "ls"), "timezone: "),
        (("--attempts", "0", "--", "ls"), "invalid value for '--attempts'"),
        (("--wiat", "--", "ls"), "no such option: --wiat"),
    ],
)
def test_what_is_wrong_with_a_job_is_told_in_one_line(tmp_path: Path, words: tuple[str, ...], why: str) -> None:
    wrong = tide(tmp_path, "submit", *words)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (2, "", 1)
    assert wrong.stderr.startswith(f"tide: {why}"), wrong.stderr
    assert answer(tmp_path, "job", "list") == []


def test_jobs_are_listed_by_what_they_have_in_common_page_by_page(tmp_path: Path) -> None:
    first, second = submit(tmp_path, "--queue", "mail", "--label", "a=b", "--", "ls"), submit(tmp_path, "--", "ls")
    submit(tmp_path, "--tenant", "other", "--", "ls")
    assert [job["id"] for job in answer(tmp_path, "job", "list")] == [second, first]
    for words in (("--queue", "mail"), ("--label", "a=b")):
        assert [job["id"] for job in answer(tmp_path, "job", "list", *words)] == [first]
    assert answer(tmp_path, "job", "list", "--state", "dead", "--state", "running") == []
    page = tide(tmp_path, "job", "list", "--limit", "1")
    assert page.stderr == f"there may be more: --cursor {second}\n"
    assert [job["id"] for job in answer(tmp_path, "job", "list", "--limit", "1", "--cursor", second)] == [first]
    wrong = tide(tmp_path, "job", "list", "--state", "quued")
    assert (wrong.returncode, wrong.stderr.endswith("not 'quued'; did you mean queued?\n")) == (2, True)


def test_jobs_are_listed_by_when_they_were_made(tmp_path: Path) -> None:
    job = submit(tmp_path, "--task", "t")

    def listed(*words: str) -> list[str]:
        return [found["id"] for found in answer(tmp_path, "job", "list", *words)]

    assert listed("--since", "1h") == listed("--before", "2100-01-01T00:00:00Z") == [job]
    assert listed("--before", "1h") == listed("--since", "2100-01-01T00:00:00Z") == []
    wrong = tide(tmp_path, "job", "list", "--since", "yesterday")
    assert (wrong.returncode, wrong.stderr.count("since"), wrong.stderr.count("\n")) == (2, 1, 1)


def test_what_jobs_say_gives_no_orders_to_the_terminal(tmp_path: Path) -> None:
    job = submit(tmp_path, "--task", "t")
    work(tmp_path, Cause.RETURNED, None, "red \x1b[31malert\x9b2J")
    for words in (("job", "logs", job), ("job", "show", job), ("job", "list"), ("logs", "alert")):
        shown = tide(tmp_path, *words).stdout
        assert not {"\x1b", "\x07", "\x9b"} & set(shown), (words, shown)
    assert tide(tmp_path, "job", "logs", job).stdout == "red alert\n"


def test_a_mistyped_queue_is_asked_about(tmp_path: Path) -> None:
    submit(tmp_path, "--queue", "mail", "--", "ls")
    work(tmp_path)
    done = tide(tmp_path, "job", "list", "--queue", "mial")
    assert done.stderr == "tide: there is no queue mial; did you mean mail?\n"


def test_what_is_shown_is_the_same_in_all_three_forms(tmp_path: Path) -> None:
    submit(
        tmp_path, "--label", "odd=yes: no", "--label", "on=1", "--task", "t", "--args", '{"a": [1, {"b": []}, null]}'
    )
    listed = answer(tmp_path, "job", "list")
    assert yaml.safe_load(tide(tmp_path, "job", "list", "-o", "yaml").stdout) == listed
    [head, line] = tide(tmp_path, "job", "list").stdout.splitlines()
    assert head.split()[:3] == ["id", "kind", "queue"]
    assert line.split()[:5] == [listed[0]["id"], "t", "default", "medium", "queued"]
    wrong = tide(tmp_path, "job", "list", "-o", "xml")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)


def test_lines_and_results_of_a_job_are_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = submit(tmp_path, "--task", "t")
    early = tide(tmp_path, "job", "result", job)
    assert (early.returncode, "is still queued" in early.stderr) == (1, True)
    work(tmp_path, Cause.RETURNED, '{"sent": 3}', "one", "two")
    assert tide(tmp_path, "job", "logs", job).stdout == "one\ntwo\n"
    assert tide(tmp_path, "job", "logs", "-f", job).stdout == "one\ntwo\n"
    monkeypatch.setattr("tidewheel.store.pages.LINES_BYTES", 1)  # as if each line filled a page
    assert tide(tmp_path, "job", "logs", job).stdout == "one\ntwo\n"
    assert tide(tmp_path, "job", "logs", "-f", job).stdout == "one\ntwo\n"
    assert answer(tmp_path, "job", "result", job) == {"sent": 3}
    assert tide(tmp_path, "job", "why", job).stdout.startswith("It ended at ")


def test_a_job_that_failed_says_so_by_its_exit_code(tmp_path: Path) -> None:
    job = submit(tmp_path, "--task", "t")
    work(tmp_path, Cause.GAVE_UP)
    failed = tide(tmp_path, "job", "result", job)
    assert (failed.returncode, failed.stderr) == (1, f"tide: job {job} is dead (error: no answer at all)\n")
    [attempt] = answer(tmp_path, "job", "show", job)["attempts"]
    assert attempt["cause"] == "gave_up"
    assert "gave_up" in tide(tmp_path, "job", "show", job).stdout


def test_many_jobs_are_cancelled_or_sent_round_again_only_after_they_were_counted(tmp_path: Path) -> None:
    for _ in range(3):
        submit(tmp_path, "--queue", "mail", "--", "ls")
    kept = submit(tmp_path, "--", "ls")
    asked = tide(tmp_path, "job", "cancel", "--queue", "mail")
    assert (asked.returncode, asked.stderr) == (2, "tide: yes: 3 jobs would be cancelled; add --yes to do it\n")
    assert len(answer(tmp_path, "job", "list", "--state", "queued")) == 4
    assert {job["state"] for job in answer(tmp_path, "job", "cancel", "--queue", "mail", "--yes")} == {"cancelled"}
    again = ("job", "retry", "--queue", "mail", "--state", "cancelled")
    assert tide(tmp_path, *again).stderr == "tide: yes: 3 jobs would be sent round again; add --yes to do it\n"
    assert tide(tmp_path, *again, "--yes").stdout == "3 sent round again\n"
    nothing = tide(tmp_path, "job", "cancel")
    assert (nothing.returncode, "name jobs by their ids" in nothing.stderr) == (2, True)
    assert answer(tmp_path, "job", "cancel", kept)[0]["state"] == "cancelled"


def test_jobs_that_are_named_are_all_cancelled_but_for_one_that_there_is_not(tmp_path: Path) -> None:
    first, last, missing = submit(tmp_path, "--", "ls"), submit(tmp_path, "--", "ls"), str(uuid4())
    done = tide(tmp_path, "job", "cancel", first, missing, last)
    assert (done.returncode, done.stderr) == (1, f"tide: no job {missing}\n")
    assert [line.split() for line in done.stdout.splitlines()] == [
        ["id", "state"],
        [first, "cancelled"],
        [last, "cancelled"],
    ]


def test_many_are_cancelled_and_sent_round_again_page_by_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picking, "PAGE", 2)
    monkeypatch.setattr(bulk, "AT_ONCE", 2)
    shown: list[tuple[int, int]] = []

    @contextmanager
    def bar() -> Iterator[Callable[[str, int, int], None]]:
        yield lambda _, done, total: shown.append((done, total))

    monkeypatch.setattr(bulk, "progress", bar)
    for _ in range(5):
        submit(tmp_path, "--", "ls")
    done = tide(tmp_path, "job", "cancel", "--queue", "default", "--yes")
    assert (done.returncode, done.stdout) == (0, "5 cancelled, 0 asked to stop\n")
    assert shown == [(2, 5), (4, 5), (5, 5)]
    again = tide(tmp_path, "job", "retry", "--queue", "default", "--state", "cancelled", "--yes")
    assert (again.returncode, again.stdout) == (0, "5 sent round again\n")
    assert shown[3:] == [(2, 5), (4, 5), (5, 5)]
    assert len(answer(tmp_path, "job", "list", "--state", "queued")) == 5


def test_one_that_cannot_be_sent_round_again_is_told(tmp_path: Path) -> None:
    job = submit(tmp_path, "--", "ls")
    left = tide(tmp_path, "job", "retry", job)
    assert (left.returncode, left.stdout) == (1, "0 sent round again\n")
    assert "1 were left alone" in left.stderr
    gone = tide(tmp_path, "job", "show", str(uuid4()))
    assert (gone.returncode, gone.stderr[:12]) == (1, "tide: no job")


@pytest.mark.parametrize("cause", [Cause.RETURNED, Cause.GAVE_UP])
@pytest.mark.parametrize("option", ["--wait", "--follow"])
def test_a_job_is_waited_for_and_followed_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, option: str, cause: Cause
) -> None:
    class Meanwhile(SystemClock):
        async def sleep(self, _: float) -> None:
            """Let the job be run while the command waits."""
            await asyncio.to_thread(work, tmp_path, cause, "7" if good else None, "one", "two")

    good = cause is Cause.RETURNED
    monkeypatch.setattr(following, "SystemClock", Meanwhile)
    done = tide(tmp_path, "submit", option, "--task", "t")
    job, *said = done.stderr.splitlines()
    assert (str(UUID(job)), done.returncode) == (job, 0 if good else 1)
    assert done.stdout.splitlines() == ["one", "two", *(["7"] if good else [])]
    end = ["succeeded, run 1"] if good else ["dead, run 1: no answer", "at all"]
    standing = ["tide: queued", f"tide: {end[0]}", *end[1:]] if option == "--follow" else []
    assert said == [*standing, *([] if good else [f"tide: job {job} is dead: no answer", "at all"])]


@pytest.fixture(autouse=True)
def _no_leftovers() -> Iterator[None]:
    yield
    assert not [name for name in os.environ if name.startswith("TIDE_DATABASE")]


def test_jobs_are_listed_by_what_their_error_says(tmp_path: Path) -> None:
    dead = submit(tmp_path, "--", "ls")
    work(tmp_path, Cause.GAVE_UP)
    submit(tmp_path, "--", "ls")
    assert [each["id"] for each in answer(tmp_path, "job", "list", "--error", "no answer")] == [dead]
    assert answer(tmp_path, "job", "list", "--error", "another") == []
    assert [each["id"] for each in answer(tmp_path, "job", "list", "--search", "ANSWER command")] == [dead]
    assert [each["id"] for each in answer(tmp_path, "job", "list", "--search", dead)] == [dead]


def test_a_job_that_is_submitted_in_a_trace_says_so(tmp_path: Path) -> None:
    span = f"00-{'a' * 32}-{'b' * 16}-01"
    made = tide(tmp_path, "submit", "--", "ls", TRACEPARENT=span, TRACESTATE="v=1").stdout.strip()
    assert f"trace             {span}" in tide(tmp_path, "job", "show", made).stdout
    assert answer(tmp_path, "job", "show", made)["traceparent"] == span
    assert answer(tmp_path, "job", "show", submit(tmp_path, "--", "ls"))["traceparent"] is None
