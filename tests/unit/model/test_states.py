"""The transition table, and what derives from it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import IllegalMove
from tidewheel.model.outcome import REPORTABLE
from tidewheel.model.states import (
    ACTIVE,
    FINAL,
    MOVES,
    REDRIVABLE,
    WAITING,
    Cause,
    State,
    diagram,
    end_of_run,
    move,
)

STATES = st.sampled_from(State)
CAUSES = st.sampled_from(Cause)


@given(STATES, CAUSES)
def test_a_move_is_in_the_table_or_refused(state: State, cause: Cause) -> None:
    if (state, cause) in MOVES:
        assert move(state, cause) is MOVES[state, cause]
    else:
        with pytest.raises(IllegalMove) as refusal:
            move(state, cause)
        assert (refusal.value.state, refusal.value.cause) == (state, cause)


def test_every_state_is_either_active_or_final() -> None:
    assert set(ACTIVE) | set(FINAL) == set(State)
    assert not set(ACTIVE) & set(FINAL)
    assert set(ACTIVE) == {*WAITING, State.RUNNING}


def test_every_state_can_be_left_towards_an_end() -> None:
    """A state that nothing leads out of would keep its jobs for ever."""
    for start in ACTIVE:
        reached, todo = {start}, [start]
        while todo:
            state = todo.pop()
            new = {target for (source, _), target in MOVES.items() if source is state} - reached
            reached |= new
            todo += new
        assert State.SUCCEEDED in reached
        assert set(FINAL) & reached


def test_every_state_can_be_reached() -> None:
    assert {*MOVES.values(), State.BLOCKED} == set(State)


def test_a_final_state_is_left_only_by_an_operator() -> None:
    out = {(source, cause) for source, cause in MOVES if source in FINAL}
    assert out == {(state, Cause.REDRIVEN) for state in REDRIVABLE}
    assert State.SUCCEEDED not in REDRIVABLE


def test_whatever_waits_can_be_cancelled_expired_and_dropped() -> None:
    for state in WAITING:
        assert move(state, Cause.CANCELLED) is State.CANCELLED
        assert move(state, Cause.EXPIRED) is State.EXPIRED
        assert move(state, Cause.DROPPED) is State.DROPPED


def test_every_cause_that_a_worker_may_report_ends_a_run() -> None:
    for cause in REPORTABLE:
        assert (State.RUNNING, cause) in MOVES


@given(st.sampled_from([cause for state, cause in MOVES if state is State.RUNNING]))
def test_a_run_that_was_asked_to_stop_never_returns_to_the_queue(cause: Cause) -> None:
    after = move(State.RUNNING, end_of_run(cause, cancelling=True))
    assert after is (State.SUCCEEDED if cause is Cause.RETURNED else State.CANCELLED)
    assert end_of_run(cause, cancelling=False) is cause


def test_the_diagram_shows_every_move_and_no_other() -> None:
    arrows = re.findall(r"^    (\w+) --> (\w+): (.+)$", diagram(), re.MULTILINE)
    shown = {(source, cause, target) for source, target, causes in arrows for cause in causes.split(", ")}
    assert shown == {(source.value, cause.value, target.value) for (source, cause), target in MOVES.items()}
