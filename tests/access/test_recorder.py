"""The recorder of changes: batched, in order, and none lost in silence."""

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta

import pytest

from tests.access.conftest import ROOT, SECOND
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.access import Action, Actor, Role
from tidewheel.model.audit import Change, prepare_changes
from tidewheel.server.access import AuditRecorder
from tidewheel.server.access.recorder import MOST_WAITING
from tidewheel.testing import FakeClock

EVE = Actor(role=Role.SUBMITTER, tenant="ada", name="eve")


class Log:
    """An audit log that can be out of reach."""

    def __init__(self) -> None:
        self.batches: list[list[Change]] = []
        self.gone = False
        self.broken = False

    async def audit(self, changes: Sequence[Change]) -> None:
        await asyncio.sleep(0)  # noqa: TID251 - a turn of the loop
        if self.gone:
            raise Unavailable("out of reach")
        if self.broken:
            raise RuntimeError("a bug")
        prepare_changes(changes)
        self.batches.append(list(changes))

    @property
    def subjects(self) -> list[str]:
        return [change.subject for batch in self.batches for change in batch]


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.fixture
async def recorder(log: Log, clock: FakeClock) -> AuditRecorder:
    return AuditRecorder(log, clock)  # type: ignore[arg-type]


async def close(recorder: AuditRecorder, clock: FakeClock) -> int:
    closing = asyncio.ensure_future(recorder.close())
    await clock.advance(10 * SECOND)
    return await closing


async def test_changes_of_a_moment_are_one_batch_in_their_order(
    recorder: AuditRecorder, log: Log, clock: FakeClock
) -> None:
    for n in range(700):
        recorder.note(ROOT, Action.JOBS_CANCEL, n)
    await clock.advance(SECOND)
    assert [len(batch) for batch in log.batches] == [500, 200]
    assert log.subjects == [str(n) for n in range(700)]
    assert await close(recorder, clock) == 0


async def test_submits_of_a_moment_are_one_entry_for_each_actor(
    recorder: AuditRecorder, log: Log, clock: FakeClock
) -> None:
    for n in range(100):
        recorder.note_submit(EVE, [f"job{n}"], tenant="ada")
    recorder.note_submit(ROOT, ["a", "b"], tenant="bob")
    recorder.note_submit(ROOT, [], tenant="bob")
    await clock.advance(SECOND)
    recorder.note_submit(EVE, ["later"], tenant="ada")
    await clock.advance(SECOND)
    first, second, third = [change for batch in log.batches for change in batch]
    assert (first.actor, first.action, first.subject, first.detail["jobs"]) == (EVE, "jobs.submit", "job0", 100)
    assert first.detail["ids"] == [f"job{n}" for n in range(20)]
    assert (second.tenant, dict(second.detail)) == ("bob", {"jobs": 2, "ids": ["a", "b"]})
    assert third.detail["jobs"] == 1
    await close(recorder, clock)


async def test_a_recorded_change_is_stored_when_its_author_is_told(recorder: AuditRecorder, log: Log) -> None:
    await recorder.record(ROOT, Action.GATES_WRITE, "g", reason="x")
    assert log.subjects == ["g"]


async def test_while_the_log_is_out_of_reach_authors_hear_of_it_and_entries_wait(
    recorder: AuditRecorder, log: Log, clock: FakeClock
) -> None:
    log.gone = True
    recorder.note(ROOT, Action.JOBS_CANCEL, "noted")
    with pytest.raises(Unavailable):
        await recorder.record(ROOT, Action.GATES_WRITE, "recorded")
    await clock.advance(30 * SECOND)
    log.gone = False
    await clock.advance(10 * SECOND)
    assert log.subjects == ["noted", "recorded"]
    assert await close(recorder, clock) == 0


async def test_what_cannot_be_written_is_refused_alone_and_told_to_the_own_log(
    recorder: AuditRecorder, log: Log, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    recorder.note(ROOT, Action.JOBS_CANCEL, "before")
    recorder.note(ROOT, Action.JOBS_CANCEL, "bad", tenant="no tenant")
    recorder.note(ROOT, Action.JOBS_CANCEL, "after")
    await clock.advance(SECOND)
    assert log.subjects == ["before", "after"]
    assert '"subject":"bad"' in caplog.text
    with pytest.raises(Invalid):
        await recorder.record(ROOT, Action.GATES_WRITE, "worse", tenant="no tenant")
    await close(recorder, clock)


async def test_an_unexpected_error_loses_nothing_in_silence_and_does_not_end_the_recorder(
    recorder: AuditRecorder, log: Log, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    log.broken = True
    recorder.note(ROOT, Action.JOBS_CANCEL, "unlucky")
    await clock.advance(SECOND)
    assert '"subject":"unlucky"' in caplog.text
    log.broken = False
    await recorder.record(ROOT, Action.JOBS_CANCEL, "lucky")
    assert log.subjects == ["lucky"]


async def test_what_is_left_at_the_end_or_finds_no_room_is_told_to_the_own_log(
    recorder: AuditRecorder, log: Log, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    log.gone = True
    for n in range(MOST_WAITING):
        recorder.note(ROOT, Action.JOBS_CANCEL, n)
    with pytest.raises(Unavailable), caplog.at_level(logging.ERROR):
        await recorder.record(ROOT, Action.GATES_WRITE, "no room")
    assert '"subject":"no room"' in caplog.text
    with caplog.at_level(logging.ERROR):
        assert await close(recorder, clock) == MOST_WAITING
    for n in (0, 600, MOST_WAITING - 1):
        assert f'"subject":"{n}"' in caplog.text


async def test_the_end_does_not_wait_longer_than_it_must(recorder: AuditRecorder, log: Log, clock: FakeClock) -> None:
    recorder.note(ROOT, Action.JOBS_CANCEL, "last")
    assert await recorder.close() == 0
    assert (log.subjects, clock.monotonic()) == (["last"], 0.0)
    assert timedelta(seconds=clock.monotonic()) < SECOND
