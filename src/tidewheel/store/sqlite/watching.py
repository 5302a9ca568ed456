"""Noticing what other processes commit: a thread that sleeps until one touches the log, then looks at the version.

Whoever commits something that others should hear of touches the log afterwards. Commits that concern nobody else, as
those of a keeper that finds nothing to do, wake nobody.
"""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

import apsw

from tidewheel.store.sqlite.connection import connect_reader
from tidewheel.store.sqlite.inotify import FileWatch
from tidewheel.store.sqlite.place import log_of

LOOK_EVERY: Final = 0.02
"""Seconds between two looks where the system does not tell of writes."""
PAUSE: Final = 0.005
"""Seconds between two hints at least: a process that commits all the time must not keep the others busy."""
BREATH: Final = 0.001
"""Seconds between two looks at least."""
AFTER_AN_ERROR: Final = 1.0


class Watch(Protocol):
    """Something that tells when to look."""

    def wait(self, seconds: float | None) -> bool:
        """Return True after a touch, False when the time has passed or `stop` was called."""
        ...

    def stop(self) -> None: ...

    def close(self) -> None: ...


class Ticks:
    """Stands in for a watch where the system has none."""

    def __init__(self) -> None:
        self._stopped = threading.Event()

    def wait(self, seconds: float | None) -> bool:
        del seconds
        self._stopped.wait(LOOK_EVERY)
        return False

    def stop(self) -> None:
        self._stopped.set()

    def close(self) -> None:
        pass


class Watcher:
    """Calls `changed` soon after a commit worth hearing of, and `ailing` when that cannot be told, or can again."""

    def __init__(self, path: Path, changed: Callable[[], None], ailing: Callable[[bool], None]) -> None:
        self._changed = changed
        self._ailing = ailing
        self._ails = False
        self._stopped = threading.Event()
        self.connection = connect_reader(path)
        self._watch = _watch(path)
        self._version = self._data_version()
        self._thread = threading.Thread(target=self._work, name=f"tide-watcher {path.name}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and close the connection; blocks until that is done."""
        self._stopped.set()
        self._watch.stop()
        self._thread.join()
        self._watch.close()
        self.connection.close()

    # Below here everything runs on the thread.

    def _work(self) -> None:
        while not self._stopped.is_set():
            self._watch.wait(None)
            try:
                self._look()
            except apsw.Error:
                self._note(ails=True)
                self._stopped.wait(AFTER_AN_ERROR)
            else:
                self._note(ails=False)

    def _look(self) -> None:
        version = self._data_version()
        if version == self._version:
            self._stopped.wait(BREATH)
            return
        self._version = version
        self._changed()
        self._stopped.wait(PAUSE)

    def _note(self, *, ails: bool) -> None:
        if ails != self._ails:
            self._ails = ails
            self._ailing(ails)

    def _data_version(self) -> int:
        version: int = self.connection.execute("PRAGMA data_version").get
        return version


def _watch(path: Path) -> Watch:
    try:
        return FileWatch(log_of(path))
    except OSError:
        return Ticks()
