"""Evidence is whole, survives its writer, and tells exactly whether a run was alone."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from harness import witness
from harness.checker.records import Witness
from harness.journal import recorded
from harness.witness import Evidence, witnessed
from tests.builders import SECOND

JOB = UUID("018f2f6e-0000-7000-8000-000000000001")


def told(folder: Path) -> list[Witness]:
    return [record for record in recorded(folder) if isinstance(record, Witness)]


def test_a_run_tells_its_start_its_ticks_and_its_end(tmp_path: Path) -> None:
    before = witness.boottime()
    with witnessed(tmp_path, JOB, 3) as evidence:
        evidence.tick()
    after = witness.boottime()

    start, tick, end = told(tmp_path)

    assert [start.event, tick.event, end.event] == ["start", "tick", "end"]
    assert {(record.job, record.token, record.pid) for record in (start, tick, end)} == {(str(JOB), 3, os.getpid())}
    assert len({record.run for record in (start, tick, end)}) == 1
    assert before <= start.t <= tick.t <= end.t <= after
    assert (start.alone, end.ok) == (True, True)


def test_a_run_that_raises_did_not_end_well(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), witnessed(tmp_path, JOB, 1):
        raise KeyboardInterrupt

    assert told(tmp_path)[-1].ok is False


def test_a_second_run_of_a_job_sees_that_it_is_not_alone(tmp_path: Path) -> None:
    with witnessed(tmp_path, JOB, 1), witnessed(tmp_path, JOB, 2), witnessed(tmp_path, uuid4(), 1):
        pass
    with witnessed(tmp_path, JOB, 3):
        pass

    assert [record.alone for record in told(tmp_path) if record.event == "start"] == [True, False, True, True]


def test_a_run_is_not_alone_while_a_process_of_the_last_one_lives(tmp_path: Path) -> None:
    reading, writing = os.pipe()
    with witnessed(tmp_path, JOB, 1):
        if (child := os.fork()) == 0:
            os.close(writing)
            os.read(reading, 1)  # until the pipe is closed
            os._exit(0)
    with witnessed(tmp_path, JOB, 2):
        pass
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)
    with witnessed(tmp_path, JOB, 3):
        pass

    assert [record.alone for record in told(tmp_path) if record.event == "start"] == [True, False, True]


def test_evidence_and_lock_of_a_killed_process_are_just_right(tmp_path: Path) -> None:
    names = {witness.JOB_VARIABLE: str(JOB), witness.TOKEN_VARIABLE: "1:1"}
    with subprocess.Popen([sys.executable, witness.__file__, tmp_path, "60"], env=os.environ | names) as command:
        deadline = witness.boottime() + 30
        while len(told(tmp_path)) < 5 and witness.boottime() < deadline:
            time.sleep(0.01)  # noqa: TID251 - another process gives no other signal
        with witnessed(tmp_path, JOB, 2):
            pass
        os.kill(command.pid, signal.SIGKILL)
    with witnessed(tmp_path, JOB, 3):
        pass

    first = [record for record in told(tmp_path) if record.token == 1]
    assert {record.pid for record in first} == {command.pid}
    assert [record.event for record in first[:2]] == ["start", "tick"]
    assert not any(record.event == "end" for record in first)
    assert [record.alone for record in told(tmp_path) if record.event == "start"] == [True, False, True]


def test_a_command_prints_its_token(tmp_path: Path) -> None:
    names = {witness.JOB_VARIABLE: str(JOB), witness.TOKEN_VARIABLE: "1:7"}
    seconds = str(0.1 * SECOND.total_seconds())

    printed = subprocess.check_output([sys.executable, witness.__file__, tmp_path, seconds], env=os.environ | names)

    assert printed == b"7\n"
    assert told(tmp_path)[-1].ok is True


def test_many_writers_do_not_tear_one_another(tmp_path: Path) -> None:
    children = []
    for number in range(4):
        if (child := os.fork()) == 0:
            evidence = Evidence(tmp_path, uuid4(), number)
            for _ in range(500):
                evidence.tick()
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)

    records = told(tmp_path)
    assert len(records) == 2000
    assert {record.token for record in records} == {0, 1, 2, 3}
