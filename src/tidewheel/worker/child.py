"""A child of the supervisor, from its first word to its last: set up, take and serve jobs, stop some, drain."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

import uvloop

from tidewheel.blobs import Blobs
from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import LeaseLost
from tidewheel.observe import Numbers, Registry, tracing
from tidewheel.observe.catalogue import LATE_OUTCOMES, LOG_LINES, SLOTS
from tidewheel.observe.own_log import write_log
from tidewheel.store.base import Store
from tidewheel.worker.claimer import Claimer, Taker
from tidewheel.worker.counting import Inquiry, RunNumbers, slots_of
from tidewheel.worker.handover import Handover
from tidewheel.worker.link import Counted, Drain, Link, Message, Ready, Setup, Stop
from tidewheel.worker.loop_watch import TURN_EVERY, WHO_HAS_THE_LOOP
from tidewheel.worker.page import Page
from tidewheel.worker.reports import Reports
from tidewheel.worker.sandbox.parent_death import die_with_parent
from tidewheel.worker.secrets import Secrets
from tidewheel.worker.settler import RunKey, Settler

LEASE_LOST: Final = 4
"""The exit code of a child that the store no longer counts as alive."""
SETTLE_WITHIN: Final = 10.0
"""Seconds that a draining child waits for the store to take its last outcomes."""
SPANS_WITHIN: Final = 2.0
LOOK_EVERY: Final = 0.01
STOP_WITHIN: Final = 2.0
"""Seconds that runs have to end after they were told to be given back."""

_log = logging.getLogger(__name__)


class Part(Taker, Protocol):
    """What a child does with what it takes: a runner or a host."""

    @property
    def busy(self) -> int:
        """How many runs are under way."""

    async def serve(self) -> None:
        """Serve what was accepted, until cancelled."""

    def stop(self, keys: Iterable[RunKey]) -> None:
        """End runs that were asked to stop."""

    def expect(self, now: float) -> None:
        """Write on the page until when the loop may be silent."""

    def tell_who_has_the_loop(self) -> None:
        """Write on the page whose code is being executed; called in the middle of it."""

    def release_waiting(self) -> None:
        """Give back what was not started."""

    def release_running(self) -> None:
        """End what still runs, and give it back."""

    def break_off_storing(self) -> None:
        """Give back what has ended, and whose files or result are not stored yet."""


@dataclass(frozen=True)
class Workshop:
    """What every child works with."""

    setup: Setup
    store: Store
    blobs: Blobs
    settler: Settler
    reports: Reports
    handover: Handover
    page: Page
    clock: Clock
    numbers: RunNumbers


Open = Callable[[Setup], Awaitable[tuple[Store, Blobs]]]
Build = Callable[[Workshop, AsyncExitStack], Awaitable[Part]]


class Greeting(NamedTuple):
    """What a child has from its parent when it begins."""

    setup: Setup
    page: Page
    link: Link
    words: AsyncIterator[Message]
    """What the parent says, but for its questions about numbers, which are answered meanwhile."""
    registry: Registry
    """Where the child counts."""
    inquiry: Inquiry


def run_child(live: Callable[[Greeting], Awaitable[None]]) -> None:
    """Be a child: the arguments are the parent's pid, the socket to it and the page shared with it."""
    parent, link, page = (int(value) for value in sys.argv[1:4])
    die_with_parent(lambda: os.getppid() == parent)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)  # the supervisor says when to stop

    async def whole_life() -> None:
        greeting = await _greeted(socket.socket(fileno=link), Page(page))
        setup = greeting.setup
        write_log(setup.log, process=setup.part, worker=setup.name, **_worker_id(setup))
        _log.debug("begins, as a child of process %d", parent)
        await live(greeting)
        _log.debug("ends")
        greeting.page.excuse()
        greeting.link.send(Counted(0, greeting.registry.numbers()))
        await greeting.link.close()

    run_on(whole_life())


