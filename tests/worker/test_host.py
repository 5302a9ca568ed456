"""A host with executions that end when the test says so: drains, and who makes way for whom."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import MagicMock
from uuid import uuid4

import pytest

from tests.builders import a_run
from tidewheel.clock import SystemClock
from tidewheel.model.job import Claimed, Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.priority import Priority
from tidewheel.model.resources import NO_NEEDS, Needs
from tidewheel.model.states import Cause
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.definition import Preempt
from tidewheel.tasks.registry import CatalogueEntry
from tidewheel.worker import child
from tidewheel.worker.execution import End, Ended, HostTask, Order
from tidewheel.worker.host import Host

GPU = Needs(resources={"gpu": 1})
PATIENCE = 10.0
KINDS: tuple[Preempt, ...] = ("never", "pause", "requeue")
"""Each is the name of a task, too."""


class Running:
    """An execution that ends as the test says; asked to stop it does nothing yet."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[Ended] = asyncio.get_running_loop().create_future()
        self.asked: End | None = None

    async def wait(self) -> Ended:
        return await self.ended

    def end(self, end: End) -> None:
        self.ended.set_result(Ended(end=self.asked or end, result="1"))

    def stop(self, end: End, grace: float) -> None:  # noqa: ARG002 - it ends when the test says so
        if not self.ended.done():
            self.asked = end

    def pause(self) -> None:
        pass

    def resume(self) -> None:
        pass

    def close(self) -> None:
        pass


class Stage:
    """A host, what it has begun, and what it has told the store."""

    def __init__(self, *, slots: int = 1, **resources: int) -> None:
        self.begun: dict[Any, Running] = {}
        self.outcomes: list[Outcome] = []
        self.keep_files: Callable[..., Awaitable[None]] = nothing
        setup = SimpleNamespace(
            slots=slots,
            grace=timedelta(seconds=1),
            offer=SimpleNamespace(resources=resources),
            longest_pause=timedelta(minutes=1),
            reserve_after=timedelta(minutes=1),
        )
        workshop = SimpleNamespace(
            setup=setup,
            store=SimpleNamespace(epoch=1),
            settler=SimpleNamespace(add=self.outcomes.append, unstored=set(), drained=nothing),
            reports=SimpleNamespace(open=lambda _: a_report()),
            handover=SimpleNamespace(args=no_args, saved=nothing, place=in_place, keep_files=self._keep),
            page=MagicMock(),
            clock=SystemClock(),
            numbers=MagicMock(),
        )
        tasks: dict[str, HostTask] = {
            kind: HostTask(cast("Any", self), CatalogueEntry(kind=kind, mode="process", preempt=kind)) for kind in KINDS
        }
        self.workshop = cast("Any", workshop)
        self.host = Host(tasks, self.workshop, ClaimRequest(worker_id=uuid4(), limit=1))

    async def _keep(self, *of: object) -> None:
        await self.keep_files(*of)  # as the test has it by then

    async def start(self, order: Order, _: object) -> Running:
        self.begun[order.job_id] = Running()
        return self.begun[order.job_id]

    def take(self, preempt: Preempt, priority: Priority = Priority.LOW, needs: Needs = NO_NEEDS) -> Run:
        run = a_run(kind=preempt, priority=priority, needs=needs)
        self.host.accept(Claimed([run]))
        return run

    async def taken(self, preempt: Preempt, priority: Priority = Priority.LOW, needs: Needs = NO_NEEDS) -> Run:
        """Have the host take a run, and return it once it has begun."""
        run = self.take(preempt, priority, needs)
        await eventually(lambda: run.job_id in self.begun)
        return run

    @property
    def causes(self) -> dict[Any, Cause]:
        return {outcome.job_id: outcome.cause for outcome in self.outcomes}


async def nothing(*_: object) -> None:
    pass


async def no_args(*_: object) -> str:
    return "{}"


async def in_place(_: object, result: str | None) -> tuple[str | None, None]:
    return result, None


def a_report() -> Any:
    return SimpleNamespace(close=nothing, hidden=lambda ended: ended, hide=None, paused=lambda **_: None)


