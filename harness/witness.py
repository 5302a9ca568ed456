"""Evidence that a task leaves of itself, in files that outlive it. Needs nothing but the standard library.

Each event is one line, written by one `write` to a file opened with O_APPEND: it is there whole or not at all, even if
the writer is killed the moment after. And each run holds a lock of the kernel on its job, which ends with the last of
its processes: so the next run can tell exactly, and not by the clock, whether it is alone.

As a program it is a command that can be run as a job: `python witness.py <folder> <seconds>`.
"""

import fcntl
import json
import os
import secrets
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from uuid import UUID

TICK: Final = 0.03
"""Seconds between two signs of life."""
EVENTS: Final = "witness.jsonl"
LOCKS: Final = "witness.locks"
JOB_VARIABLE: Final = "TIDE_JOB_ID"
TOKEN_VARIABLE: Final = "TIDE_FENCING_TOKEN"
"""Where a command finds which run it is; the token comes after the epoch and a colon."""

_CREATED = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC


def boottime() -> float:
    """Return the host's clock that all processes share, and that counts suspensions."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def pid_space(process: int | str = "self") -> int:
    """Return which namespace the number of a process belongs to: two of them may use the same number."""
    return Path(f"/proc/{process}/ns/pid").stat().st_ino


class Evidence:
    """What one run leaves behind."""

    def __init__(self, folder: str | Path, job: UUID | str, token: int) -> None:
        self._job = UUID(str(job))
        self._common = {"type": "Witness", "job": str(self._job), "token": token, "run": secrets.token_hex(8)}
        self._events = os.open(Path(folder, EVENTS), _CREATED | os.O_APPEND, 0o666)
        self._lock = os.open(Path(folder, LOCKS), _CREATED, 0o666)

    def start(self) -> None:
        """Say that the run begins, and whether it is the only one of its job."""
        self._write("start", alone=self._take_lock())

    def tick(self) -> None:
        """Say that it is alive."""
        self._write("tick")

    def end(self, *, ok: bool) -> None:
        """Say that it is over, and let the next one be alone."""
        self._write("end", ok=ok)
        os.close(self._lock)
        os.close(self._events)

    def _write(self, event: str, **more: Any) -> None:
        record = self._common | more | {"event": event, "pid": os.getpid(), "space": pid_space(), "t": boottime()}
        line = json.dumps(record).encode() + b"\n"
        if os.write(self._events, line) != len(line):
            raise OSError("the evidence was not written whole")

    def _take_lock(self) -> bool:
        """Lock one byte of a file that all jobs share; the lock belongs to the open file, so forks keep it alive."""
        wanted = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, self._job.int % 2**62, 1, 0)
        try:
            fcntl.fcntl(self._lock, fcntl.F_OFD_SETLK, wanted)
        except BlockingIOError:
            return False
        return True


@contextmanager
def witnessed(folder: str | Path, job: UUID | str, token: int) -> Iterator[Evidence]:
    """Leave evidence of what is done inside: its start, and its end, which is a success unless something is raised."""
    evidence = Evidence(folder, job, token)
    evidence.start()
    try:
        yield evidence
    except BaseException:
        evidence.end(ok=False)
        raise
    evidence.end(ok=True)


def tick_for(evidence: Evidence, seconds: float) -> None:
    """Do nothing for a while, and show it."""
    until = boottime() + seconds
    while (left := until - boottime()) > 0:
        evidence.tick()
        time.sleep(min(TICK, left))


def main() -> int:
    """Be a command: tick for a while, and print the token."""
    folder, seconds = sys.argv[1], float(sys.argv[2])
    token = int(os.environ[TOKEN_VARIABLE].rpartition(":")[2])
    with witnessed(folder, os.environ[JOB_VARIABLE], token) as evidence:
        tick_for(evidence, seconds)
    print(token)
    return 0


if __name__ == "__main__":
    sys.exit(main())
