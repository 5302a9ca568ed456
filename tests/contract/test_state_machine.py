"""Random scripts drive a store and the reference together; if they disagree, the shortest such script is shown."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from contextlib import suppress
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from tests.builders import SECOND, a_claim, a_job, a_worker, outcome_of, some_jobs
from tests.contract.backends import Backend
from tests.contract.reference import Reference
from tests.contract.steps import everything
from tidewheel.errors import Conflict, LeaseLost
from tidewheel.model.dead_letter import DeadFilter
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Job, JobSpec, Run
from tidewheel.model.outcome import REPORTABLE, Outcome, Verdict
from tidewheel.model.pace import MOST_RATE
from tidewheel.model.rate import Pace
from tidewheel.model.states import Cause, State
from tidewheel.store.base import Store

T = TypeVar("T")
LONG = bool(os.environ.get("TIDE_LONG"))
EXAMPLES, STEPS = (1_000, 80) if LONG else (80, 40)

EVENTS = (
    *("claimed", "lease lost", "reaped", "lost", "redriven", "expired", "dropped", "cancelling", "held", "followed"),
    "too old",
    *("KeyReused", "AlreadyActive", "known key", Verdict.ACCEPTED, Verdict.REPEATED, Verdict.STALE),
)
STATES = tuple(State)
"""What must have been met at least once in a whole run."""

MOST = 3
"""The largest limit, which is also one of a rate."""
TENANTS = st.sampled_from(["a", "a", "b"])
KINDS = st.sampled_from(["x", "x", "y"])
WHICH = st.integers(0, 1)
PICK = st.integers(0, 30)
CAUSES = st.sampled_from([Cause.RETURNED, Cause.RETURNED, *sorted(REPORTABLE)])
DELAYS = st.sampled_from([0, 0, 0, 2, 30]).map(lambda seconds: seconds * SECOND)
STEPS_OF_TIME = st.sampled_from([1, 1, 3, 11, 61]).map(lambda seconds: seconds * SECOND)
POLICIES = st.sampled_from(["skip", "skip", "run", "hold"])
MILLISECOND = timedelta(milliseconds=1)
HALF = timedelta(microseconds=500)  # deadlines never fall on an instant that the clock stops at
MAX_AGE = 120 * SECOND + HALF


class StoreMachine(RuleBasedStateMachine):
    """Two stores on one database, and the reference.

    What a rule works on is picked by number from what there is, not drawn from bundles: a store is free in what it
    hands out, and what is drawn must not depend on that, or a script could not be played again.
    """

    def __init__(self, new_backend: Callable[[], Backend], seen: Counter[str]) -> None:
        super().__init__()
        self.seen = seen
        self.latest: dict[UUID, tuple[UUID, Run]] = {}
        self.all_runs: list[tuple[UUID, Run]] = []
        self._runner = asyncio.Runner()
        self.backend = new_backend()
        self.stores = [self.do(self.backend.open()) for _ in range(2)]
        self.reference = Reference(self.backend.clock.now())

    def do(self, call: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(call)

    def teardown(self) -> None:
        store = self.stores[0]
        try:
            for job in self.reference.jobs.values():
                assert len(self.do(store.attempts(job.id))) == job.attempts
            assert self.do(store.repair_limits()) == 0
        finally:
            self.do(self.backend.close())
            self._runner.close()
            self.backend.destroy()

    # Jobs

    @rule(
        which=WHICH,
        tenant=TENANTS,
        kind=KINDS,
        priority=st.integers(0, 2),
        delay=DELAYS,
        start_by=st.sampled_from([None, None, 5, 60]),
        limit_keys=st.sampled_from([(), ("l",), ("l",), ("m", "l")]),
    )
    def submit(self, which: int, start_by: int | None, **fields: Any) -> None:
        deadline = None if start_by is None else self.reference.now + start_by * SECOND + HALF
        self._submit(self.stores[which], a_job(start_by=deadline, **fields))

    @rule(which=WHICH, tenant=TENANTS, key=st.sampled_from("ij"), n=st.integers(0, 1))
    def submit_with_an_idempotency_key(self, which: int, tenant: str, key: str, n: int) -> None:
        self._submit(self.stores[which], a_job("x", tenant=tenant, idempotency_key=key, args={"n": n}))

    @rule(which=WHICH, key=st.sampled_from("uv"), unique=st.sampled_from(["reject", "keep", "replace"]))
    def submit_with_a_unique_key(self, which: int, key: str, unique: str) -> None:
        self._submit(self.stores[which], a_job("y", tenant="a", unique_key=key, unique=unique))

    @rule(which=WHICH, kind=KINDS, count=st.integers(2, 4), limit_keys=st.sampled_from([(), ("l",)]))
    def submit_many(self, which: int, kind: str, count: int, limit_keys: tuple[str, ...]) -> None:
        spec = a_job(kind, tenant="a", limit_keys=limit_keys)
        answers = self.do(self.stores[which].submit([spec] * count))
        for answer in answers:
            self.reference.submit(spec, answer.job_id)
        self.advance(MILLISECOND)

    @rule(which=WHICH, kind=KINDS, picks=st.sets(PICK, min_size=1, max_size=3), policy=POLICIES, delay=DELAYS)
    def submit_after_others(self, which: int, kind: str, picks: set[int], policy: str, delay: timedelta) -> None:
        ours = [job.id for job in self.reference.jobs.values() if job.spec.tenant == "a"]
        parents = tuple({ours[-1 - pick % len(ours)] for pick in picks})  # the latest are seldom done
        self._submit(self.stores[which], a_job(kind, tenant="a", after=parents, on_parent_failure=policy, delay=delay))

    def _submit(self, store: Store, spec: JobSpec) -> None:
        expected = self.reference.expect_submit(spec)
        try:
            (answer,) = self.do(store.submit([spec]))
        except Conflict as refusal:
            assert type(refusal) is expected  # noqa: PT017
            self.seen[type(refusal).__name__] += 1
            return
        assert answer.created == (expected is None)
        if answer.created:
            self.reference.submit(spec, answer.job_id)
            self.advance(MILLISECOND)  # so that the order of jobs does not hang on chance
            return
        assert answer.job_id == expected
        self.seen["known key"] += 1

    @rule(which=WHICH, pick=PICK)
    def cancel(self, which: int, pick: int) -> None:
        self._cancel(self.stores[which], self.some_job(pick))

    def _cancel(self, store: Store, job_id: UUID) -> None:
        shown = self.do(store.cancel(job_id))
        self.reference.cancel(job_id)
        self.reference.agree(shown)

    @rule(which=WHICH, pick=PICK)
    def redrive(self, which: int, pick: int) -> None:
        job_id = self.some_job(pick)
        redriven = self.do(self.stores[which].redrive([job_id]))
        assert redriven == ([job_id] if self.reference.redrive(job_id) else [])
        self.seen["redriven"] += len(redriven)
        dead = sorted(other for other, job in self.reference.jobs.items() if job.state is State.DEAD)
        if pick % 3 == 0:
            piece = self.do(self.stores[which].redrive_dead(DeadFilter()))
            assert piece.jobs == [other for other in dead if self.reference.redrive(other)]

    # Workers and runs

    @initialize(most=st.integers(1, 2))
    def begin(self, most: int) -> None:
        """Begin with something to do, so that short scripts, too, come to something."""
        self.set_limit(0, "a", "l", most)
        for spec in (*some_jobs(3, "x", tenant="a", limit_keys=("l",)), *some_jobs(2, "x", tenant="b"), a_job("y")):
            self._submit(self.stores[0], spec)
        self.register(600)

    @rule(ttl=st.sampled_from([10, 60, 600]))
    def another_worker(self, ttl: int) -> None:
        self.register(ttl)

    def register(self, ttl: int) -> UUID:
        worker = self.do(self.stores[0].register(a_worker(ttl=ttl * SECOND)))
        self.reference.register(worker)
        return worker.id

    @rule(which=WHICH, pick=PICK)
    def beat(self, which: int, pick: int) -> None:
        worker_id = self.some_worker(pick)
        beats = self.do(self.stores[which].beat([worker_id]))
        assert len(beats) == self.reference.workers[worker_id].alive
        for beat in beats:
            self.reference.beat(worker_id, beat.beat)
            assert beat.lease_until == self.reference.workers[worker_id].lease_until
            assert set(beat.cancelling) == self.reference.cancelling(worker_id)

    @rule(which=WHICH, pick=PICK, stale=st.booleans())
    def reap(self, which: int, pick: int, *, stale: bool) -> None:
        self._reap(self.stores[which], self.some_worker(pick), stale=stale)

    def _reap(self, store: Store, worker_id: UUID, *, stale: bool) -> None:
        beat = self.reference.workers[worker_id].beat - stale
        possible = self.reference.can_reap(worker_id, beat)
        reaped = self.do(store.reap(worker_id, beat))
        assert reaped == (self.reference.end_worker(worker_id, Cause.LOST) if possible else None)
        self.seen["reaped"] += reaped is not None
        self.seen["lost"] += 0 if reaped is None else reaped.requeued

    @rule(which=WHICH, pick=PICK)
    def deregister(self, which: int, pick: int) -> None:
        worker_id = self.some_worker(pick)
        left = self.do(self.stores[which].deregister(worker_id))
        assert left == self.reference.end_worker(worker_id, Cause.RELEASED)

    @rule(which=WHICH, pick=PICK, limit=st.integers(1, 6), kinds=st.sampled_from([None, frozenset("x")]))
    def claim(self, which: int, pick: int, limit: int, kinds: frozenset[str] | None) -> None:
        self._claim(self.stores[which], self.somebody_alive(pick), limit, kinds)

    @rule(which=WHICH, pick=PICK)
    def claim_without_a_lease(self, which: int, pick: int) -> None:
        worker_id = self.some_worker(pick)
        if self.reference.can_claim(worker_id):
            return
        with suppress(LeaseLost):
            self.do(self.stores[which].claim(a_claim(worker_id)))
            raise AssertionError("a worker without a lease got an answer")
        self.seen["lease lost"] += 1

    def _claim(self, store: Store, worker_id: UUID, limit: int, kinds: frozenset[str] | None) -> list[Run]:
        request = a_claim(worker_id, limit, kinds=kinds)
        runs = self.do(store.claim(request)).runs
        self.reference.claim(request, runs)
        self.seen["claimed"] += len(runs)
        self.latest.update({run.job_id: (worker_id, run) for run in runs})
        self.all_runs += [(worker_id, run) for run in runs]
        return runs

    def some_job(self, pick: int) -> UUID:
        return list(self.reference.jobs)[pick % len(self.reference.jobs)]

    def some_worker(self, pick: int) -> UUID:
        return list(self.reference.workers)[pick % len(self.reference.workers)]

    def somebody_alive(self, pick: int) -> UUID:
        alive = [worker_id for worker_id in self.reference.workers if self.reference.can_claim(worker_id)]
        return alive[pick % len(alive)] if alive else self.register(600)

    def somebody_running(self, pick: int) -> tuple[UUID, Run] | None:
        running = [job.id for job in self.reference.jobs.values() if job.state is State.RUNNING]
        return self.latest[running[pick % len(running)]] if running else None

    @rule(which=WHICH, pick=PICK, cause=CAUSES, delay=DELAYS)
    def settle(self, which: int, pick: int, cause: Cause, delay: timedelta) -> None:
        if found := self.somebody_running(pick):
            self._settle(self.stores[which], found[0], outcome_of(found[1], cause, delay=delay))

    @rule(which=WHICH, pick=PICK, cause=CAUSES, again=st.booleans())
    def settle_any_run_that_ever_was(self, which: int, pick: int, cause: Cause, *, again: bool) -> None:
        if self.all_runs:
            worker_id, run = self.all_runs[pick % len(self.all_runs)]
            known = self.reference.accepted.get((run.job_id, run.token, worker_id)) if again else None
            self._settle(self.stores[which], worker_id, outcome_of(run, known or cause))

    @rule(which=WHICH, pick=PICK, other=PICK, cause=CAUSES)
    def settle_for_another(self, which: int, pick: int, other: int, cause: Cause) -> None:
        if found := self.somebody_running(pick):
            self._settle(self.stores[which], self.some_worker(other), outcome_of(found[1], cause))

    @rule(which=WHICH, pick=PICK, back=st.sampled_from([Cause.RELEASED, Cause.FAILED]), cause=CAUSES)
    def settle_a_run_that_is_followed_by_another(self, which: int, pick: int, back: Cause, cause: Cause) -> None:
        """In the name of who has the job now, so that nothing but the token tells the two runs apart."""
        store, found = self.stores[which], self.somebody_running(pick)
        if found is None:
            return
        self._settle(store, found[0], outcome_of(found[1], back))
        self.do(self._compare())  # follows which waiters were let go
        self._claim(store, self.somebody_alive(pick), 6, None)
        owner, newer = self.latest[found[1].job_id]
        if newer.token > found[1].token:
            self._settle(store, owner, outcome_of(found[1], cause))
            self.seen["followed"] += 1

    def _settle(self, store: Store, worker_id: UUID, *outcomes: Outcome) -> None:
        verdicts = self.do(store.settle(worker_id, outcomes))
        for verdict, outcome in zip(verdicts, outcomes, strict=True):
            assert verdict in self.reference.settle(worker_id, outcome)
            self.seen[verdict] += 1

    @rule(which=WHICH, pick=PICK, limit=st.integers(1, 6), cause=CAUSES)
    def work(self, which: int, pick: int, limit: int, cause: Cause) -> None:
        """Claim and settle in one step, so that scripts get somewhere."""
        worker_id = self.somebody_alive(pick)
        runs = self._claim(self.stores[which], worker_id, limit, None)
        self._settle(self.stores[which], worker_id, *(outcome_of(run, cause) for run in runs))

    @rule(which=WHICH, pick=PICK)
    def cancel_a_run(self, which: int, pick: int) -> None:
        if found := self.somebody_running(pick):
            self._cancel(self.stores[which], found[1].job_id)

    @rule(which=WHICH, pick=PICK)
    def lose_a_worker(self, which: int, pick: int) -> None:
        """Let the worker of some run fall silent, and reap it."""
        if found := self.somebody_running(pick):
            worker = self.reference.workers[found[0]]
            self.advance(max(worker.lease_until - self.reference.now, SECOND))
            self._reap(self.stores[which], found[0], stale=False)

    # Flow and chores

    @rule(which=WHICH, mode=st.sampled_from(GateMode), tenant=st.sampled_from([None, "a"]), stop=st.booleans())
    def close_gate(self, which: int, mode: GateMode, tenant: str | None, *, stop: bool) -> None:
        """Always on the same kind, for else most scripts would soon stand still."""
        slow = mode is GateMode.SLOW
        rate = MOST_RATE if slow else None  # as good as open, but by the way of the slow
        spec = GateSpec(mode=mode, kind="y", tenant=tenant, rate=rate, stop_running=stop and not slow)
        self.reference.close_gate(self.do(self.stores[which].close_gate(spec)))

    @rule(which=WHICH, most=st.integers(1, 4))
    def open_gates(self, which: int, most: int) -> None:
        for gate_id in list(self.reference.gates)[:most]:
            self.do(self.stores[which].open_gate(gate_id))
            del self.reference.gates[gate_id]

    @rule(which=WHICH, tenant=TENANTS, key=st.sampled_from("lm"), most=st.integers(1, MOST))
    def set_limit(self, which: int, tenant: str, key: str, most: int) -> None:
        rate = Pace(1, 1, 2) if most == MOST else None
        self.do(self.stores[which].set_limit(key, most, rate=rate, tenant=tenant))
        self.reference.limits[tenant, key] = most

    @rule(which=WHICH, tenant=TENANTS, key=st.sampled_from("lm"))
    def remove_limit(self, which: int, tenant: str, key: str) -> None:
        if self.reference.limits.pop((tenant, key), None) is not None:
            self.do(self.stores[which].remove_limit(key, tenant=tenant))

    @rule(which=WHICH)
    def repair_limits(self, which: int) -> None:
        assert self.do(self.stores[which].repair_limits()) == 0

    @rule(which=WHICH)
    def recheck_blocked(self, which: int) -> None:
        """Everything was told in the transaction of the end, so there is nothing left to do."""
        assert self.do(self.stores[which].unblock()) == 0
        assert self.do(self.stores[which].recheck_blocked()) == 0

    @rule(which=WHICH)
    def expire(self, which: int) -> None:
        expired = self.do(self.stores[which].expire())
        assert expired == self.reference.expire()
        self.seen["expired"] += expired
        old = self.do(self.stores[which].expire_old(MAX_AGE))
        assert old == self.reference.expire_old(MAX_AGE)
        self.seen["too old"] += old

    @rule(which=WHICH)
    def drop_gated(self, which: int) -> None:
        self.close_gate(which, GateMode.DROP, "a", stop=False)
        dropped = self.do(self.stores[which].drop_gated())
        assert dropped == self.reference.drop_gated()
        self.seen["dropped"] += dropped

    @rule(by=STEPS_OF_TIME)
    def advance(self, by: timedelta) -> None:
        self.do(self.backend.clock.advance(by))
        self.reference.now = self.backend.clock.now()

    # What must hold after every step

    @invariant()
    def the_store_agrees_with_the_reference(self) -> None:
        self.do(self._compare())

    async def _compare(self) -> None:
        first, second = self.stores
        shown, limits, expired = await asyncio.gather(everything(first), second.limits(), first.expired())
        self._compare_jobs(shown)
        running = self.reference.running()
        found = {(limit.tenant, limit.key): (limit.most, limit.running) for limit in limits}
        assert found == {key: (most, running[key]) for key, most in self.reference.limits.items()}
        assert {worker.id for worker in expired} == self.reference.silent()
        for job in shown[-1:]:
            assert await second.get(job.id) == job

    def _compare_jobs(self, shown: list[Job]) -> None:
        assert sorted(job.id for job in shown) == sorted(self.reference.jobs)
        for job in shown:
            self.reference.agree(job)
            self.seen[job.state] += 1
            self.seen["cancelling"] += job.cancelling
            self.seen["held"] += job.gate == GateMode.HOLD


@pytest.mark.timeout(600)  # a script that fails is shortened for up to five minutes
def test_random_scripts_find_no_difference_to_the_reference(new_backend: Callable[[], Backend]) -> None:
    seen = Counter[str]()

    class Machine(StoreMachine):
        def __init__(self) -> None:
            super().__init__(new_backend, seen)

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=STEPS,
            deadline=None,
            report_multiple_bugs=False,
            derandomize=not LONG,
            suppress_health_check=list(HealthCheck),
        ),
    )
    missed = [event for event in (*EVENTS, *STATES) if not seen[event]]
    assert not missed, f"the scripts never came to {missed}, so they prove little"
