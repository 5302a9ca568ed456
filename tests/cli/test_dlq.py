"""Dead letters on the command line."""

import asyncio
from pathlib import Path
from uuid import UUID, uuid4

from tests.builders import a_claim, a_worker, outcome_of, some_jobs
from tests.cli.terminal import tide
from tidewheel.model.outcome import Failure
from tidewheel.model.states import Cause
from tidewheel.store.sqlite import open_store


def let_die(folder: Path, number: int) -> list[UUID]:
    async def die() -> list[UUID]:
        store = await open_store(folder / "jobs.db")
        worker = await store.register(a_worker())
        await store.submit(some_jobs(number, "charge", args={"order": 1}))
        runs = (await store.claim(a_claim(worker.id, number))).runs
        error = Failure(reason="error", message="no answer\nat all")
        await store.settle(worker.id, [outcome_of(run, Cause.GAVE_UP, error=error) for run in runs])
        await store.close()
        return [run.job_id for run in runs]

    return asyncio.run(die())


def test_dead_letters_are_shown_counted_and_sent_round_again(tmp_path: Path) -> None:
    first, *_ = let_die(tmp_path, 3)
    [head, only] = tide(tmp_path, "dlq", "groups").stdout.splitlines()
    assert head.split() == ["fingerprint", "jobs", "last", "seen", "kind", "error"]
    fingerprint, number, *_, kind, no, answer = only.split()
    assert (number, kind, no, answer) == ("3", "charge", "no", "answer")
    retried = tide(tmp_path, "dlq", "retry", str(first), "--args", '{"order": 7}')
    assert (retried.returncode, retried.stdout) == (0, f"{first} queued\n")
    chosen = ("--kind", "charge", "--fingerprint", fingerprint)
    assert tide(tmp_path, "dlq", "redrive", *chosen, "--dry-run").stdout == "2 would go\n"
    assert tide(tmp_path, "dlq", "redrive", *chosen, "--rate", "10", "--yes").stdout == "2 sent round again\n"
    assert len(tide(tmp_path, "dlq", "groups").stdout.splitlines()) == 1


def test_bad_words_are_told_in_one_line(tmp_path: Path) -> None:
    (job,) = let_die(tmp_path, 1)
    for words, told in (
        (("redrive", "--rate", "0"), "tide: rate: "),
        (("redrive", "--fingerprint", "?"), "tide: fingerprint: "),
        (("retry", str(job), "--args", "[1]"), "tide: args: "),
        (("retry", "nonsense"), "tide: job: "),
        (("redrive",), "tide: yes: 1 dead letters would go round again; add --yes"),
    ):
        wrong = tide(tmp_path, "dlq", *words)
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1), wrong.stderr
        assert wrong.stderr.startswith(told)
    gone = tide(tmp_path, "dlq", "retry", str(uuid4()))
    assert (gone.returncode, gone.stderr[:13]) == (1, "tide: no job ")
