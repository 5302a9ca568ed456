"""Random scripts drive a store and the reference together; if they disagree, the shortest such script is shown."""

import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.contract.backends import Backend
from tests.contract.machine_schedules import ScheduleMachine
from tidewheel.model.outcome import Verdict
from tidewheel.model.states import State

LONG = bool(os.environ.get("TIDE_LONG"))
EXAMPLES, STEPS = (1_000, 80) if LONG else (70, 45)
FEW = 12
"""Enough to notice at once what most scripts would come upon."""

EVENTS = (
    *("claimed", "lease lost", "reaped", "lost", "redriven", "expired", "dropped", "cancelling", "held", "followed"),
    "too old",
    *("recorded", "taken back", "due before a change", "overlapped", "triggered", "NameTaken", "StaleVersion"),
    *("KeyReused", "AlreadyActive", "known key", Verdict.ACCEPTED, Verdict.REPEATED, Verdict.STALE),
)
STATES = tuple(State)
"""What must have been met at least once in a whole run."""


pytestmark = pytest.mark.timeout(600)  # a script that fails is shortened for up to five minutes


def test_a_few_random_scripts_find_no_difference_to_the_reference(new_backend: Callable[[], Backend]) -> None:
    assert run_scripts(new_backend, FEW)["claimed"]


@pytest.mark.proof
def test_random_scripts_find_no_difference_to_the_reference(new_backend: Callable[[], Backend]) -> None:
    seen = run_scripts(new_backend, EXAMPLES)

    missed = [event for event in (*EVENTS, *STATES) if not seen[event]]
    assert not missed, f"the scripts never came to {missed}, so they prove little"


def run_scripts(new_backend: Callable[[], Backend], examples: int) -> Counter[str]:
    """Run so many scripts and return what they met."""
    seen = Counter[str]()

    class Machine(ScheduleMachine):
        def __init__(self) -> None:
            super().__init__(new_backend, seen)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            report_multiple_bugs=False,
            derandomize=not LONG,
            suppress_health_check=list(HealthCheck),
        ),
    )
    return seen
