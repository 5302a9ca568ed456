"""Whether the event loop of a child is stuck, as the supervisor sees it, told the time."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from tidewheel.worker.loop_watch import LONGEST_SILENCE, SILENCE, LoopWatch, Stuck
from tidewheel.worker.page import Current, Page

JOB, OTHER = UUID(int=1), UUID(int=2)


class Child:
    """A child of which nothing is there but its page."""

    def __init__(self) -> None:
        self.page = Page()
        self.watch = LoopWatch(self.page, self._asked, lambda: self.stopped)
        self.questions = 0
        self.stopped = False
        self.has_the_loop: Current | None = None
        """What it answers when it is asked."""

    def _asked(self) -> None:
        self.questions += 1
        if self.has_the_loop is not None:
            self.page.enter(self.has_the_loop.job_id.bytes, *self.has_the_loop[1:])

    def looked_at(self, now: float, times: int = 4) -> list[Stuck | None]:
        return [self.watch.look(now) for _ in range(times)]


@pytest.fixture
def child() -> Iterator[Child]:
    child = Child()
    child.page.turn(100.0)
    yield child
    child.page.close()


def test_a_run_that_has_the_loop_may_take_its_time_and_no_more(child: Child) -> None:
    child.page.expect(105.0, OTHER.bytes, 1)
    child.page.enter(JOB.bytes, 7, 110.0)

    assert child.looked_at(109.0) == [None] * 4, "others must wait for it"
    assert child.looked_at(110.0, 2) == [None, Stuck(Current(JOB, 7, 110.0))], "what is seen twice is believed"


def test_a_loop_that_turns_is_not_stuck_whatever_is_late(child: Child) -> None:
    child.page.expect(50.0, JOB.bytes, 7)

    assert child.looked_at(100.0 + SILENCE / 2) == [None] * 4
    assert child.questions == 0


def test_a_silent_loop_is_stuck_when_the_first_of_its_runs_must_have_ended(child: Child) -> None:
    child.page.expect(120.0, JOB.bytes, 7)

    assert child.looked_at(119.0) == [None] * 4
    assert child.questions == 0
    assert child.looked_at(120.0, 3) == [None, None, Stuck(Current(JOB, 7, 120.0))]
    assert child.questions == 1


@pytest.mark.parametrize(("now", "stuck"), [(129.0, False), (130.0, True)])
def test_who_answers_that_it_has_the_loop_is_judged_by_its_own_time(child: Child, now: float, stuck: bool) -> None:  # noqa: FBT001
    child.page.expect(120.0, OTHER.bytes, 1)
    child.has_the_loop = Current(JOB, 7, 130.0)

    assert child.looked_at(now)[-1] == (Stuck(child.has_the_loop) if stuck else None)


def test_a_stopped_process_that_should_end_a_run_is_given_no_more_than_the_grace_of_that(child: Child) -> None:
    child.page.expect(500.0)
    child.stopped = True
    child.watch.stop_by = 110.0

    assert child.looked_at(110.0) == [None] * 4
    assert child.looked_at(110.1, 2) == [None, Stuck(None)]


def test_a_process_that_is_not_stopped_may_take_longer_to_end_a_run(child: Child) -> None:
    child.page.expect(500.0)
    child.watch.stop_by = 110.0

    assert child.looked_at(120.0) == [None] * 4


def test_a_loop_that_turns_again_is_asked_anew(child: Child) -> None:
    child.page.expect(120.0, JOB.bytes, 7)
    child.looked_at(120.0, 2)

    child.page.turn(121.0)
    assert child.looked_at(122.0) == [None] * 4
    assert child.looked_at(130.0, 1) == [None]
    assert child.questions == 2


def test_a_silent_loop_without_runs_is_stuck_and_nobody_is_to_blame(child: Child) -> None:
    child.page.expect(100.0 + LONGEST_SILENCE)

    assert child.looked_at(99.0 + LONGEST_SILENCE) == [None] * 4
    assert child.looked_at(101.0 + LONGEST_SILENCE)[-1] == Stuck(None)


def test_a_process_that_is_stopped_is_not_waited_for_as_long_as_its_runs_may_take(child: Child) -> None:
    child.page.expect(10_000.0, JOB.bytes, 7)
    child.page.enter(JOB.bytes, 7, 10_000.0)
    late = 101.0 + LONGEST_SILENCE

    assert child.looked_at(late) == [None] * 4
    child.stopped = True
    assert child.looked_at(late, 2) == [None, Stuck(None)]


def test_a_child_that_only_starts_is_not_silent() -> None:
    child = Child()
    child.stopped = True

    assert child.looked_at(1_000.0) == [None] * 4
    child.page.close()