async def eventually(true: Callable[[], object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await _turn()


async def settle() -> None:
    """Let everything happen that can."""
    for _ in range(50):
        await _turn()


async def _turn() -> None:
    """Let the loop turn once."""
    turned: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(turned.set_result, None)
    await turned


# Drains


async def test_a_run_that_has_ended_and_stores_its_files_is_not_given_back_by_a_drain() -> None:
    stage, storing, stored = Stage(), asyncio.Event(), asyncio.Event()

    async def keep(*_: object) -> None:
        storing.set()
        await stored.wait()

    stage.keep_files = keep
    run = await stage.taken("never")
    stage.begun[run.job_id].end(End.RETURNED)
    await storing.wait()
    stage.host.release_running()
    stored.set()
    await eventually(lambda: stage.outcomes)

    assert stage.causes == {run.job_id: Cause.RETURNED}


async def test_a_run_whose_files_are_not_stored_when_a_drain_must_end_is_given_back_at_once() -> None:
    stage, storing = Stage(), asyncio.Event()

    async def keep(*_: object) -> None:
        storing.set()
        await asyncio.Event().wait()

    stage.keep_files = keep
    run = await stage.taken("never")
    stage.begun[run.job_id].end(End.RETURNED)
    await storing.wait()
    stage.host.release_running()
    stage.host.break_off_storing()
    stage.host.break_off_storing()
    await eventually(lambda: stage.outcomes and not stage.host.busy)

    assert stage.causes == {run.job_id: Cause.RELEASED}
    stage.keep_files = nothing
    other = await stage.taken("never")
    stage.begun[other.job_id].end(End.RETURNED)
    await eventually(lambda: other.job_id in stage.causes)
    assert stage.causes[other.job_id] is Cause.RETURNED, "nothing of it hits the next"


async def test_a_drain_does_not_wait_for_files_once_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "STOP_WITHIN", 10 * PATIENCE)
    stage, storing = Stage(), asyncio.Event()

    async def keep(*_: object) -> None:
        storing.set()
        await asyncio.Event().wait()

    stage.keep_files = keep
    run = await stage.taken("never")
    stage.begun[run.job_id].end(End.RETURNED)
    await storing.wait()
    draining = child.Child(stage.workshop, stage.host)
    draining._drain_until = 0.0
    async with asyncio.timeout(PATIENCE):
        await draining._drain()

    assert stage.causes == {run.job_id: Cause.RELEASED}


async def test_breaking_off_leaves_alone_what_stores_nothing() -> None:
    stage = Stage()
    run = await stage.taken("never")
    await settle()
    stage.host.break_off_storing()
    stage.begun[run.job_id].end(End.RETURNED)
    stage.host.break_off_storing()
    await eventually(lambda: stage.outcomes)

    assert stage.causes == {run.job_id: Cause.RETURNED}


async def test_a_run_that_ends_in_the_moment_of_a_drain_has_ended() -> None:
    stage = Stage()
    run = await stage.taken("never")
    await settle()
    stage.begun[run.job_id].end(End.RETURNED)
    stage.host.release_running()
    await eventually(lambda: stage.outcomes)

    assert stage.causes == {run.job_id: Cause.RETURNED}


async def test_a_run_that_a_drain_ends_is_given_back() -> None:
    stage = Stage()
    run = await stage.taken("never")
    await settle()
    stage.host.release_running()
    stage.begun[run.job_id].end(End.RETURNED)
    await eventually(lambda: stage.outcomes)

    assert stage.causes == {run.job_id: Cause.RELEASED}


# Making way


async def test_all_that_someone_holds_who_can_be_put_back_is_offered_to_an_urgent_job() -> None:
    stage = Stage(gpu=1)
    await stage.taken("requeue", needs=GPU)
    wanted = stage.host.wanted()

    assert wanted is not None
    assert (wanted.free, wanted.at_least) == ({"gpu": 1}, Priority.MEDIUM)


async def test_of_someone_who_is_paused_nothing_but_the_cores_is_offered() -> None:
    stage = Stage(gpu=1, cpu=1000)
    await stage.taken("pause", needs=Needs(resources={"gpu": 1, "cpu": 1000}))
    wanted = stage.host.wanted()

    assert wanted is not None
    assert wanted.free == {"gpu": 0, "cpu": 1000}


async def test_an_urgent_run_begins_when_the_one_is_gone_whose_resources_it_needs() -> None:
    stage = Stage(gpu=1)
    low = await stage.taken("requeue", needs=GPU)
    await settle()
    urgent = stage.take("never", Priority.HIGH, GPU)
    await settle()
    assert stage.begun[low.job_id].asked is End.STOPPED
    assert urgent.job_id not in stage.begun, "both would have the one there is"

    stage.begun[low.job_id].end(End.STOPPED)
    await eventually(lambda: urgent.job_id in stage.begun)
    assert stage.causes == {low.job_id: Cause.RELEASED}


async def test_someone_is_put_back_if_a_pause_does_not_make_enough_room() -> None:
    stage = Stage(slots=2, gpu=1)
    holder = await stage.taken("requeue", needs=GPU)
    pausable = await stage.taken("pause")
    await settle()
    wanted = stage.host.wanted()
    assert wanted is not None
    assert wanted.free == {"gpu": 1}

    urgent = stage.take("never", Priority.HIGH, GPU)
    stage.begun[holder.job_id].end(End.STOPPED)
    await eventually(lambda: urgent.job_id in stage.begun)
    assert stage.causes == {holder.job_id: Cause.RELEASED}
    assert stage.begun[pausable.job_id].asked is None


async def test_a_pause_is_enough_for_who_needs_nothing() -> None:
    stage = Stage(slots=2, gpu=1)
    await stage.taken("requeue", needs=GPU)
    await stage.taken("pause")
    await stage.taken("never", Priority.HIGH)

    assert [running.asked for running in stage.begun.values()] == [None] * 3


@pytest.mark.parametrize("how", ["drain", "loss"])
async def test_who_waits_for_a_place_and_is_not_wanted_any_more_does_not_begin(how: str) -> None:
    stage = Stage(gpu=1)
    low = await stage.taken("requeue", needs=GPU)
    await settle()
    urgent = stage.take("never", Priority.HIGH, GPU)
    if how == "drain":
        stage.host.release_running()
    else:
        stage.host.disown([(urgent.job_id, urgent.token)])
    stage.begun[low.job_id].end(End.STOPPED)
    await eventually(lambda: not stage.host.busy)

    assert urgent.job_id not in stage.begun
    assert stage.causes.get(urgent.job_id) is (Cause.RELEASED if how == "drain" else None)
