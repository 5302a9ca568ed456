"""A runner in this process: what it does when store or blobs are away, and how it tells who has its loop."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, cast
from uuid import UUID, uuid4

import msgspec
import pytest

from tests.builders import a_run
from tidewheel.errors import Damaged, OutcomeUnknown, SecretsLocked, StoreFull, Unavailable
from tidewheel.model.job import Claimed, Options, Run
from tidewheel.model.outcome import MAX_RESULT_BYTES, Outcome, Verdict
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import Cause
from tidewheel.observe import Registry
from tidewheel.observe.own_log import JsonFormatter
from tidewheel.store.base import ClaimRequest
from tidewheel.tasks.context import Context
from tidewheel.testing import FakeClock
from tidewheel.worker.counting import RunNumbers
from tidewheel.worker.executors.inline import Tools
from tidewheel.worker.handover import STORED_WITHIN, Handover
from tidewheel.worker.loop_watch import LONGEST_SILENCE
from tidewheel.worker.page import Page
from tidewheel.worker.reports import Reports
from tidewheel.worker.runner import Runner
from tidewheel.worker.secrets import Secrets
from tidewheel.worker.settler import Settler
from tidewheel.worker.slots import before_exit

ONCE = Options(retry=RetryPolicy(max_attempts=1))
OF_PARENT = f'{{"of": {{"$result_of": "{uuid4()}"}}}}'
OF_STORE = '{"of": {"$secret": "stored"}}'
LARGE = '"' + "x" * MAX_RESULT_BYTES + '"'


class Task:
    """Calls a coroutine function; its result is JSON text already."""

    wants_context = True

    def __init__(self, body: Callable[[], Coroutine[Any, Any, str]]) -> None:
        self._body = body

    def call(self, _context: Context | None, _args: str) -> Coroutine[Any, Any, str]:
        return self._body()

    def encode(self, result: str) -> str:
        return result


class Place:
    """Stands for store and blobs, either of which may be away."""

    def __init__(self) -> None:
        self.outcomes: list[Outcome] = []
        self.away: Exception | None = None
        self.kept: list[str] = []

    async def settle(self, _worker_id: UUID, outcomes: Sequence[Outcome]) -> list[Verdict]:
        self.outcomes += outcomes
        return [Verdict.ACCEPTED] * len(outcomes)

    async def checkpoint_of(self, _job_id: UUID) -> str | None:
        self._answer()
        return None

    async def get(self, _job_id: UUID) -> None:
        self._answer()

    async def secrets_of_run(self, _worker_id: UUID, _job_id: UUID, _token: int, _names: object) -> dict[str, str]:
        self._answer()
        return {}

    async def store_result(self, _job_id: UUID, _token: int, text: str) -> str:
        self._answer()
        self.kept.append(text)
        return "place"

    def _answer(self) -> None:
        if self.away is not None:
            raise self.away


class Served:
    """A runner at work."""

    def __init__(self, **bodies: Callable[[], Coroutine[Any, Any, str]]) -> None:
        self.place, self.clock, self.page = Place(), FakeClock(), Page()
        store = cast("Any", self.place)
        settler = Settler(store, UUID(int=1), self.clock)
        reports = Reports(store, UUID(int=1), self.clock)
        handover = Handover(store, UUID(int=1), store, Secrets({}), self.clock)
        tools = Tools(settler, reports, handover, self.page, self.clock, 1, RunNumbers(Registry()))
        tasks = {kind: Task(body) for kind, body in bodies.items()}
        self.runner = Runner(tasks, ClaimRequest(worker_id=UUID(int=1), limit=1), tools, slots=3, grace=2.0)
        self._works = [asyncio.ensure_future(work) for work in (self.runner.serve(), settler.run())]

    def accept(self, *runs: Run) -> None:
        self.runner.accept(Claimed(list(runs)))

    async def outcome(self) -> Outcome:
        while not self.place.outcomes:
            await self.clock.advance(timedelta(seconds=1))
        return self.place.outcomes[0]

    async def close(self) -> None:
        for work in self._works:
            await self.clock.sleep(0)
            assert not work.done(), "it serves on, whatever became of a run"
            work.cancel()
        await asyncio.gather(*self._works, return_exceptions=True)
        self.page.close()


async def _small() -> str:
    return "7"


async def _large() -> str:
    return LARGE


async def _waits(gate: asyncio.Event) -> str:
    await gate.wait()
    return ""


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    one = Served(small=_small, large=_large)
    await one.clock.sleep(0)
    yield one
    await one.close()


async def turns(served: Served) -> None:
    """Let everything happen for which no time must pass."""
    for _ in range(50):
        await served.clock.sleep(0)


async def test_a_result_that_is_not_stored_when_a_drain_must_end_is_given_back_at_once(served: Served) -> None:
    served.place.away = Unavailable("away")
    served.accept(a_run(kind="large"))
    await turns(served)

    served.runner.release_running()
    served.runner.break_off_storing()
    await turns(served)

    assert [outcome.cause for outcome in served.place.outcomes] == [Cause.RELEASED]
    served.place.away = None
    served.accept(a_run(kind="small"))
    await turns(served)
    assert [outcome.cause for outcome in served.place.outcomes[1:]] == [Cause.RETURNED]


@pytest.mark.parametrize("error", [Unavailable("away"), OutcomeUnknown("cut off")])
@pytest.mark.parametrize(
    "wishes",
    [{"token": 2}, {"args": OF_PARENT}, {"args": OF_STORE}],
    ids=["checkpoint", "result of a parent", "stored secret"],
)
async def test_what_cannot_begin_since_the_store_is_away_is_given_back_uncounted(
    served: Served, error: Exception, wishes: dict[str, Any]
) -> None:
    served.place.away = error
    served.accept(a_run(ONCE, kind="small", **wishes))

    outcome = await served.outcome()

    assert (outcome.cause, outcome.error) == (Cause.RELEASED, None)
    assert outcome.delay > timedelta(0), "or it would come back at once, again and again"


async def test_what_the_worker_says_about_a_run_names_its_job_kind_attempt_and_trace(
    served: Served, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caplog.handler, "formatter", JsonFormatter({}))  # all tests share it
    served.place.away = Unavailable("away")
    options = Options(retry=RetryPolicy(max_attempts=3), traceparent=f"00-{'a' * 32}-{'b' * 16}-01")
    run = a_run(options, kind="large", failures=1)
    served.accept(run)
    while not caplog.text:
        await served.clock.advance(timedelta(seconds=1))
    served.place.away = None
    await served.outcome()

    event = msgspec.json.decode(caplog.text.splitlines()[0])
    assert event["msg"].startswith("what a run leaves behind waits")
    about = {"job_id": str(run.job_id), "kind": "large", "attempt": 2, "tenant": "default", "trace_id": "a" * 32}
    assert about.items() <= event.items()


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (None, "there is no secret 'stored' for the tenant 'default' at this worker, and none is stored"),
        (SecretsLocked("it is encrypted by the key 1a2b"), "it is encrypted by the key 1a2b"),
    ],
)
async def test_a_secret_that_is_missing_or_that_no_key_opens_is_the_end_of_a_job(
    served: Served, error: Exception | None, told: str
) -> None:
    served.place.away = error
    served.accept(a_run(kind="small", args=OF_STORE))

    outcome = await served.outcome()

    assert (outcome.cause, outcome.error and outcome.error.message) == (Cause.GAVE_UP, told)


async def test_what_is_damaged_is_the_end_of_a_run_that_needs_it(served: Served) -> None:
    served.place.away = Damaged("result", "x")
    served.accept(a_run(ONCE, kind="small", args=OF_PARENT))

    assert (await served.outcome()).cause is Cause.GAVE_UP


async def test_a_large_result_waits_for_blobs_that_are_away(served: Served) -> None:
    served.place.away = StoreFull("no room")
    served.accept(a_run(ONCE, kind="large"))
    await served.clock.advance(timedelta(seconds=STORED_WITHIN / 2))
    assert served.place.outcomes == []

    served.place.away = None
    outcome = await served.outcome()

    assert (outcome.cause, outcome.result, outcome.result_location) == (Cause.RETURNED, None, "place")
    assert served.place.kept == [LARGE]


async def test_a_large_result_that_cannot_be_kept_is_a_failure_of_its_run_alone(served: Served) -> None:
    served.place.away = StoreFull("no room")
    served.accept(a_run(kind="large"))

    outcome = await served.outcome()

    assert (outcome.cause, outcome.error and outcome.error.reason) == (Cause.FAILED, "error")
    served.place.outcomes.clear()
    served.accept(a_run(kind="small"))
    assert (await served.outcome()).result == "7"


async def test_an_unexpected_error_ends_one_run_and_not_the_others(served: Served) -> None:
    served.place.away = RuntimeError("a bug")
    served.accept(a_run(kind="large"))

    assert (await served.outcome()).cause is Cause.FAILED


# Who has the loop


async def _cancels_later() -> str:
    """As a timeout of one's own does that nobody takes back."""
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().call_soon(task.cancel)
    return "1"


