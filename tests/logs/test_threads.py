"""Threads speak for the run that started them, and a pool's for whoever handed the work over."""

import asyncio
import gc
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.logs.test_handler import Sink, logging_to
from tidewheel.logs.handler import RunSink, current_sink
from tidewheel.logs.threads import carry_runs_into_threads


@pytest.fixture(autouse=True)
def carried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading.Thread, "start", threading.Thread.start)  # as it is to be afterwards
    monkeypatch.setattr(ThreadPoolExecutor, "submit", ThreadPoolExecutor.submit)
    carry_runs_into_threads()


def seen_by_a_thread() -> RunSink | None:
    seen: list[RunSink | None] = []
    thread = threading.Thread(target=lambda: seen.append(current_sink.get()))
    thread.start()
    thread.join()
    return seen[0]


class Own(threading.Thread):
    def __init__(self) -> None:
        super().__init__()
        self.seen: RunSink | None = None

    def run(self) -> None:
        self.seen = current_sink.get()


def test_a_thread_knows_the_run_that_started_it() -> None:
    first, second = Sink(), Sink()
    with logging_to(first):
        assert seen_by_a_thread() is first
        own = Own()
        timer = threading.Timer(0, lambda: None)
        with logging_to(second):
            own.start()
            timer.start()
            assert seen_by_a_thread() is second
    own.join()
    timer.join()

    assert own.seen is second
    assert seen_by_a_thread() is None


async def test_what_a_pool_does_knows_whoever_handed_it_over() -> None:
    first, second = Sink(), Sink()
    with ThreadPoolExecutor(1) as pool:
        for sink in (first, second, None, first):
            with logging_to(sink):  # type: ignore[arg-type]
                assert pool.submit(current_sink.get).result() is sink
                assert await asyncio.get_running_loop().run_in_executor(pool, current_sink.get) is sink
                assert await asyncio.get_running_loop().run_in_executor(None, current_sink.get) is sink
                assert await asyncio.to_thread(seen_by_a_thread) is sink


def test_a_thread_that_cannot_be_started_twice_says_so_and_one_that_fails_is_told_as_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda args: told.append(repr(args.exc_value)))
    with logging_to(Sink()):
        thread = threading.Thread(target=lambda: 1 / 0)
        thread.start()
        thread.join()
        with pytest.raises(RuntimeError, match="once"):
            thread.start()

    assert told == ["ZeroDivisionError('division by zero')"]


def test_a_thread_holds_on_to_nothing_when_it_has_ended() -> None:
    gc.disable()
    try:
        with logging_to(Sink()):
            own = Own()
            own.start()
            own.join()
        gone = weakref.ref(own)
        del own
        assert gone() is None, "without a collection"
    finally:
        gc.enable()
