"""Random steps of workers: they come, claim, settle and fall silent."""

from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from tests.builders import SECOND, a_claim, a_job, a_worker, outcome_of, some_jobs
from tests.contract.machine_jobs import DELAYS, PICK, WHICH, JobMachine
from tidewheel.errors import LeaseLost
from tidewheel.model.job import Run
from tidewheel.model.outcome import REPORTABLE, Outcome
from tidewheel.model.states import Cause, State
from tidewheel.store.base import Store

CAUSES = st.sampled_from([Cause.RETURNED, Cause.RETURNED, *sorted(REPORTABLE)])


class RunMachine(JobMachine):
    """With workers."""

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