async def _cancels_itself() -> str:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.get_running_loop().create_future()
    return ""


@pytest.mark.parametrize("body", [_cancels_later, _cancels_itself])
async def test_code_that_cancels_the_task_it_ran_in_ends_no_slot(body: Callable[[], Coroutine[Any, Any, str]]) -> None:
    served = Served(odd=body, small=_small)
    await served.clock.sleep(0)
    for _ in range(2):
        served.accept(*(a_run(ONCE, kind="odd", job_id=uuid4()) for _ in range(3)))
        for _ in range(20):
            await served.clock.sleep(0)
    served.accept(*(a_run(ONCE, kind="small", job_id=uuid4()) for _ in range(3)))
    while len(served.place.outcomes) < 9:
        await served.clock.advance(timedelta(seconds=1))
    ends = [outcome.cause for outcome in served.place.outcomes]
    assert ends[6:] == [Cause.RETURNED] * 3
    assert ends[:6] == ([Cause.RETURNED] if body is _cancels_later else [Cause.GAVE_UP]) * 6
    assert all(
        slot.task is not None and not slot.task.done() and not slot.task.cancelling() for slot in served.runner._slots
    )
    await served.close()


async def test_what_a_run_left_behind_cannot_cancel_the_runs_that_come_after_it() -> None:
    gate, end, left = asyncio.Event(), asyncio.Event(), []

    async def cancel_later(task: "asyncio.Task[Any] | None") -> None:
        assert task is not None
        await gate.wait()
        task.cancel()

    async def leaves_something_behind() -> str:
        left.append(asyncio.create_task(cancel_later(asyncio.current_task())))
        return "1"

    served = Served(odd=leaves_something_behind, waits=partial(_waits, end))
    await served.clock.sleep(0)
    served.accept(*(a_run(ONCE, kind="odd", job_id=uuid4()) for _ in range(3)))
    await turns(served)
    served.accept(*(a_run(ONCE, kind="waits", job_id=uuid4()) for _ in range(3)))
    await turns(served)
    gate.set()
    await turns(served)
    end.set()
    await turns(served)

    assert len(left) == 3
    assert [outcome.cause for outcome in served.place.outcomes] == [Cause.RETURNED] * 6
    await served.close()


