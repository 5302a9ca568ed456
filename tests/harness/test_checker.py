"""The checker finds every kind of broken promise, and nothing where none was broken."""

import inspect
import sys
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checker import RULES, Execution, History, Vacuous, check, lateness, measure, overlaps, require
from harness.checker.intervals import most_at_once
from harness.checker.records import (
    Cancel,
    Cap,
    Death,
    Fault,
    Final,
    Healed,
    Kill,
    Left,
    Record,
    Submit,
    Witness,
    from_lines,
    to_lines,
)


def submitted(job: str = "a", t: float = 0.0) -> list[Record]:
    key = f"key-{job}"
    return [Submit(t=t, phase="invoke", key=key), Submit(t=t + 0.1, phase="ok", key=key, job=job)]


def ran(  # one execution, from its start to its end, or to its last tick if it has no end
    job: str = "a", token: int = 1, *, t: float = 1.0, last: float = 2.0, ok: bool | None = True, **more: Any
) -> list[Record]:
    common: dict[str, Any] = {"job": job, "token": token, "run": f"{job}-{token}-{t}", "pid": 100 + token} | more
    alone = common.pop("alone", None)
    end = Witness(t=last, event="tick", **common) if ok is None else Witness(t=last, event="end", ok=ok, **common)
    return [Witness(t=t, event="start", alone=alone, **common), Witness(t=(t + last) / 2, event="tick", **common), end]


def ended(job: str = "a", state: str = "succeeded", **more: Any) -> Final:
    fields: dict[str, Any] = {"key": f"key-{job}", "token": 1, "due": 0.5, "finished": 9.0} | more
    return Final(job=job, state=state, **fields)


def clean(job: str = "a") -> list[Record]:
    return [*submitted(job), *ran(job), ended(job)]


def retried() -> list[Record]:
    """A job whose first worker was killed, and seen to be dead before the second attempt began."""
    return [
        *submitted(),
        *ran(ok=None),
        Fault(t=2.1, name="kill", phase="begin"),
        Kill(t=2.1, pid=101, role="runner"),
        Death(t=2.2, pid=101),
        *ran(token=2, t=3.0, last=4.0),
        ended(token=2, losses=1, attempts=2),
        Healed(t=5.0),
    ]


def cancelled(state: str = "cancelled", t: float = 0.3, token: int = 0) -> list[Record]:
    return [Cancel(t=t - 0.1, phase="invoke", job="a"), Cancel(t=t, phase="ok", job="a", state=state, token=token)]


def without(kind: type, records: Sequence[Record]) -> list[Record]:
    return [record for record in records if not isinstance(record, kind)]


UNANSWERED: list[Record] = [
    Submit(t=0.0, phase="invoke", key="key-a"),
    Submit(t=0.1, phase="unknown", key="key-a"),
]
REFUSED: list[Record] = [Submit(t=0.0, phase="invoke", key="key-b"), Submit(t=0.1, phase="fail", key="key-b")]

