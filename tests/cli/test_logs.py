"""Searching and following lines on the command line."""

import asyncio
import json
from pathlib import Path

from tests.builders import a_job
from tests.cli.terminal import tide
from tidewheel.clock import SystemClock
from tidewheel.model.log import LogLine
from tidewheel.store.sqlite import open_store


def say(folder: Path, *texts: str) -> str:
    async def store_lines() -> str:
        store = await open_store(folder / "jobs.db")
        (answer,) = await store.submit([a_job("shop")])
        now = SystemClock().now()
        lines = [LogLine(answer.job_id, 1, number, now, "log", "error", text) for number, text in enumerate(texts)]
        await store.append_logs(lines)
        await store.close()
        return str(answer.job_id)

    return asyncio.run(store_lines())


def test_lines_are_found_by_words_and_options(tmp_path: Path) -> None:
    job = say(tmp_path, "payment refused by bank", "payment accepted", "other")
    head, *lines = tide(tmp_path, "logs", "payment").stdout.splitlines()
    assert head.split() == ["at", "kind", "job", "level", "text"]
    assert [line.split()[-1] for line in lines] == ["bank", "accepted"]
    found = json.loads(
        tide(tmp_path, "logs", "refused by", "--kind", "shop", "--level", "warning", "-o", "json").stdout
    )
    assert [(line["job_id"], line["text"]) for line in found] == [(job, "payment refused by bank")]
    assert (
        json.loads(tide(tmp_path, "logs", "--job", job, "--since", "1h", "--last", "2", "-o", "json").stdout)[0]["text"]
        == "payment accepted"
    )
    assert tide(tmp_path, "logs", "by refused", "-o", "json").stdout.strip() == "[]"


def test_bad_words_are_told_in_one_line(tmp_path: Path) -> None:
    for words, told in (
        (('"open',), "tide: q: "),
        (("--level", "a b"), "tide: level: "),
        (("--job", "x"), "tide: job: "),
    ):
        wrong = tide(tmp_path, "logs", *words)
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1), wrong.stderr
        assert wrong.stderr.startswith(told)


def test_an_instant_before_all_dates_is_refused_in_one_line(tmp_path: Path) -> None:
    for words in (("logs", "--since"), ("job", "list", "--since"), ("job", "list", "--before")):
        wrong = tide(tmp_path, *words, "800000d")
        option = words[-1].removeprefix("--")
        assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1), wrong.stderr
        assert option in wrong.stderr
        assert "800000d" in wrong.stderr
