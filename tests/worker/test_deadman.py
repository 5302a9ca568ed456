"""The kernel's timer, with real processes."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidewheel.clock import SystemClock

CODE = """
import os, signal, sys, time
from tidewheel.clock import SystemClock
from tidewheel.worker.deadman import DeadMan
from tidewheel.worker.sandbox.parent_death import die_with_parent

clock = SystemClock()
deadman = DeadMan()
mine = os.getpid()
ready, tell = os.pipe()
child = os.fork()
if child == 0:
    die_with_parent(lambda: os.getppid() == mine)
    os.write(tell, b"!")  # whoever is stopped before this point would not die with its parent
    while True:
        time.sleep(1)
os.read(ready, 1)
deadman.arm(clock.monotonic() + float(sys.argv[1]))
print(child, flush=True)
for line in sys.stdin:
    if line.strip() == "disarm":
        deadman.disarm()
    elif line.strip() == "again":
        deadman.arm(clock.monotonic() + float(sys.argv[1]))
    print("done", flush=True)
"""


class Armed:
    """A process with an armed timer, and its child."""

    def __init__(self, seconds: float) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE, str(seconds)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.child = int(self.process.stdout.readline())

    def say(self, word: str) -> None:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        assert self.process.stdout.readline() == "done\n"

    def stop_both(self) -> None:
        for pid in (self.process.pid, self.child):
            os.kill(pid, signal.SIGSTOP)

    def child_is_gone(self) -> bool:
        try:
            return Path(f"/proc/{self.child}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        except FileNotFoundError:
            return True


@pytest.fixture
def armed() -> Iterator[Armed]:
    one = Armed(1.0)
    yield one
    one.process.kill()
    one.process.wait()
    for pipe in (one.process.stdin, one.process.stdout):
        if pipe is not None:
            pipe.close()


def test_a_stopped_process_and_its_stopped_child_die_without_being_continued(armed: Armed) -> None:
    armed.stop_both()

    assert armed.process.wait(timeout=20) == -signal.SIGKILL
    deadline = SystemClock().monotonic() + 20
    while not armed.child_is_gone() and SystemClock().monotonic() < deadline:
        time.sleep(0.01)  # noqa: TID251 - the kernel gives no word of it
    assert armed.child_is_gone()


def test_who_sets_the_timer_anew_lives_on(armed: Armed) -> None:
    began = SystemClock().monotonic()
    while SystemClock().monotonic() - began < 2.0:
        armed.say("again")

    assert armed.process.poll() is None


def test_a_timer_that_was_disarmed_kills_nobody(armed: Armed) -> None:
    armed.say("disarm")

    with pytest.raises(subprocess.TimeoutExpired):
        armed.process.wait(timeout=1.5)
