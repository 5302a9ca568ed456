"""Gates, limits, outcomes and submissions: the decisions around them."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidewheel.errors import Invalid
from tidewheel.model.gate import Gate, GateMode, GateSpec, check_gate, flag_of
from tidewheel.model.job import JobSpec, Options
from tidewheel.model.limit import admit, check_limit
from tidewheel.model.outcome import REPORTABLE, Verdict, recognise
from tidewheel.model.priority import Priority
from tidewheel.model.states import Cause
from tidewheel.model.submission import fingerprint, prepare
from tidewheel.model.worker import check_ttl

AT = datetime(2030, 1, 1, tzinfo=UTC)


def gate(mode: GateMode, **fields: Any) -> Gate:
    return Gate(id=uuid4(), mode=mode, created_at=AT, **fields)


def test_a_lane_says_what_the_strongest_of_its_gates_says() -> None:
    here = {"kind": "mail", "queue": "default", "tenant": "acme"}
    gates = [gate(GateMode.HOLD, kind="mail"), gate(GateMode.DROP, kind="mail", tenant="other")]
    assert flag_of([], **here) == "open"
    assert flag_of(gates, **here) == "hold"
    assert flag_of([*gates, gate(GateMode.DROP, queue="default")], **here) == "drop"


def test_a_gate_on_nothing_is_refused() -> None:
    with pytest.raises(Invalid) as refusal:
        check_gate(GateSpec(mode=GateMode.HOLD))
    assert refusal.value.field == "gate"


@pytest.mark.parametrize("most", [0, -1])
def test_a_limit_that_stops_everything_is_refused(most: int) -> None:
    with pytest.raises(Invalid, match="at least 1"):
        check_limit("key", most)


def test_a_job_takes_all_of_its_keys_or_none() -> None:
    admission = admit([["a"], ["a", "b"], ["b"], ["free"]], {"a": 1, "b": 1})
    assert admission.admitted == (0, 2, 3)
    assert admission.refused == {1: "a"}
    assert admission.taken == {"a": 1, "b": 1}


KEYS = st.lists(st.sampled_from("abcd"), unique=True, max_size=3)


@given(st.lists(KEYS, max_size=30), st.dictionaries(st.sampled_from("abc"), st.integers(-2, 5)))
def test_no_limit_is_ever_passed(candidates: list[list[str]], free: dict[str, int]) -> None:
    admission = admit(candidates, free)
    for key, room in free.items():
        taken = sum(key in candidates[index] for index in admission.admitted)
        assert taken <= max(0, room)
        assert admission.taken.get(key, 0) == taken
    assert sorted([*admission.admitted, *admission.refused]) == list(range(len(candidates)))


@given(st.lists(KEYS, max_size=30), st.dictionaries(st.sampled_from("abc"), st.integers(0, 5)))
def test_who_is_refused_found_that_key_full(candidates: list[list[str]], free: dict[str, int]) -> None:
    admission = admit(candidates, free)
    for index, key in admission.refused.items():
        before = sum(key in candidates[earlier] for earlier in admission.admitted if earlier < index)
        assert before >= free[key]


@given(st.sampled_from(sorted(REPORTABLE)))
def test_an_outcome_is_a_repetition_only_of_itself(cause: Cause) -> None:
    assert recognise(cause, cause.value) is Verdict.REPEATED
    assert recognise(cause, None) is Verdict.STALE
    assert recognise(cause, "lost") is Verdict.STALE


def test_a_result_is_no_repetition_of_a_cancellation_or_a_return_to_the_queue() -> None:
    assert recognise(Cause.RETURNED, "stopped") is Verdict.STALE
    assert recognise(Cause.RETURNED, "queued") is Verdict.STALE
    assert recognise(Cause.FAILED, "stopped") is Verdict.REPEATED
    assert recognise(Cause.RELEASED, "queued") is Verdict.REPEATED
    assert recognise(Cause.CRASHED, "quarantined") is Verdict.REPEATED
    assert recognise(Cause.RETURNED, "unstorable") is Verdict.UNSTORABLE


@pytest.mark.parametrize("ttl", [timedelta(0), timedelta(seconds=1), timedelta(hours=2)])
def test_leases_too_short_or_too_long_to_hold_are_refused(ttl: timedelta) -> None:
    with pytest.raises(Invalid, match="between 2 s and 1 h"):
        check_ttl(ttl)


def test_default_options_are_not_stored() -> None:
    assert prepare(JobSpec(kind="k")).options is None
    assert prepare(JobSpec(kind="k", options=Options(name="n"))).options == '{"name":"n"}'


def test_a_fingerprint_changes_with_each_field() -> None:
    base = JobSpec(kind="k", args={"a": 1, "b": 2})
    others = [
        JobSpec(kind="l", args={"a": 1, "b": 2}),
        JobSpec(kind="k", args={"a": 1, "b": 3}),
        JobSpec(kind="k", args={"a": 1, "b": 2}, priority=Priority.LOW),
        JobSpec(kind="k", args={"a": 1, "b": 2}, options=Options(timeout=timedelta(seconds=1))),
    ]
    prints = {fingerprint(spec) for spec in (base, *others)}
    assert len(prints) == 5
    assert fingerprint(JobSpec(kind="k", args={"b": 2, "a": 1})) == fingerprint(base)
