"""`tide job outputs`, straight on the store and through a server."""

import asyncio
import json
import os
import stat
from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.terminal import tide
from tests.cli.test_servers import served  # noqa: F401 - a fixture
from tidewheel.blobs import open_blobs
from tidewheel.wiring import blobs_url

Place = tuple[Path, dict[str, str], Path]


@pytest.fixture(params=["store", "server"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A folder to work in, where Tidewheel is, and the folder of its database."""
    if request.param == "store":
        return tmp_path, {}, tmp_path
    home, url, key = request.getfixturevalue("served")
    return tmp_path, {"TIDE_URL": url, "TIDE_KEY": key, "TIDE_DATABASE": "sqlite:///nowhere/at/all.db"}, home


def leave(place: Place, files: dict[tuple[int, str], str]) -> str:
    """Submit a job, and let files be there as if its runs had left them."""
    folder, where, home = place
    job = tide(folder, "submit", "--", "true", **where).stdout.strip()
    blobs = open_blobs(blobs_url(f"sqlite:///{home}/tidewheel.db", None))
    for (token, name), text in files.items():
        (folder / "left").write_text(text)
        asyncio.run(blobs.store_output(UUID(job), token, name, folder / "left"))
    return job


def test_files_are_listed_by_run_and_those_of_the_last_are_fetched(place: Place) -> None:
    folder, where, _ = place
    job = leave(place, {(1, "a.txt"): "old", (2, "a.txt"): "new", (2, "deep/er/b.txt"): "more"})

    listed = json.loads(tide(folder, "job", "outputs", job, "-o", "json", **where).stdout)
    fetched = tide(folder, "job", "outputs", job, "--to", "here", **where)

    assert [(each["token"], each["name"], each["size"]) for each in listed] == [
        (1, "a.txt", 3),
        (2, "a.txt", 3),
        (2, "deep/er/b.txt", 4),
    ]
    assert (fetched.returncode, fetched.stdout) == (0, "here/a.txt\nhere/deep/er/b.txt\n"), fetched.stderr
    assert ((folder / "here/a.txt").read_text(), (folder / "here/deep/er/b.txt").read_text()) == ("new", "more")

    earlier = tide(folder, "job", "outputs", job, "--run", "1", "--to", "here", **where)
    assert (earlier.returncode, earlier.stdout) == (0, "here/a.txt\n"), earlier.stderr
    assert (folder / "here/a.txt").read_text() == "old"


def test_a_fetched_file_is_for_those_whom_the_user_lets_read(place: Place) -> None:
    folder, where, _ = place
    job = leave(place, {(1, "a.txt"): "secret"})
    before = os.umask(0o077)
    try:
        tide(folder, "job", "outputs", job, "--to", "here", **where)
    finally:
        os.umask(before)

    assert stat.S_IMODE((folder / "here/a.txt").stat().st_mode) == 0o600


def test_no_file_is_written_by_way_of_a_link_or_over_what_is_no_file(place: Place) -> None:
    folder, where, _ = place
    job = leave(place, {(1, "deep/b.txt"): "more"})
    (folder / "elsewhere").mkdir()
    (folder / "here").mkdir()
    (folder / "here/deep").symlink_to(folder / "elsewhere")

    refused = tide(folder, "job", "outputs", job, "--to", "here", **where)
    assert (refused.returncode, refused.stderr) == (2, "tide: to: here/deep is a link, and would lead elsewhere\n")
    assert list((folder / "elsewhere").iterdir()) == []

    (folder / "here/deep").unlink()
    (folder / "here/deep/b.txt").mkdir(parents=True)
    refused = tide(folder, "job", "outputs", job, "--to", "here", **where)
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1), refused.stderr


def test_what_is_not_there_is_told_in_one_line(place: Place) -> None:
    folder, where, _ = place
    job = leave(place, {})
    (folder / "file").write_text("")

    for code, words in (
        (1, (job, "--to", "here")),
        (1, ("01a1e11e-1dcf-707c-9333-56e6668dd66c",)),
        (2, ("no-id",)),
    ):
        wrong = tide(folder, "job", "outputs", *words, **where)
        assert (wrong.returncode, wrong.stdout, wrong.stderr.count("\n")) == (code, "", 1), wrong.stderr

    there = leave(place, {(1, "a.txt"): "a"})
    wrong = tide(folder, "job", "outputs", there, "--to", "file", **where)
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1), wrong.stderr
