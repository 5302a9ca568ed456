"""`tide artifact`, straight on the store and through a server; and large results through a server."""

import asyncio
import hashlib
import json
import os
from pathlib import Path

import pytest

from tests.builders import a_claim, a_worker, outcome_of
from tests.cli.terminal import tide
from tests.cli.test_servers import served  # noqa: F401 - a fixture
from tidewheel.blobs import open_blobs
from tidewheel.store.base import Store
from tidewheel.store.sqlite import open_store
from tidewheel.wiring import blobs_url

TEXT = b"#!/bin/sh\necho hello\n"
DIGEST = hashlib.sha256(TEXT).hexdigest()
OTHER = hashlib.sha256(b"nothing").hexdigest()


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder to work in, and where Tidewheel is."""
    if request.param == "store":
        return tmp_path, {}
    _, url, key = request.getfixturevalue("served")
    return tmp_path, {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}


def test_a_file_is_brought_once_listed_and_fetched(place: tuple[Path, dict[str, str]]) -> None:
    folder, where = place
    (folder / "hello.sh").write_bytes(TEXT)
    for _ in range(2):
        brought = tide(folder, "artifact", "put", "hello.sh", **where)
        assert (brought.returncode, brought.stdout) == (0, f"{DIGEST}\n"), brought.stderr
    listed = json.loads(tide(folder, "artifact", "list", "-o", "json", **where).stdout)
    assert [(each["digest"], each["size"], each["name"]) for each in listed] == [(DIGEST, len(TEXT), "hello.sh")]

    fetched = tide(folder, "artifact", "get", DIGEST, "--to", "copy.sh", **where)
    assert (fetched.returncode, fetched.stdout) == (0, "copy.sh\n"), fetched.stderr
    assert (folder / "copy.sh").read_bytes() == TEXT
    there = tide(folder, "artifact", "get", DIGEST, **where)
    assert (there.returncode, there.stderr.count("\n")) == (2, 1)
    assert "hello.sh here already: say by --to" in there.stderr
    (folder / "hello.sh").unlink()
    assert tide(folder, "artifact", "get", DIGEST, **where).stdout == "hello.sh\n"
    assert (folder / "hello.sh").read_bytes() == TEXT


def test_nothing_but_a_file_is_replaced_by_a_file(place: tuple[Path, dict[str, str]]) -> None:
    folder, where = place
    (folder / "hello.sh").write_bytes(TEXT)
    tide(folder, "artifact", "put", "hello.sh", **where)
    os.mkfifo(folder / "pipe")
    refused = tide(folder, "artifact", "get", DIGEST, "--to", "pipe", **where)
    assert (refused.returncode, refused.stderr) == (2, "tide: to: must name a file, not 'pipe'\n")
    assert (folder / "pipe").is_fifo()


def test_what_is_wrong_with_a_file_is_told_in_one_line(place: tuple[Path, dict[str, str]]) -> None:
    folder, where = place
    for code, words in (
        (2, ("put", "nothing.sh")),
        (2, ("get", "no-digest")),
        (1, ("get", OTHER)),
        (2, ("put", ".")),
    ):
        wrong = tide(folder, "artifact", *words, **where)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (code, "", 1), wrong.stderr
    assert list(folder.glob(".tide-*")) == []


def test_a_file_of_a_job_is_brought_through_the_server(
    served: tuple[Path, str, str],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    _, url, key = served
    (tmp_path / "job.sh").write_bytes(TEXT + b"# of a job\n")
    place = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}
    made = tide(tmp_path, "submit", "--artifact", "job.sh", **place)
    assert made.returncode == 0, made.stderr
    job = json.loads(tide(tmp_path, "job", "show", made.stdout.strip(), "-o", "json", **place).stdout)
    digest = job["args"]["artifact"]
    assert digest == hashlib.sha256(TEXT + b"# of a job\n").hexdigest()
    assert digest in tide(tmp_path, "artifact", "list", **place).stdout
    assert [each.name for each in tmp_path.iterdir()] == ["job.sh"], "nothing was kept here"


def test_a_large_result_is_fetched_through_the_server(
    served: tuple[Path, str, str],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    folder, url, key = served
    place = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}
    job = tide(tmp_path, "submit", "--queue", "large", "--", "true", **place).stdout.strip()

    async def end_it() -> None:
        store: Store = await open_store(folder / "jobs.db")
        worker = await store.register(a_worker(queues=("large",)))
        (run,) = (await store.claim(a_claim(worker.id, queues=("large",)))).runs
        blobs = open_blobs(blobs_url(f"sqlite:///{folder}/jobs.db", None))
        location = await blobs.store_result(run.job_id, run.token, '{"rows":[1,2,3]}')
        await store.settle(worker.id, [outcome_of(run, result=None, result_location=location)])
        await store.close()

    asyncio.run(end_it())
    found = tide(tmp_path, "job", "result", job, "-o", "json", **place)
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout) == {"rows": [1, 2, 3]}


def test_a_damaged_file_does_not_appear(
    served: tuple[Path, str, str],  # noqa: F811 - the fixture
    tmp_path: Path,
) -> None:
    folder, url, key = served
    place = {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}
    (tmp_path / "good.txt").write_bytes(b"good")
    digest = tide(tmp_path, "artifact", "put", "good.txt", **place).stdout.strip()
    (stored,) = (path for path in folder.rglob("*") if path.is_file() and path.read_bytes() == b"good")
    stored.chmod(0o644)
    stored.write_bytes(b"evil")
    wrong = tide(tmp_path, "artifact", "get", digest, "--to", "copy.txt", **place)
    assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (1, "", 1), wrong.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["good.txt"]
