"""A small play for one store: clients, three crews and a reaper, told the time; all that happens is written down.

What the bodies do is written by the crews, as real tasks would; the store is asked only in the end. So the judge of the
real faults, `harness.checker`, can judge this, too, in a fraction of a second, and it can be seen whether he would
notice a store or a lease that is broken.
"""

from collections.abc import Iterable, Sequence
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from harness.checker import History
from harness.checker.records import Cancel, Cap, Death, Healed, Phase, Record, Submit, Witness
from harness.reading import Offset, read_all
from tests.builders import SECOND, a_claim, a_job, a_worker, outcome_of
from tests.contract.backends import START, Backend
from tidewheel.errors import LeaseLost, Unavailable
from tidewheel.model import liveness
from tidewheel.model.job import JobSpec, Options, Run
from tidewheel.model.outcome import Outcome
from tidewheel.model.retry import RetryPolicy
from tidewheel.model.states import ACTIVE, Cause
from tidewheel.store.base import JobFilter, Store

TTL: Final = timedelta(seconds=6)
GRACE: Final = 3.0
"""Seconds from the answer to a cancellation to the last sign of life."""
THRICE: Final = RetryPolicy(max_attempts=3, backoff="fixed", delay=SECOND, jitter="none")
LIMIT_KEY: Final = "narrow"
REFUSED: Final = "refused"
"""A label that the database is told to refuse."""
BEAT_EVERY: Final = 2.0
WOKEN: Final = 17
"""When the crew that was stopped goes on: its runs have been given to others, who have not ended them yet."""
LAST: Final = 40
"""Seconds after which whatever has not ended is stuck."""


def job(key: str, *, seconds: int = 1, fails: int = 0, **wishes: Any) -> JobSpec:
    """A body that takes so many seconds, and fails so many times before it ends well."""
    options = Options(retry=THRICE)
    return a_job(args={"seconds": seconds, "fails": fails}, idempotency_key=key, options=options, **wishes)


class Body:
    """One execution."""

    def __init__(self, crew: "Crew", run: Run) -> None:
        wishes = msgspec.json.decode(run.args)
        self.run = run
        self.left: int = wishes["seconds"]
        self.fails = run.token <= wishes["fails"]
        self.cancelled = False
        self._crew = crew
        self._say("start")

    def work(self) -> Outcome | None:
        """Go on for a second; return the outcome in the end."""
        self.left -= 1
        if self.left > 0 and not self.cancelled:
            self._say("tick")
            return None
        ok = not (self.fails or self.cancelled)
        self._say("end", ok=ok)
        if ok:
            return outcome_of(self.run, result=str(self.run.token))
        if self.cancelled:
            return outcome_of(self.run, Cause.STOPPED)
        last = self.run.failures + 1 >= THRICE.max_attempts
        return outcome_of(self.run, Cause.GAVE_UP if last else Cause.FAILED)

    def _say(self, event: Any, **more: Any) -> None:
        run, play = self.run, self._crew.play
        name = f"{run.job_id}-{run.token}-{self._crew.pid}-{id(self)}"
        common: dict[str, Any] = {"job": str(run.job_id), "token": run.token, "run": name, "pid": self._crew.pid}
        play.records.append(Witness(t=play.now, event=event, **common, **more))


class Crew:
    """A worker with its own process: claims, runs, beats, and is ended by the kernel when its lease is over."""

    def __init__(self, play: "Play", pid: int, worker_id: UUID, room: int) -> None:
        self.play = play
        self.pid = pid
        self.room = room
        self.worker_id = worker_id
        self.bodies: dict[UUID, Body] = {}
        self.stopped = False
        self.dead = False
        self.beaten_at = play.now
        self.until = liveness.holder_deadline(play.now, TTL)

    async def step(self) -> None:
        """Live for a second."""
        if not self.dead and self.play.now >= self.until:
            self.die()
        if self.dead or self.stopped:
            return
        await self.report(self.work())
        if self.play.now >= self.beaten_at + BEAT_EVERY:
            await self._beat()
        if not self.dead:
            await self.claim()

    def work(self) -> list[Outcome]:
        """Let the bodies go on; return what came of those that are over."""
        ended = {job_id: outcome for job_id, body in self.bodies.items() if (outcome := body.work()) is not None}
        for job_id in ended:
            del self.bodies[job_id]
        return list(ended.values())

    async def report(self, outcomes: Sequence[Outcome]) -> None:
        if outcomes:
            await self.play.store.settle(self.worker_id, outcomes)

    async def _beat(self) -> None:
        self.beaten_at = sent_at = self.play.now
        answers = await self.play.store.beat([self.worker_id])
        if not answers:
            self.die()
        for answer in answers:
            self.until = liveness.holder_deadline(sent_at, TTL)
            for job_id, token in answer.cancelling:
                if job_id in self.bodies and self.bodies[job_id].run.token == token:
                    self.bodies[job_id].cancelled = True

    async def claim(self) -> None:
        """Take what there is room for; a crew that the store calls dead gets nothing."""
        if len(self.bodies) >= self.room:
            return
        try:
            claimed = await self.play.store.claim(a_claim(self.worker_id, limit=self.room - len(self.bodies)))
        except LeaseLost:
            return
        for run in [] if self.dead else claimed.runs:  # nobody is there to hear the answer
            self.bodies[run.job_id] = Body(self, run)

    def die(self) -> None:
        """End with all bodies, which leave no word."""
        self.dead = True
        self.bodies.clear()
        self.play.records.append(Death(t=self.play.now, pid=self.pid))