async def test_a_store_that_does_not_answer_in_time_is_not_waited_for_any_longer_than_that() -> None:
    async def ready() -> str:
        return "1"

    async def in_time(_job_id: UUID) -> None:
        try:
            async with asyncio.timeout(0.05):
                await asyncio.Event().wait()
        except TimeoutError:
            raise Unavailable("it took too long") from None

    served = Served(ready=ready)
    served.place.checkpoint_of = in_time  # type: ignore[method-assign] # as a store over HTTP does it
    await served.clock.sleep(0)
    served.accept(msgspec.structs.replace(a_run(ONCE, kind="ready", job_id=uuid4()), token=2))

    async with asyncio.timeout(10):
        assert (await served.outcome()).cause is Cause.RELEASED
    await served.close()


@pytest.mark.parametrize("suspends", [False, True])
async def test_a_run_that_cancels_itself_and_returns_leaves_that_to_no_other(*, suspends: bool) -> None:
    end = asyncio.Event()

    async def cancels_and_returns() -> str:
        if suspends:
            await running.clock.sleep(0)
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "1"

    running = Served(odd=cancels_and_returns, waits=partial(_waits, end))
    await running.clock.sleep(0)
    for kind in ("odd", "odd", "odd", "waits", "waits", "waits"):
        running.accept(a_run(ONCE, kind=kind, job_id=uuid4()))
    await turns(running)
    end.set()
    await turns(running)

    assert [outcome.cause for outcome in running.place.outcomes] == [Cause.RETURNED] * 6
    assert not any(slot.task is None or slot.task.cancelling() for slot in running.runner._slots)
    await running.close()


