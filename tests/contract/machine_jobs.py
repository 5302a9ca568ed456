"""Random steps with jobs, gates and limits, taken by a store and by the reference together."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tests.builders import SECOND, a_job
from tests.contract.backends import Backend
from tests.contract.reference_schedules import ScheduleReference
from tests.contract.steps import everything
from tidewheel.errors import Conflict
from tidewheel.model.dead_letter import DeadFilter
from tidewheel.model.gate import GateMode, GateSpec
from tidewheel.model.job import Job, JobSpec, Run
from tidewheel.model.pace import MOST_RATE
from tidewheel.model.rate import Pace
from tidewheel.model.states import State
from tidewheel.store.base import Store

T = TypeVar("T")

MOST = 3
"""The largest limit, which is also one of a rate."""
TENANTS = st.sampled_from(["a", "a", "b"])
KINDS = st.sampled_from(["x", "x", "y"])
WHICH = st.integers(0, 1)
PICK = st.integers(0, 30)
DELAYS = st.sampled_from([0, 0, 0, 2, 30]).map(lambda seconds: seconds * SECOND)
STEPS_OF_TIME = st.sampled_from([1, 1, 3, 11, 61]).map(lambda seconds: seconds * SECOND)
POLICIES = st.sampled_from(["skip", "skip", "run", "hold"])
MILLISECOND = timedelta(milliseconds=1)
HALF = timedelta(microseconds=500)  # deadlines never fall on an instant that the clock stops at
MAX_AGE = 120 * SECOND + HALF


class JobMachine(RuleBasedStateMachine):
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
        self.reference = ScheduleReference(self.backend.clock.now())

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
        parents = tuple(dict.fromkeys(ours[-1 - pick % len(ours)] for pick in picks))  # the latest are seldom done
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

    def some_job(self, pick: int) -> UUID:
        return list(self.reference.jobs)[pick % len(self.reference.jobs)]

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
