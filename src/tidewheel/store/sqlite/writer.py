"""The one writer: a thread that owns the only writing connection, groups commits, and does every checkpoint.

What is asked of the store while a commit waits for the disk is done together in the next transaction, each piece inside
a savepoint of its own: one that fails is undone alone, and nobody hears of success before the commit. If the commit
itself fails, all of the group hear that and nothing of it is stored.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final, NamedTuple, TypeVar

import apsw

from tidewheel.errors import TideError, Unavailable
from tidewheel.store.sqlite.connection import Busy, translate
from tidewheel.store.sqlite.inotify import touch
from tidewheel.store.sqlite.place import log_of
from tidewheel.store.sqlite.session import Hint, Session

T = TypeVar("T")

MOST_IN_GROUP: Final = 200
CHECKPOINT_PAGES: Final = 4_000
"""When the log has this many pages (16 MB) it is copied into the database, as far as readers allow."""
TRUNCATE_PAGES: Final = 16_000
"""When it still grew to this (64 MB), the file of the log is cut off as soon as nobody reads."""


class Call(NamedTuple):
    """A piece of work, and whom to tell."""

    work: Callable[[Session], Any]
    loop: asyncio.AbstractEventLoop
    answer: "asyncio.Future[Any]"


class Look:
    """Asks the thread to see whether another process has committed something that listeners should hear of."""


_LOOK: Final = Look()


class Writer:
    """Runs work on the writing connection, one group of calls in one transaction."""

    def __init__(self, path: Path, session: Session) -> None:
        self._path = path
        self._session = session
        self._connection = session.connection
        self._calls: SimpleQueue[Call | Look | None] = SimpleQueue()
        self._log_pages = 0
        self._checkpoint_at = CHECKPOINT_PAGES
        self._closing = False
        self.commits = 0
        self.on_hint: Callable[[], None] | None = None
        """Called on the thread after a commit, by this process or another, that listeners should hear of."""
        self._log = log_of(path)
        self._connection.set_wal_hook(self._note_log)
        self._thread = threading.Thread(target=self._work, name=f"tide-writer {path.name}", daemon=True)
        self._thread.start()

    def run(self, work: Callable[[Session], T]) -> "asyncio.Future[T]":
        """Do a piece of work in a transaction; its answer comes after the commit."""
        if self._closing:
            raise Unavailable(f"{self._path} was closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.put(Call(work, loop, answer))
        return answer

    def look(self) -> None:
        """See soon whether another process has committed something; from whichever thread."""
        if not self._closing:
            self._calls.put(_LOOK)

    def close(self) -> None:
        """Finish what was asked for, then close the connection; blocks until that is done."""
        if not self._closing:
            self._closing = True
            self._calls.put(None)
        self._thread.join()

    # Below here everything runs on the thread.

    def _work(self) -> None:
        while (first := self._calls.get()) is not None:
            if isinstance(first, Look):
                with suppress(apsw.Error):  # whatever is wrong shows at the next piece of work
                    self._session.hear()
            else:
                answers = self._do_group(first)
                _tell(answers)
                del answers
            del first
            self._give_hint()
            self._keep_log_short()
        self._connection.close()

    def _give_hint(self) -> None:
        hint = self._session.take_hint()
        if hint is None:
            return
        if hint is Hint.FOR_ALL:
            touch(self._log)
        if self.on_hint is not None:
            self.on_hint()

    def _do_group(self, first: Call) -> list[tuple[Call, Any]]:
        """Do what is waiting in one transaction; an answer that is an exception is to be raised."""
        answers: list[tuple[Call, Any]] = []
        committing = False
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._session.begin()
            self._fill_group(first, answers)
            committing = True
            self._connection.execute("COMMIT")
            self.commits += 1
        except apsw.Error as error:
            self._undo()
            failure = translate(error, self._path, committing=committing)
            answers = [(call, answer if _own_fault(answer) else failure) for call, answer in answers]
            if not answers:
                answers = [(first, failure)]
        except BaseException as error:  # noqa: BLE001 - the thread must live, and the caller must hear
            self._undo()
            answers = [(call, error) for call, _ in answers] or [(first, error)]
        return answers

    def _fill_group(self, call: Call, answers: list[tuple[Call, Any]]) -> None:
        while True:
            if not call.answer.cancelled():
                answers.append((call, None))
                answers[-1] = (call, self._do(call))
            if len(answers) >= MOST_IN_GROUP:
                return
            more = self._next()
            if more is None:
                return
            call = more

    def _next(self) -> Call | None:
        """Return what waits, if anything does; what others committed was noticed when this transaction began."""
        try:
            while isinstance(more := self._calls.get_nowait(), Look):
                self._session.hear()
        except Empty:
            return None
        if more is None:
            self._calls.put(None)
        return more

    def _do(self, call: Call) -> Any:
        self._connection.execute("SAVEPOINT piece")
        try:
            answer = call.work(self._session)
        except Exception as error:
            if isinstance(error, apsw.Error) and not self._connection.in_transaction:
                raise  # SQLite has undone the whole transaction, as it does when the disk is full
            self._connection.execute("ROLLBACK TO piece")
            self._connection.execute("RELEASE piece")
            self._session.forget()
            return translate(error, self._path)
        self._connection.execute("RELEASE piece")
        return answer

    def _undo(self) -> None:
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        self._session.forget()

    def _note_log(self, _connection: apsw.Connection, _name: str, pages: int) -> int:
        self._log_pages = pages
        return apsw.SQLITE_OK

    def _keep_log_short(self) -> None:
        """Copy the log into the database when it has grown; while someone reads, try again when it grew as much."""
        if self._log_pages < self._checkpoint_at:
            return
        truncate = self._log_pages >= TRUNCATE_PAGES
        mode = apsw.SQLITE_CHECKPOINT_TRUNCATE if truncate else apsw.SQLITE_CHECKPOINT_PASSIVE
        self._connection.set_busy_handler(None)  # a reader may take its time, but no writer waits for it
        try:
            pages, copied = self._connection.wal_checkpoint(mode=mode)
            whole = copied >= pages
        except apsw.Error:
            whole = False
        self._connection.set_busy_handler(Busy())
        self._checkpoint_at = CHECKPOINT_PAGES + (0 if whole else self._log_pages)


def _own_fault(answer: Any) -> bool:
    return isinstance(answer, TideError) and not isinstance(answer, Unavailable)


def _tell(answers: list[tuple[Call, Any]]) -> None:
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Call, Any]]] = {}
    for answer in answers:
        by_loop.setdefault(answer[0].loop, []).append(answer)
    for loop, group in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, group)
        except RuntimeError:
            continue  # the loop is gone, and with it whoever asked


def _resolve(group: list[tuple[Call, Any]]) -> None:
    for call, answer in group:
        if call.answer.done():
            continue
        if isinstance(answer, BaseException):
            call.answer.set_exception(answer)
        else:
            call.answer.set_result(answer)