PLANTED: dict[str, list[list[Record]]] = {
    "LOST_ROW": [without(Final, clean())],
    "STUCK": [
        [*submitted(), *ran(ok=None), ended(state="running", finished=None)],
        [*clean(), Healed(t=-100.0)],
    ],
    "FALSE_SUCCESS": [without(Witness, clean()), [*submitted(), *ran(ok=False), ended()]],
    "CANCELLED_UNASKED": [[*submitted(), ended(state="cancelled", token=0)]],
    "PHANTOM": [[*clean(), *ran("b")]],
    "NO_START": [[record for record in clean() if not (isinstance(record, Witness) and record.event == "start")]],
    "DEDUP": [
        [*clean(), Submit(t=0.2, phase="ok", key="key-a", job="b"), *ran("b"), ended("b", key="key-a")],
        [*clean(), ended("b", "dead", key="key-a", token=1, failures=1)],
    ],
    "CONSERVATION": [
        [*clean(), ended("b", "expired", token=0)],
        [*clean(), *REFUSED, *ran("b"), ended("b")],
        [*UNANSWERED, ended(state="queued", token=0, finished=None)],
    ],
    "CONCURRENT": [
        [*submitted(), *ran(last=3.5, ok=False), *ran(token=2, t=3.0, last=4.0), ended(token=2)],
        [
            *submitted(),
            *ran(ok=None),
            *ran(token=2, t=3.0, last=4.0, alone=False),
            Death(t=2.5, pid=101),
            ended(token=2),
        ],
        # Stopped past its lease and woken again: one late tick is enough.
        [*retried(), Witness(t=3.5, event="tick", job="a", token=1, run="a-1-1.0", pid=101)],
        # What it left behind goes on, long after it has ended itself.
        [
            *submitted(),
            *ran(ok=False),
            *ran(token=2, t=3.0, last=4.0),
            ended(token=2),
            Witness(t=3.5, event="tick", job="a", token=1, run="a-1-1.0", pid=999),
        ],
    ],
    "MAYBE_CONCURRENT": [
        without(Death, retried()),
        [*without(Death, retried()), Death(t=3.1, pid=101)],
        [*without(Death, retried()), Death(t=0.5, pid=101)],  # that was another process with the same number
        # Its child was never seen to die.
        [*retried(), Witness(t=1.9, event="tick", job="a", token=1, run="a-1-1.0", pid=999)],
    ],
    "TOKEN_REUSED": [[*submitted(), *ran(ok=False), *ran(t=3.0, last=4.0), ended()]],
    "TOKEN_ORDER": [
        [*submitted(), *ran(token=2, ok=False), *ran(t=3.0, last=4.0), ended(token=2, state="dead", failures=1)]
    ],
    "WRONG_WINNER": [
        [*submitted(), *ran(), *ran(token=2, t=3.0, last=4.0, ok=False), ended(token=2)],
        [*submitted(), *ran(token=2), *ran(token=3, t=3.0, last=4.0), ended(token=2)],
        [*submitted(), *ran(), ended(result_token=7)],
    ],
    "EARLY": [[*submitted(), *ran(), ended(due=1.001)]],
    "ATTEMPTS": [
        [*submitted(), *ran(ok=False), ended(state="dead", failures=1, max_attempts=5, reason="error")],
        [*submitted(), *ran(ok=False), ended(state="dead", failures=2, max_attempts=1, token=2)],
        [*submitted(), *ran(), ended(attempts=2)],
        [*submitted(), *ran(), ended(failures=1, losses=1)],
    ],
    "LIMIT": [
        [
            *submitted(),
            *submitted("b"),
            *ran(),
            *ran("b", t=1.5),
            Cap(key="one", most=1),
            ended(limit_keys=("one",)),
            ended("b", limit_keys=("one",)),
        ]
    ],
    "LEAK": [[*clean(), Left(t=99.0, pid=4711, command="python -c 'while True: pass'")]],
    "DAG": [
        [*submitted(), *submitted("b"), *ran(), *ran("b", t=1.5), ended(), ended("b", parents=("a",))],
        [*submitted(), *submitted("b"), *ran("b"), ended(state="expired"), ended("b", parents=("a",))],
        [
            *submitted(),
            *ran(ok=False),
            *ran(token=2, t=3.0, last=4.0),
            ended(token=2),
            *submitted("b"),
            *ran("b", t=2.0, last=2.5),
            ended("b", parents=("a",)),
        ],
    ],
    "START_AFTER_CANCEL": [
        [*submitted(), *cancelled(), *ran(ok=False), ended(state="cancelled")],
        [
            *submitted(),
            *ran(ok=False),
            *cancelled("cancelling", t=2.5, token=1),
            *ran(token=2, t=3.0, last=4.0, ok=False),
            ended(state="cancelled", token=2),
        ],
    ],
    "RAN_ON": [
        [*submitted(), *ran(last=8.0, ok=False), *cancelled("cancelling", t=1.5, token=1), ended(state="cancelled")],
        [*submitted(), *ran(), ended(finished=1.9)],
        # Called over while it ran.
        [*submitted(), *ran(ok=False), *cancelled(t=1.5, token=1), ended(state="cancelled")],
    ],
    "CANCEL_IGNORED": [[*submitted(), *ran(), *cancelled("running", t=1.5, token=1), ended()]],
    "CANCEL_OVERWRITTEN": [
        [*submitted(), *ran(), *cancelled(t=2.1), ended()],
        [*submitted(), *ran(ok=False), *cancelled("cancelling", t=1.5, token=1), ended(state="dead", failures=1)],
        [*submitted(), *ran(), *cancelled("succeeded", t=2.1), ended(state="cancelled")],
        [*submitted(), *cancelled(), *cancelled("succeeded", t=0.5), *ran(t=0.5), ended()],
    ],
}

ALSO_FOUND = {
    # The same records prove more than one thing.
    ("CANCEL_OVERWRITTEN", 3): {"START_AFTER_CANCEL"},
}


