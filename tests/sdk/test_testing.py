"""The helpers for users' own tests."""

import asyncio
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from tidewheel import App, Conflict, Context, Fatal, JobFailed, Retry, RetryPolicy, State, chain
from tidewheel.model.states import Cause
from tidewheel.testing import InMemory, in_memory


@pytest.fixture
def app(tmp_path: Any) -> App:
    return App(f"sqlite:///{tmp_path / 'nowhere' / 'jobs.db'}")  # would fail if it were opened


def test_jobs_run_here_and_now_in_the_thread_of_the_test(app: App) -> None:
    seen: list[Any] = []

    @app.task
    def plain(a: int) -> int:
        seen.append((a, threading.current_thread() is threading.main_thread()))
        inline.enqueue(a + 1)  # a task may enqueue by the synchronous face
        return a

    @app.task(queue="other")
    async def inline(a: int) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        seen.append(a)

    with in_memory(app) as test:
        job = plain.enqueue(1)
        assert [(ran.kind, ran.state) for ran in test.run_inline()] == [
            (plain.kind, State.SUCCEEDED),
            (inline.kind, State.SUCCEEDED),
        ]
        assert job.result() == 1
        assert test.enqueued() == []
    assert seen == [(1, True), 2]


async def test_the_async_face_does_the_same(app: App) -> None:
    @app.task
    async def task(a: int) -> int:
        return a + 1

    async with in_memory(app) as test:
        job = await task.aenqueue(1)
        await test.aassert_enqueued(task, args={"a": 1})
        await test.arun_inline()
        assert await job.aresult() == 2
        with pytest.raises(Conflict, match="await the async twin"):
            test.run_inline()


def test_a_failing_task_is_tried_again_when_its_time_has_come(app: App) -> None:
    attempts: list[int] = []

    @app.task(retry=RetryPolicy(max_attempts=3, delay=timedelta(seconds=10), jitter="none"))
    def flaky(ctx: Context) -> str:
        attempts.append(ctx.number)
        if len(attempts) < 3:
            raise OSError("not yet")
        return "done"

    with in_memory(app) as test:
        job = flaky.enqueue()
        [first] = test.run_inline()
        assert (first.cause, first.state, first.error) == (Cause.FAILED, State.QUEUED, "OSError: not yet")
        assert test.run_inline() == []
        test.advance("9s")
        assert test.run_inline() == []
        test.advance("1s")
        assert len(test.run_inline()) == 1
        test.advance("20s")
        test.run_inline()
        assert job.result() == "done"
    assert attempts == [1, 2, 3]


def test_a_task_steers_itself(app: App) -> None:
    @app.task
    def later(ctx: Context) -> None:
        if ctx.number == 1:
            raise Retry("busy", after="1h")

    @app.task
    def never() -> None:
        raise Fatal("no such customer")

    @app.task(retry=1)
    def once() -> None:
        raise ValueError("wrong")

    with in_memory(app) as test:
        waits, dead, single = later.enqueue(), never.enqueue(), once.enqueue()
        test.run_inline()
        assert waits.info().run_at == test.clock.now() + timedelta(hours=1)
        with pytest.raises(JobFailed, match="no such customer"):
            dead.result()
        with pytest.raises(JobFailed, match="ValueError: wrong"):
            single.result()
        error = single.info().error
        assert error is not None
        assert "Traceback" in (error.detail or "")
        test.advance("1h")
        test.run_inline()
        assert waits.state() is State.SUCCEEDED


def test_a_checkpoint_is_found_by_the_next_attempt(app: App) -> None:
    @app.task(retry=RetryPolicy(delay=timedelta(0), cap=timedelta(0)))
    def count(ctx: Context) -> int:
        done: int = ctx.saved or 0
        if done < 2:
            ctx.checkpoint(done + 1)
            raise Retry
        return done

    with in_memory(app) as test:
        job = count.enqueue()
        test.run_inline()
        assert job.result() == 2


def test_what_is_not_due_waits_for_its_time(app: App) -> None:
    @app.task
    def task() -> None: ...

    with in_memory(app, start=datetime(2031, 5, 1, tzinfo=UTC)) as test:
        job = task.using(delay="1d").enqueue()
        assert test.run_inline() == []
        found = test.assert_enqueued(task, run_at=datetime(2031, 5, 2, tzinfo=UTC))
        assert found.id == job.id
        test.advance("1d")
        assert len(test.run_inline()) == 1