class Play:
    """The stage."""

    def __init__(self, backend: Backend, store: Store) -> None:
        self.backend = backend
        self.store = store
        self.records: list[Record] = []
        self.crews: list[Crew] = []
        self._watched: dict[UUID, liveness.Watched] = {}

    @property
    def now(self) -> float:
        return (self.backend.clock.now() - START).total_seconds()

    async def join(self, pid: int, *, room: int = 20) -> Crew:
        worker = await self.store.register(a_worker(f"crew-{pid}", ttl=TTL))
        self.crews.insert(0, Crew(self, pid, worker.id, room))
        return self.crews[0]

    async def submit(self, *specs: JobSpec) -> list[UUID]:
        """Submit as one; return the jobs, or none if that was refused."""
        self._told(specs, "invoke", [None] * len(specs))
        try:
            answers = await self.store.submit(specs)
        except Unavailable:
            self._told(specs, "fail", [None] * len(specs))
            return []
        self._told(specs, "ok", [str(answer.job_id) for answer in answers])
        return [answer.job_id for answer in answers]

    def _told(self, specs: Sequence[JobSpec], phase: Phase, jobs: Iterable[str | None]) -> None:
        for spec, job_id in zip(specs, jobs, strict=True):
            self.records.append(Submit(t=self.now, phase=phase, key=spec.idempotency_key or "", job=job_id))

    async def cancel(self, job_id: UUID) -> None:
        self.records.append(Cancel(t=self.now, phase="invoke", job=str(job_id)))
        shown = await self.store.cancel(job_id)
        state = "cancelling" if shown.cancelling else shown.state.value
        self.records.append(Cancel(t=self.now, phase="ok", job=str(job_id), state=state, token=shown.token))

    async def step(self) -> None:
        """Let a second pass for all; who came last is quickest."""
        await self.backend.clock.advance(SECOND)
        for crew in self.crews:
            await crew.step()
        dead, self._watched = liveness.observe(self._watched, await self.store.expired(), self.now)
        for worker in dead:
            await self.store.reap(worker.id, worker.beat)

    async def history(self) -> History:
        finals = await read_all(self.store, Offset(START.timestamp()))
        return History([*self.records, *finals], deadline=float(LAST), grace=GRACE)

    async def is_over(self) -> bool:
        return not (await self.store.find(JobFilter(states=frozenset(ACTIVE)), limit=1)).jobs


async def perform(play: Play) -> History:
    """Play the one piece there is, from the first submit until all has ended or nothing will."""
    await play.store.set_limit(LIMIT_KEY, 1)
    play.records.append(Cap(key=LIMIT_KEY, most=1))
    await play.backend.refuse_jobs_with_label(REFUSED)
    await play.submit(job("nearly", seconds=3), job("orphan", seconds=7))
    first = await play.join(101, room=2)
    await play.step()
    await play.join(102)
    stopped, failing = await _submit_all(play)
    await play.step()
    await play.step()
    await play.join(103)
    await play.cancel(stopped)
    await play.cancel(failing)
    # The first is stopped, longer than its lease; a result and a claim of it are still on their way.
    outcomes = first.work()
    first.stopped = True
    while play.now < WOKEN:
        await play.step()
    await first.report(outcomes)
    first.stopped = False
    play.records.append(Healed(t=play.now))
    await play.submit(job("late"))
    await first.claim()
    while not await play.is_over() and play.now < LAST:
        await play.step()
    return await play.history()


async def _submit_all(play: Play) -> list[UUID]:
    """Submit one of everything; return the two that are to be cancelled while they run."""
    await play.submit(job("plain"), job("long", seconds=16), job("hopeless", fails=9), job("stumbling", fails=1))
    await play.submit(job("later", delay=4 * SECOND))
    await play.submit(job("twice"))
    await play.submit(job("twice"))
    await play.submit(*(job(f"limited-{n}", seconds=2, limit_keys=(LIMIT_KEY,)) for n in range(3)))
    await play.submit(job("torn-0"), job("torn-1", labels={REFUSED: "yes"}))
    [parent] = await play.submit(job("parent", seconds=2))
    await play.submit(job("child", after=(parent,)))
    [unwanted] = await play.submit(job("unwanted", delay=6 * SECOND))
    await play.cancel(unwanted)
    return await play.submit(job("stopped", seconds=12), job("failing", seconds=2, fails=9))