def found_in(records: Sequence[Record], **tolerances: Any) -> set[str]:
    return {violation.rule for violation in check(History(records, **tolerances))}


@pytest.mark.parametrize(
    ("rule", "number"), [(rule, number) for rule, planted in PLANTED.items() for number in range(len(planted))]
)
def test_a_planted_fault_is_found_by_its_own_rule(rule: str, number: int) -> None:
    assert found_in(PLANTED[rule][number]) == {rule} | ALSO_FOUND.get((rule, number), set())


def test_every_rule_has_a_planted_fault() -> None:
    sources = [inspect.getsource(sys.modules[rule.__module__]) for rule in RULES]
    written = {word for source in sources for word in source.split('"') if word.isupper()}

    assert written == set(PLANTED)


CLEAN: dict[str, list[Record]] = {
    "one job": clean(),
    "a job that was killed and run again": retried(),
    "two jobs at once": [*clean(), *clean("b")],
    "a submit without an answer that landed": [*UNANSWERED, *ran(), ended()],
    "a submit without an answer that did not land": UNANSWERED,
    "a submit that was refused, then went without an answer, and landed": [
        Submit(t=-1.0, phase="fail", key="key-a"),
        *UNANSWERED,
        *ran(),
        ended(),
    ],
    "healed twice": [*clean(), Healed(t=-100.0), Healed(t=3.0)],
    "a submit that was repeated under its key": [*clean(), Submit(t=5.0, phase="ok", key="key-a", job="a")],
    "a job cancelled before it began": [*submitted(), *cancelled(), ended(state="cancelled", token=0)],
    "a running job that was cancelled": [
        *submitted(),
        *ran(ok=False),
        *cancelled("cancelling", t=1.5, token=1),
        ended(state="cancelled"),
    ],
    "a running job that was cancelled twice": [
        *submitted(),
        *ran(ok=False),
        *cancelled("cancelling", t=1.5, token=1),
        *cancelled("cancelled", t=9.5, token=1),
        ended(state="cancelled"),
    ],
    "a run that began just after it was asked to stop": [
        *submitted(),
        *ran(ok=False),
        *cancelled("cancelling", t=0.9, token=1),
        ended(state="cancelled"),
    ],
    "a run that ended well while it was asked to stop": [
        *submitted(),
        *ran(),
        *cancelled("cancelling", t=1.5, token=1),
        ended(),
    ],
    "a cancel that came too late": [*clean(), *cancelled("succeeded", t=3.0)],
    "a start that proved by the lock that it was alone": [
        *without(Death, without(Witness, retried())),
        *ran(ok=None),
        *ran(token=2, t=3.0, last=4.0, alone=True),
    ],
    "failed as often as its policy allows": [
        *submitted(),
        *ran(ok=False),
        *ran(token=2, t=3.0, last=4.0, ok=False),
        ended(state="dead", token=2, failures=2, max_attempts=2, attempts=2, reason="error"),
    ],
    "quarantined": [*submitted(), ended(state="dead", token=3, losses=3, max_attempts=5, reason="quarantined")],
    "given up on purpose": [
        *submitted(),
        *ran(ok=False),
        ended(state="dead", failures=1, max_attempts=5, reason="fatal"),
    ],
    "one after the other under a limit": [
        *submitted(),
        *submitted("b"),
        *ran(),
        *ran("b", t=2.0, last=3.0),
        Cap(key="one", most=1),
        ended(limit_keys=("one",)),
        ended("b", limit_keys=("one",)),
    ],
    "a child after its parent": [
        *submitted(),
        *submitted("b"),
        *ran(),
        *ran("b", t=2.0, last=3.0),
        ended(),
        ended("b", parents=("a",)),
    ],
}


@pytest.mark.parametrize("story", CLEAN)
def test_nothing_is_found_where_nothing_is_wrong(story: str) -> None:
    assert check(History(CLEAN[story])) == []


def test_the_order_of_the_records_does_not_matter() -> None:
    for records in (*CLEAN.values(), *(found for planted in PLANTED.values() for found in planted)):
        assert found_in(records) == found_in(records[::-1])


def test_an_error_of_the_clocks_is_tolerated_when_it_was_measured() -> None:
    records = [*submitted(), *ran(), ended(due=1.001, finished=1.9995)]
    late = [*clean(), Healed(t=-51.001)]

    assert found_in(records) == {"EARLY", "RAN_ON"}
    assert found_in(records, clock_error=0.0015) == set()
    assert found_in(late) == {"STUCK"}
    assert found_in(late, clock_error=0.0015) == set()