def test_schedules_fire_by_themselves_as_time_passes(app: App) -> None:
    fired: list[datetime] = []

    @app.task(cron="0 3 * * *", timezone="Europe/Berlin")
    def nightly() -> None:
        fired.append(test.clock.now())

    @app.task
    def each(n: int) -> int:
        return n

    with in_memory(app, start=datetime(2031, 3, 28, 12, tzinfo=UTC)) as test:
        assert test.run_inline() == []
        for _ in range(3):
            test.advance("24h")
            assert len(test.run_inline()) == 1
        assert [occurrence.fire_at for occurrence in app.schedules.occurrences(nightly.kind)] == [
            datetime(2031, 3, 31, 1, tzinfo=UTC),
            datetime(2031, 3, 30, 1, tzinfo=UTC),  # three by the clock on the wall, which was set forward
            datetime(2031, 3, 29, 2, tzinfo=UTC),
        ]
        app.schedules.create(each.s(7), name="often", every="10s", overlap="allow")
        test.advance("1m")
        assert [ran.kind for ran in test.run_inline()] == [each.kind] * 6
        test.advance("1m")
        app.schedules.pause("often")
        test.run_inline()
        test.advance("1h")
        assert test.run_inline() == []
    assert len(fired) == 3


def test_what_overlaps_while_nobody_runs_jobs_is_treated_as_the_schedule_says(app: App) -> None:
    @app.task(every="1m", overlap="skip")
    def often() -> None: ...

    with in_memory(app) as test:
        test.advance("10m")
        assert len(test.run_inline()) == 1
        test.advance("1m")
        assert len(test.run_inline()) == 1


def test_a_job_that_must_start_by_a_time_expires_when_it_has_passed(app: App) -> None:
    @app.task
    def task() -> None: ...

    with in_memory(app) as test:
        job = task.using(start_by=test.clock.now() + timedelta(minutes=5)).enqueue()
        test.advance("4m")
        assert job.state() is State.QUEUED
        test.advance("2m")
        assert job.state() is State.EXPIRED


def test_an_assertion_that_fails_says_what_there_is(app: App) -> None:
    @app.task(queue="mail")
    def send(to: str, count: int = 1) -> None: ...

    with in_memory(app) as test:
        with pytest.raises(AssertionError, match=r"0 jobs of .*send ") as empty:
            test.assert_enqueued(send)
        assert "nothing" in str(empty.value)
        send.enqueue("ada", count=2)
        send.using(queue="slow", labels={"a": "b"}).enqueue("bob")

        assert test.assert_enqueued(send, args={"to": "ada"}, queue="mail").args == {"to": "ada", "count": 2}
        assert test.assert_enqueued(send, queue="slow", labels={"a": "b"}).args == {"to": "bob"}
        wishes: tuple[dict[str, Any], ...] = (
            {"args": {"to": "eve"}},
            {"queue": "none"},
            {"args": {"unknown": None}},
            {},
        )
        for wrong in wishes:
            with pytest.raises(AssertionError) as caught:
                test.assert_enqueued(send, **wrong)
            assert "'ada'" in str(caught.value)
            assert "queue='slow'" in str(caught.value)
        assert [job.args["to"] for job in test.enqueued(send)] == ["ada", "bob"]
        assert test.enqueued(send, State.RUNNING) == []


def test_waiting_for_what_nobody_runs_is_refused(app: App) -> None:
    @app.task
    def task() -> None: ...

    with in_memory(app):
        job = task.enqueue()
        with pytest.raises(Conflict, match="call run_inline"):
            job.result(timeout=5)


def test_a_task_that_enqueues_itself_for_ever_is_stopped(app: App) -> None:
    @app.task
    def forever() -> None:
        forever.enqueue()

    with in_memory(app) as test:
        forever.enqueue()
        with pytest.raises(AssertionError, match=r"does .*forever enqueue itself"):
            test.run_inline(most=5)


def test_the_real_store_is_back_afterwards(tmp_path: Any) -> None:
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}")

    @app.task
    def task() -> None: ...

    with app:
        before = task.enqueue()
        folder = ""
        with in_memory(app) as test:
            assert isinstance(test, InMemory)
            folder = test._folder.name
            task.enqueue()
            assert len(test.enqueued()) == 1
        assert not Path(folder).exists()
        assert before.state() is State.QUEUED


def test_a_large_result_is_fetched_and_handed_on(app: App, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TIDE_BLOBS", (tmp_path / "real").as_uri())

    @app.task
    def large() -> str:
        return "x" * 100_000

    @app.task
    def length(text: str) -> int:
        return len(text)

    with in_memory(app) as test:
        job = chain(large.s(), length.s()).enqueue()
        assert [ran.state for ran in test.run_inline()] == [State.SUCCEEDED] * 2
        assert job.result() == 100_000
    assert not (tmp_path / "real").exists(), "what is stored elsewhere is none of a test's business"


async def test_whoever_ends_a_test_is_heard_though_a_task_would_not_listen(app: App) -> None:
    begun = asyncio.Event()

    @app.task
    async def stubborn() -> None:
        begun.set()
        await asyncio.Event().wait()

    async with in_memory(app) as test:
        job = await stubborn.aenqueue()
        running = asyncio.create_task(test.arun_inline())
        await begun.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert (await job.ainfo()).failures == 0