async def test_a_run_whose_outcome_cannot_be_told_since_its_task_was_cancelled_is_given_back() -> None:
    async def cancels_and_returns() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return LARGE  # which is to be stored elsewhere, and that takes time

    served = Served(odd=cancels_and_returns)
    await served.clock.sleep(0)
    served.place.away = Unavailable("away")
    served.accept(a_run(ONCE, kind="odd"))
    assert (await served.outcome()).cause is Cause.RELEASED
    await served.close()


async def test_whose_code_has_the_loop_is_known_in_a_task_that_it_began() -> None:
    seen: list[UUID] = []

    async def below() -> None:
        running.runner.tell_who_has_the_loop()
        current = running.page.current
        assert current is not None
        seen.append(current.job_id)

    async def above() -> str:
        await asyncio.gather(below(), asyncio.wait_for(below(), 60))
        return "7"

    gate = asyncio.Event()
    running = Served(above=above, waits=partial(_waits, gate))
    await running.clock.sleep(0)
    run = a_run(kind="above")
    running.accept(a_run(kind="waits"), run)
    await running.outcome()

    assert seen == [run.job_id] * 2
    running.page.turn(1.0)
    running.runner.tell_who_has_the_loop()
    assert running.page.current is None, "nobody's code is executed here"
    gate.set()
    await running.close()


async def test_who_ends_the_process_is_known_also_in_a_task_or_thread_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[tuple[int, UUID | None]] = []

    def end(status: int) -> None:
        blamed = running.page.blamed
        ended.append((status, None if blamed is None else blamed.job_id))

    async def below() -> None:
        os._exit(3)

    async def above() -> str:
        await asyncio.gather(below(), asyncio.to_thread(os._exit, 4))
        return "7"

    gate = asyncio.Event()
    running = Served(above=above, waits=partial(_waits, gate))
    monkeypatch.setattr(os, "_exit", end)
    before_exit(running.runner.tell_who_exits)
    await running.clock.sleep(0)
    run = a_run(kind="above")
    running.accept(a_run(kind="waits"), run)
    await running.outcome()

    assert sorted(ended) == [(3, run.job_id), (4, run.job_id)]
    gate.set()
    await running.close()


async def test_the_page_tells_which_runs_wait_in_the_middle_of_their_code() -> None:
    gate = asyncio.Event()
    served = Served(waits=partial(_waits, gate))
    await served.clock.sleep(0)
    run = a_run(kind="waits")
    served.accept(run)
    while not served.page.under_way:
        await served.clock.sleep(0)
    waiting = served.page.under_way
    gate.set()
    await served.outcome()

    assert (waiting, served.page.under_way) == ({(run.job_id, run.token)}, set())
    await served.close()


async def test_the_page_tells_which_run_must_end_first() -> None:
    gate = asyncio.Event()
    served = Served(waits=partial(_waits, gate))
    await served.clock.sleep(0)
    served.runner.expect(100.0)
    assert served.page.pulse[1:] == (100.0 + LONGEST_SILENCE, None), "nothing runs"
    long, short = (a_run(Options(timeout=timedelta(seconds=seconds)), kind="waits") for seconds in (20, 10))

    served.accept(short, long)
    await served.clock.advance(timedelta(seconds=0.1))

    for _ in range(2):
        until, due = served.page.pulse[1:]
        assert until == 12.0, "its timeout and the grace"
        assert due is not None
        assert (due.job_id, due.token) == (short.job_id, short.token)
        served.runner.expect(1.0)
    gate.set()
    await served.close()