def test_a_violation_says_what_happened_to_which_job() -> None:
    [violation] = check(History(PLANTED["CONCURRENT"][0]))

    assert str(violation) == "CONCURRENT a: tokens 1 and 2 for 0.500 s"


# The sweep


def _execution(first: int, length: int, number: int) -> Execution:
    last = float(first + length)
    return Execution(
        job="a", token=number, run=str(number), first=float(first), last=last, upto=last, started=True, ended=last
    )


@st.composite
def some_executions(draw: st.DrawFn) -> list[Execution]:
    spans = draw(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=12))
    return [_execution(first, length, number) for number, (first, length) in enumerate(spans)]


def _alive_at_once(one: Execution, other: Execution) -> bool:
    """The plain definition: one begins while the other lives. Of two that begin together, both last a while."""
    early, late = sorted((one, other), key=lambda run: (run.first, run.last))
    return late.first < early.last


@given(some_executions())
def test_the_sweep_finds_the_pairs_that_brute_force_finds(runs: list[Execution]) -> None:
    brute = {
        frozenset((one.run, other.run))
        for position, one in enumerate(runs)
        for other in runs[:position]
        if _alive_at_once(one, other)
    }

    pairs = overlaps(runs, lambda run: run.last)

    assert {frozenset((old.run, new.run)) for old, new in pairs} == brute
    assert len(pairs) == len(brute)
    assert all(old.first <= new.first for old, new in pairs)


@given(some_executions())
def test_the_busiest_instant_is_that_of_brute_force(runs: list[Execution]) -> None:
    lasting = [run for run in runs if run.last > run.first]
    between = [instant + 0.5 for instant in range(41)]

    assert most_at_once(lasting) == max(sum(run.first < at < run.last for run in lasting) for at in between)


# Runs that prove nothing


def test_a_run_without_the_fault_it_was_meant_for_is_invalid() -> None:
    with pytest.raises(Vacuous, match=r"^kills was 0, at least 1 needed; reclaims was 0, at least 1 needed$"):
        require(History(clean()), kills=1, reclaims=1, executions=1)


def test_a_run_with_enough_of_everything_counts() -> None:
    figures = require(History(retried()), kills=1, reclaims=1, deaths=1, faults=1)

    assert (figures.submitted, figures.acknowledged, figures.succeeded, figures.executions) == (1, 1, 1, 2)


def test_results_that_had_to_be_refused_and_unknown_outcomes_are_counted() -> None:
    late = [*submitted(), *ran(), *ran(token=2, t=3.0, last=4.0), ended(token=2)]
    unknown = Submit(t=7.0, phase="unknown", key="key-b")

    figures = measure(History([*late, unknown, *cancelled("succeeded", t=5.0)]))

    assert (figures.stale, figures.reclaims, figures.unknown, figures.cancelled) == (1, 0, 1, 1)


# Lateness


def test_lateness_is_told_apart_for_quiet_and_faulted_times() -> None:
    records: list[Record] = [Fault(t=9.0, name="stop", phase="begin"), Fault(t=12.0, name="stop", phase="end")]
    for number in range(100):
        records += [*ran(f"q{number}", t=1.0 + number / 1000), ended(f"q{number}", due=1.0)]
    records += [*ran("f", t=20.0, last=21.0), ended("f", due=13.0), *ran("g", t=30.0, last=31.0), ended("g", due=29.0)]

    told = lateness(History(records), settling=5.0)

    assert told["faulted"].jobs == 1
    assert told["faulted"].most == 7.0
    assert told["quiet"].jobs == 101
    assert told["quiet"].p50 == pytest.approx(0.050)
    assert told["quiet"].p99 == pytest.approx(0.099)
    assert told["quiet"].most == 1.0


# Records on disk


def test_records_come_back_from_a_file_as_they_were() -> None:
    records = [*retried(), *cancelled(), Cap(key="one", most=1), Left(t=1.0, pid=1, command="x")]

    assert list(from_lines(to_lines(records))) == records


def test_the_torn_last_line_of_a_killed_writer_is_passed_over() -> None:
    [line] = to_lines(ran()[:1])

    assert list(from_lines([line, line[:20]])) == ran()[:1]


def test_a_broken_line_in_the_middle_is_no_evidence_of_anything_and_is_refused() -> None:
    with pytest.raises(msgspec.DecodeError):
        list(from_lines([b'{"type":"Witness"\n']))
