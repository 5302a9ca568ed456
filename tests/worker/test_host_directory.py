"""Directories of hosts: none is left behind by the dead, none of the living or of others is touched."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from threading import Thread

import pytest

from tests.worker.executors.tools import names_in
from tests.worker.running import until
from tidewheel.worker.host_directory import artifact_directory, host_directory, sweep

SOMEONE = 54_321
HOST = """
import sys, time
from tidewheel.worker.host_directory import host_directory
with host_directory(sys.argv[1]) as path:
    (path / "left" / "deep").mkdir(parents=True)
    (path / "left" / "deep" / "file").write_text("x")
    (path / "left").chmod(0)
    print(path, flush=True)
    sys.stdin.read()
"""


def a_host(folder: Path) -> tuple[subprocess.Popen[str], Path]:
    host = subprocess.Popen(
        [sys.executable, "-c", HOST, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert host.stdout is not None
    return host, Path(host.stdout.readline().strip())


def end(host: subprocess.Popen[str], how: signal.Signals | None = None) -> None:
    if how is not None:
        host.send_signal(how)
    host.communicate(timeout=60)


def test_a_directory_is_gone_with_its_host_and_that_of_a_killed_one_with_the_next(tmp_path: Path) -> None:
    killed, left = a_host(tmp_path)
    lives, kept = a_host(tmp_path)
    end(killed, signal.SIGKILL)
    assert left.exists()

    ends, own = a_host(tmp_path)
    until(lambda: not left.exists(), "the next host to sweep")
    assert (kept / "left").is_dir(), "that of a host that lives"
    end(ends)
    assert not own.exists()
    end(lives)
    assert names_in(tmp_path) == []


def test_nothing_is_swept_but_directories_of_ours_by_name_and_owner(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("x")
    (tmp_path / "tide-runs-linked00").symlink_to(elsewhere)
    (tmp_path / "tide-runs-afile000").write_text("x")
    for name in ("tide-runs-", "tide-runs-notes-of-mine", "other-abcdefgh", "tide-runs-someone0"):
        (tmp_path / name).mkdir()
    (tmp_path / "tide-runs-deadbeef").mkdir()
    if os.geteuid() == 0:
        os.chown(tmp_path / "tide-runs-someone0", SOMEONE, SOMEONE)
    else:
        (tmp_path / "tide-runs-someone0").rmdir()
    before = names_in(tmp_path)

    sweep(str(tmp_path))

    assert names_in(tmp_path) == [name for name in before if name != "tide-runs-deadbeef"]
    assert names_in(elsewhere) == ["file"]


def test_a_host_that_just_starts_keeps_its_directory_whenever_another_sweeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = tempfile.mkdtemp
    swept: list[str] = []

    def make_and_be_swept(**where: str) -> str:
        made = make(**where)
        if not swept:
            sweep(str(tmp_path))
            swept.append(made)
        return made

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_be_swept)
    with host_directory(str(tmp_path)) as path:
        sweep(str(tmp_path))
        assert names_in(tmp_path) == [path.name]
        assert [str(path)] != swept


def test_hosts_that_start_and_sweep_at_once_do_each_other_no_harm(tmp_path: Path) -> None:
    harmed: list[Path] = []

    def be_a_host() -> None:
        for _ in range(30):
            with host_directory(str(tmp_path)) as path:
                (path / "file").write_text("x")
                sweep(str(tmp_path))
                if not (path / "file").exists():
                    harmed.append(path)

    hosts = [Thread(target=be_a_host) for _ in range(4)]
    for host in hosts:
        host.start()
    for host in hosts:
        host.join()

    assert harmed == []
    until(lambda: names_in(tmp_path) == [], "the last sweepers to end")


def test_artifacts_are_kept_where_only_their_user_may_enter(tmp_path: Path) -> None:
    first = artifact_directory(str(tmp_path), tmp_path / "own")

    assert first == artifact_directory(str(tmp_path), tmp_path / "own") != tmp_path / "own"
    assert first.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("what", ["link", "file", "open to others", "of someone else"])
def test_a_place_that_someone_prepared_is_not_used(tmp_path: Path, what: str, caplog: pytest.LogCaptureFixture) -> None:
    planted, own = tmp_path / f"tide-artifacts-{os.geteuid()}", tmp_path / "own"
    if what == "link":
        (tmp_path / "elsewhere").mkdir(0o700)
        planted.symlink_to(tmp_path / "elsewhere")
    elif what == "file":
        planted.write_text("x")
    else:
        planted.mkdir(0o700)
        if what == "open to others":
            planted.chmod(0o777)
        elif os.geteuid() == 0:
            os.chown(planted, SOMEONE, SOMEONE)
        else:
            pytest.skip("only root can give a folder away")

    assert artifact_directory(str(tmp_path), own) == own
    assert str(planted) in caplog.text
