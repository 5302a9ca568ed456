"""Whom the death of a child is held against."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from tests.builders import a_run
from tidewheel.model.states import Cause
from tidewheel.worker.blame import blames, ends_of, exit_words
from tidewheel.worker.child import LEASE_LOST
from tidewheel.worker.loop_watch import Stuck
from tidewheel.worker.page import Current, Page


@pytest.fixture
def member() -> Iterator[Any]:
    member = SimpleNamespace(page=Page(), fenced=False, stuck=None, exit_code=-9)
    yield member
    member.page.close()


@pytest.mark.parametrize("code", [0, LEASE_LOST, 1, -9])
def test_a_process_that_a_run_ended_is_held_against_it_whatever_its_exit_code(member: Any, code: int) -> None:
    member.exit_code = code
    one, other = a_run(), a_run()
    member.page.enter(one.job_id.bytes, one.token, 1.0)

    assert blames(member)
    [end] = ends_of(member, [other, one], 0.5)
    assert (end.job_id, end.cause) == (one.job_id, Cause.CRASHED)


def test_who_ends_by_its_own_will_or_for_its_lease_blames_nobody(member: Any) -> None:
    member.page.excuse()
    assert not blames(member)

    fenced = SimpleNamespace(page=SimpleNamespace(excused=False), fenced=True)
    assert not blames(fenced)  # type: ignore[arg-type] # as much of it as is looked at


def test_of_a_loop_that_is_stuck_the_overdue_run_is_to_blame_and_the_others_are_not(member: Any) -> None:
    late, other = a_run(), a_run()
    member.stuck = Stuck(Current(late.job_id, late.token, 1.0))

    [end] = ends_of(member, [other, late], 0.5)

    assert (end.job_id, end.error and end.error.reason) == (late.job_id, "timeout")


def test_of_a_loop_that_does_not_answer_all_are_suspects_if_nobody_is_overdue(member: Any) -> None:
    runs = [a_run(), a_run()]
    for run in runs:
        member.page.begun(run.job_id.bytes, run.token)
    member.stuck = Stuck(None)

    ends = ends_of(member, runs, 0.5)

    assert [end.cause for end in ends] == [Cause.CRASHED] * 2
    assert {end.error and end.error.message for end in ends} == {"its process did not answer any more and was ended"}
    assert ends_of(member, [], 0.5) == []


def test_who_called_exit_is_to_blame_whoever_had_the_loop(member: Any) -> None:
    one, other = a_run(), a_run()
    member.page.blame(one.job_id.bytes, one.token)
    member.page.enter(other.job_id.bytes, other.token, 1.0)

    assert [end.job_id for end in ends_of(member, [other, one], 0.5)] == [one.job_id]


def test_who_had_not_begun_or_had_ended_is_no_suspect_when_nobody_had_the_loop(member: Any) -> None:
    waiting, claimed_ahead, ended, other = a_run(), a_run(), a_run(), a_run()
    for run in (ended, waiting, other):
        member.page.begun(run.job_id.bytes, run.token)
    member.page.over(ended.job_id.bytes, ended.token)

    ends = ends_of(member, [claimed_ahead, ended, waiting], 0.5)

    assert [(end.job_id, end.cause) for end in ends] == [(waiting.job_id, Cause.CRASHED)]


@pytest.mark.parametrize(
    ("code", "words"), [(3, "exit code 3"), (-9, "signal SIGKILL"), (-40, "signal 40"), (-64, "signal SIGRTMAX")]
)
def test_how_a_process_ended_has_words_for_every_signal(code: int, words: str) -> None:
    assert exit_words(code) == words
