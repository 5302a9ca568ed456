"""What is claimed before it can start."""

from tests.builders import a_run
from tidewheel.model.priority import Priority
from tidewheel.worker.ahead import MOST_AHEAD, WORK_AHEAD, Pace, Waiting


def test_what_waits_comes_out_by_priority_and_then_in_order() -> None:
    waiting = Waiting()
    low, high, other = a_run(priority=Priority.LOW), a_run(priority=Priority.HIGH), a_run(priority=Priority.HIGH)
    for run in (low, high, other):
        waiting.add(run)

    assert (len(waiting), waiting.most_urgent) == (3, Priority.HIGH)
    assert waiting.take_out({(other.job_id, other.token)}) == [other]
    assert [waiting.pop(), waiting.pop(), waiting.pop()] == [high, low, None]
    assert waiting.most_urgent is None


def test_all_that_waits_can_be_taken_out_at_once() -> None:
    waiting = Waiting()
    runs = [a_run(priority=priority) for priority in Priority]
    for run in runs:
        waiting.add(run)

    assert waiting.keys == {(run.job_id, run.token) for run in runs}
    assert waiting.take_all() == runs
    assert len(waiting) == 0


def test_no_more_is_claimed_ahead_than_a_few_milliseconds_of_work() -> None:
    pace = Pace(slots=100, expected=100 * WORK_AHEAD)
    assert pace.ahead() <= 1
    for _ in range(500):
        pace.note(1.0, suspended=True)  # a hundred at a time, a second each
    assert pace.ahead() in (1, 2)
    for _ in range(500):
        pace.note(0.000_01, suspended=False)
    assert pace.ahead() == MOST_AHEAD
    for _ in range(500):
        pace.note(0.05, suspended=False)
    assert pace.ahead() == 0


def test_a_pace_that_is_forgotten_must_be_shown_again() -> None:
    pace = Pace(slots=4, expected=1.0)
    assert pace.ahead() == 0
    for _ in range(500):
        pace.note(0.001, suspended=True)
    assert pace.ahead() > 10

    pace.forget()

    assert pace.ahead() == 0
