"""The lease of a worker: what a late or a strange answer of the store means for it."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID, uuid4

import pytest

from tests.builders import a_worker
from tidewheel.errors import Unavailable
from tidewheel.model.worker import Beat, WorkerSpec
from tidewheel.testing import FakeClock
from tidewheel.worker.renewal import Renewal
from tidewheel.worker.supervisor import always

TTL = timedelta(seconds=10)


class Switch:
    """Kills nobody, and remembers for when it was set."""

    at: float | None = None

    def arm(self, at: float) -> None:
        self.at = at

    def disarm(self) -> None:
        self.at = None


class Store:
    """Answers as slowly as it is told, or with an error."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.takes = [0.0]
        """Seconds that answers take, one after the other; the last one stands for all that follow."""
        self.error: Exception | None = None
        self.registered: list[UUID] = []

    async def register(self, _spec: WorkerSpec) -> SimpleNamespace:
        await self._answer()
        self.registered.append(uuid4())
        return SimpleNamespace(id=self.registered[-1])

    async def beat(self, worker_ids: Sequence[UUID], *, clock: datetime | None = None) -> list[Beat]:  # noqa: ARG002
        await self._answer()
        return [cast("Any", SimpleNamespace(worker_id=one, cancelling=())) for one in worker_ids]

    async def _answer(self) -> None:
        await self._clock.sleep(self.takes.pop(0) if len(self.takes) > 1 else self.takes[0])
        if self.error is not None:
            raise self.error


class Stand:
    """A lease with one child that needs it."""

    def __init__(self) -> None:
        self.clock, self.switch = FakeClock(), Switch()
        self.store = Store(self.clock)
        self.answered: list[bool] = []
        numbers = SimpleNamespace(
            members=[], beat=lambda *, answered: self.answered.append(answered), lost_lease=lambda: None
        )
        self.members: list[Any] = numbers.members
        self.renewal = Renewal(cast("Any", self.store), cast("Any", numbers), self.clock, self.switch, ttl=TTL)

    async def register(self, *, is_over: bool = False) -> UUID:
        registering = asyncio.ensure_future(self.renewal.register(a_worker(ttl=TTL), lambda: is_over))
        await self.clock.sleep(0)
        while not registering.done():
            await self.clock.advance(timedelta(seconds=1))
        return registering.result()

    async def joined(self) -> None:
        page = SimpleNamespace(lease_until=0.0)
        worker_id = await self.register()
        self.members.append(
            SimpleNamespace(
                worker_id=worker_id,
                fenced=False,
                gone=asyncio.Event(),
                page=page,
                has_none_to_stop=lambda: None,
            )
        )


async def test_a_registration_that_is_answered_too_late_is_made_anew_and_kills_nobody() -> None:
    stand = Stand()
    stand.store.takes = [TTL.total_seconds() * 2, 0.0]

    worker_id = await stand.register()

    late, good = stand.store.registered
    assert worker_id == good != late
    assert stand.switch.at is not None
    assert stand.switch.at > stand.clock.monotonic(), "or the kernel would end the worker at once"


async def test_who_is_told_to_stop_does_not_register_for_ever() -> None:
    stand = Stand()
    stand.store.takes = [TTL.total_seconds() * 2]

    with pytest.raises(Unavailable, match="too late"):
        await stand.register(is_over=True)


@pytest.mark.parametrize("error", [Unavailable("away"), RuntimeError("a bug"), MemoryError()])
async def test_whatever_comes_for_a_beat_the_next_one_is_tried(error: Exception) -> None:
    stand = Stand()
    await stand.joined()
    until = stand.renewal.lease.until
    beating = asyncio.ensure_future(stand.renewal.run())

    stand.store.error = error
    await stand.clock.advance(TTL / 4)
    assert True not in stand.answered
    assert stand.renewal.lease.until == until
    stand.store.error = None
    await stand.clock.advance(TTL / 4)

    assert stand.answered[-1]
    assert stand.renewal.lease.until > until
    assert stand.switch.at == stand.renewal.lease.until
    beating.cancel()


async def test_a_chore_of_the_supervisor_that_fails_begins_anew(caplog: pytest.LogCaptureFixture) -> None:
    clock, begun = FakeClock(), 0

    async def chore() -> None:
        nonlocal begun
        begun += 1
        raise RuntimeError("a bug")

    doing = asyncio.ensure_future(always(chore, clock))
    await clock.advance(timedelta(seconds=10))

    assert begun > 2
    assert not doing.done()
    assert "chore failed" in caplog.text
    doing.cancel()