def run_on(life: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in a loop that goes on whoever calls sys.exit in it.

    asyncio ends the loop when a task of someone's own (`gather`, `TaskGroup`) or a callback raises SystemExit or
    KeyboardInterrupt. Here it is but the failure of whoever waits for that task, and nothing to all others.
    """
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        loop = runner.get_loop()
        whole = loop.create_task(life)
        while not whole.done():
            try:
                loop.run_until_complete(whole)
            except (SystemExit, KeyboardInterrupt) as error:
                if whole.done() and whole.exception() is error:
                    raise
                _log.warning("%r was raised in the event loop, which goes on", error)
        whole.result()


def _worker_id(setup: Setup) -> dict[str, str]:
    return {"worker_id": str(setup.worker_id)} if setup.worker_id.int else {}


async def _greeted(end: socket.socket, page: Page) -> Greeting:
    link, registry = await Link.over(end), Registry()

    async def counted() -> list[Numbers]:
        return registry.numbers()

    inquiry = Inquiry(link, counted)
    words = (word async for word in link.messages() if not inquiry.hears(word))
    setup = await anext(words)
    if not isinstance(setup, Setup):
        raise AssertionError(f"the first word must be Setup, not {setup}")  # noqa: TRY004 - a bug, not an input
    return Greeting(setup, page, link, words, registry, inquiry)


async def work(greeting: Greeting, open_all: Open, build: Build) -> None:
    """Take and serve jobs with the part that `build` makes, until told to drain."""
    store, blobs = await open_all(greeting.setup)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        workshop = _workshop(greeting, store, blobs)
        part = await build(workshop, stack)
        child, name, slots = Child(workshop, part), greeting.setup.part.partition("-")[0], greeting.setup.slots
        greeting.registry.gauge(SLOTS, lambda: slots_of(name, slots, part.busy))
        stack.push_async_callback(send_last_spans, tracing.start(greeting.setup.otel, greeting.setup.name))
        gc.collect()
        gc.freeze()  # what is there now stays there, and need not be looked at whenever there may be garbage
        greeting.link.send(Ready())
        await child.live(greeting.words)


async def send_last_spans(send: Callable[[], None]) -> None:
    """Send spans that are not sent yet, if that can be done in reasonable time."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SPANS_WITHIN):
            await asyncio.to_thread(send)


def _workshop(greeting: Greeting, store: Store, blobs: Blobs) -> Workshop:
    setup, registry, clock = greeting.setup, greeting.registry, SystemClock()
    settler = Settler(store, setup.worker_id, clock)
    reports = Reports(store, setup.worker_id, clock)
    secrets = Secrets.taken_from(os.environ, setup.secrets)
    registry.gauge(LATE_OUTCOMES, lambda: {(): settler.stale})
    registry.gauge(LOG_LINES, lambda: {("stored",): reports.lines_stored, ("lost",): reports.shipper.lost})
    handover, numbers = Handover(store, setup.worker_id, blobs, secrets, clock), RunNumbers(registry)
    return Workshop(setup, store, blobs, settler, reports, handover, greeting.page, clock, numbers)


class Child:
    """A part at work."""

    def __init__(self, workshop: Workshop, part: Part) -> None:
        self._workshop = workshop
        self._part = part
        self._clock = workshop.clock
        self._drain_until = float("inf")
        self._draining = asyncio.Event()

    async def live(self, words: AsyncIterator[Message]) -> None:
        """Take and serve jobs until told to drain, and drain."""
        shop = self._workshop
        claimer = Claimer(
            shop.store, shop.setup.worker_id, self._part, shop.page, clock=self._clock, numbers=shop.numbers
        )
        signal.signal(WHO_HAS_THE_LOOP, lambda *_: self._part.tell_who_has_the_loop())
        claiming = asyncio.ensure_future(claimer.run())
        works = (self._listen(words), self._part.serve(), shop.settler.run(), shop.reports.run(), self._turn())
        others = [asyncio.ensure_future(work) for work in works]
        for work in (claiming, *others):
            work.add_done_callback(partial(_end_with, shop.page))
        await self._draining.wait()
        claiming.cancel()
        await self._drain()
        for work in others:
            work.cancel()

    async def _turn(self) -> None:
        """Tell the supervisor that the loop turns."""
        while True:
            now = self._clock.monotonic()
            self._workshop.page.turn(now)
            self._part.expect(now)
            await self._clock.sleep(TURN_EVERY)

    async def _listen(self, words: AsyncIterator[Message]) -> None:
        async for word in words:
            match word:
                case Stop(runs):
                    self._part.stop(runs)
                case Drain(seconds):
                    self._drain_until = min(self._drain_until, self._clock.monotonic() + seconds)
                    self._draining.set()
                case _:
                    raise AssertionError(f"unexpected word: {word}")

    async def _drain(self) -> None:
        self._part.release_waiting()
        while self._part.busy and self._clock.monotonic() < self._drain_until:
            await self._clock.sleep(LOOK_EVERY)
        self._part.release_running()
        latest = self._clock.monotonic() + STOP_WITHIN
        while self._part.busy and self._clock.monotonic() < latest:
            self._part.break_off_storing()  # also of those that end only now
            await self._clock.sleep(LOOK_EVERY)
        try:
            async with asyncio.timeout(SETTLE_WITHIN):
                await self._workshop.settler.drained()
        except TimeoutError:
            _log.warning("the store did not take the last outcomes in time: %d", len(self._workshop.settler.unstored))


def _end_with(page: Page, work: "asyncio.Future[None]") -> None:
    """End this process when a part of it has failed: the supervisor gives its runs back and starts another."""
    if work.cancelled() or (error := work.exception()) is None:
        return
    if isinstance(error, LeaseLost):
        _log.warning("%s", error)
        page.excuse()
        os._exit(LEASE_LOST)
    _log.critical("ending after an unexpected error", exc_info=error)
    os._exit(1)
