"""A name server that does not answer holds up nobody else's messages."""

import asyncio
import socket
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tidewheel.notify import AddressGuard
from tidewheel.notify.threads import THREADS
from tidewheel.store.notifying import USUAL_SHARES

SLOW = "never.example"
LOOPBACK = ("127.0.0.0/8", "::1/128")


@pytest.fixture
async def asked(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[asyncio.Semaphore]:
    """Let the look for one name last until the end of the test; what is given counts those who look."""
    asked, over, real = asyncio.Semaphore(0), threading.Event(), socket.getaddrinfo
    loop = asyncio.get_running_loop()

    def look(host: Any, *args: Any, **kwargs: Any) -> Any:
        if host == SLOW:
            loop.call_soon_threadsafe(asked.release)
            over.wait(30)
            raise socket.gaierror("timed out")
        return real(host, *args, **kwargs)

    monkeypatch.setattr(socket, "getaddrinfo", look)
    yield asked
    over.set()


async def test_names_that_nobody_answers_for_delay_no_other(asked: asyncio.Semaphore) -> None:
    guard = AddressGuard(LOOPBACK)
    slow = [asyncio.create_task(guard.address_of(SLOW, 80)) for _ in range(USUAL_SHARES.all)]
    for _ in slow:
        await asyncio.wait_for(asked.acquire(), 5)  # none of them waits for the others
    assert await asyncio.wait_for(guard.address_of("localhost", 80), 5) in ("127.0.0.1", "::1")
    for task in slow:
        task.cancel()


async def test_the_threads_that_all_share_stay_free(asked: asyncio.Semaphore) -> None:
    alone = ThreadPoolExecutor(1)
    asyncio.get_running_loop().set_default_executor(alone)
    slow = asyncio.create_task(AddressGuard().address_of(SLOW, 80))
    await asyncio.wait_for(asked.acquire(), 5)
    assert await asyncio.wait_for(asyncio.to_thread(int, "7"), 5) == 7
    slow.cancel()


def test_there_is_a_thread_for_every_message_that_may_be_under_way_and_for_those_that_were_given_up() -> None:
    assert 2 * USUAL_SHARES.all <= THREADS
