"""The harness's own log: what it broke, who died, what the client was told; kept in memory and on disk."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from harness.checker.records import Death, Fault, Healed, Kill, Record, from_lines, to_lines
from harness.witness import EVENTS, boottime

JOURNAL: Final = "journal.jsonl"


class Journal:
    """Takes records from any thread; each is on disk when `add` returns."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._file = (folder / JOURNAL).open("ab", buffering=0)

    def add(self, *records: Record) -> None:
        """Write down what happened."""
        with self._lock:
            self._file.write(b"".join(to_lines(records)))

    def died(self, pid: int, status: int | None = None) -> None:
        """Write down that a process is dead by now."""
        self.add(Death(t=boottime(), pid=pid, status=status))

    def healed(self) -> None:
        """Write down that no fault is under way."""
        self.add(Healed(t=boottime()))

    @contextmanager
    def fault(self, name: str) -> Iterator[None]:
        """Write down when a fault begins and when it is over."""
        self.add(Fault(t=boottime(), name=name, phase="begin"))
        try:
            yield
        finally:
            self.add(Fault(t=boottime(), name=name, phase="end"))

    def killed(self, pid: int, role: str) -> None:
        """Write down that a process was killed on purpose."""
        self.add(Kill(t=boottime(), pid=pid, role=role))

    def close(self) -> None:
        self._file.close()


def recorded(folder: Path) -> list[Record]:
    """Return all that was written down in a folder, by the harness and by the tasks."""
    records: list[Record] = []
    for name in (JOURNAL, EVENTS):
        if (folder / name).exists():
            with (folder / name).open("rb") as lines:
                records += from_lines(lines)
    return records
