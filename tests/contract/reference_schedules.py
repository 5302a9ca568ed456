"""The schedules of the reference: what each must have recorded, and what that makes of its jobs."""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from uuid import UUID

import msgspec

from tests.contract.reference import ModelJob, Reference
from tidewheel.errors import KeyReused, NameTaken, StaleVersion, TideError
from tidewheel.model.overlap import Alive, decide_due
from tidewheel.model.schedule import Fate, Occurrence, Schedule, ScheduleSpec, Source, Triggered
from tidewheel.model.states import WAITING, Cause, State
from tidewheel.store.schedule_rows import planned_job
from tidewheel.triggers import planning
from tidewheel.triggers.planning import Plan, fire_after

TICK = timedelta(microseconds=1)


@dataclass
class ModelOccurrence:
    """What must be true of one occurrence."""

    source: Source
    outcome: Fate
    job_id: UUID | None
    undecided: bool = False


@dataclass
class ModelSchedule:
    """What must be true of one schedule."""

    stored: Schedule
    """As it was last shown, for its id and its limit key."""
    spec: ScheduleSpec
    next_fire_at: datetime | None
    paused: bool = False
    version: int = 1
    fired: int = 0
    occurrences: dict[datetime, ModelOccurrence] = field(default_factory=dict)

    @property
    def slot(self) -> tuple[str, str]:
        return self.spec.tenant, self.stored.limit_key


@dataclass
class ScheduleReference(Reference):
    """The whole store, with its schedules."""

    schedules: dict[UUID, ModelSchedule] = field(default_factory=dict)

    # Making and steering them

    def refusal(
        self, spec: ScheduleSpec, known: ModelSchedule | None = None, version: int | None = None
    ) -> type[TideError] | None:
        """Return the error that a new definition must be refused with, if any."""
        if known is not None and version != known.version:
            return StaleVersion
        others = (other for other in self.schedules.values() if other is not known)
        taken = any((other.spec.tenant, other.spec.name) == (spec.tenant, spec.name) for other in others)
        return NameTaken if taken else None

    def create(self, schedule: Schedule) -> None:
        made = ModelSchedule(schedule, schedule.definition, fire_after(schedule, self.now))
        self.schedules[schedule.id] = made
        self._limit(made)

    def change(self, schedule: Schedule) -> int:
        """Give a schedule another definition; return how many occurrences were taken back."""
        known = self.schedules[schedule.id]
        taken = self._take_back(known)
        known.stored, known.spec = schedule, schedule.definition
        self._limit(known)
        self._moved(known)
        return taken

    def settle_due(self, schedule_id: UUID) -> int:
        """Record what is due before a schedule is changed; `follow` then brings the jobs. Return how many these are."""
        known = self.schedules[schedule_id]
        if known.next_fire_at is None or known.next_fire_at > self.now:
            return 0
        now = {"version": known.version, "fired": known.fired, "next_fire_at": known.next_fire_at}
        due = planning.plan(msgspec.structs.replace(known.stored, **now), self.now, self.now)
        recorded = self.record([due])
        return len(recorded) + self.settle_due(schedule_id)

    def pause(self, schedule_id: UUID, *, paused: bool) -> int:
        """Pause or resume a schedule; return how many occurrences were taken back."""
        known = self.schedules[schedule_id]
        if known.paused == paused:
            return 0
        taken = self._take_back(known)
        known.paused = paused
        self._moved(known)
        return taken

    def delete(self, schedule_id: UUID) -> None:
        known = self.schedules.pop(schedule_id)
        jobs = [job for job in self.jobs.values() if job.spec.schedule_id == schedule_id and job.state in WAITING]
        self._end_all(jobs, Cause.CANCELLED)
        self.limits.pop(known.slot, None)

    def _moved(self, known: ModelSchedule) -> None:
        known.version += 1
        known.next_fire_at = None if known.paused else fire_after(known.spec, self.now, known.fired)

    def _limit(self, known: ModelSchedule) -> None:
        if known.spec.most_alive is None:
            self.limits.pop(known.slot, None)
        else:
            self.limits[known.slot] = known.spec.most_alive

    def _take_back(self, known: ModelSchedule) -> int:
        """Forget what was written ahead and is not due, with the jobs."""
        ahead = {
            at: self.jobs[each.job_id]
            for at, each in known.occurrences.items()
            if each.source == "planned" and each.job_id is not None and at > self.now
        }
        waiting = {at: job for at, job in ahead.items() if job.state in WAITING}
        self._end_all(list(waiting.values()), Cause.CANCELLED)
        for at in waiting:
            del known.occurrences[at]
        known.fired -= len(waiting)
        return len(waiting)

    # Occurrences

    def expect_trigger(self, schedule_id: UUID, key: str | None) -> UUID | type[TideError] | None:
        """Return the job that must be answered with, the error that must be raised, or None for a new job."""
        tenant = self.schedules[schedule_id].spec.tenant
        if key is None or (seen := self.keys.get((tenant, key))) is None:
            return None
        return seen[1] if seen[0] == schedule_id else KeyReused

    def trigger(self, schedule_id: UUID, made: Triggered, key: str | None) -> None:
        known, fire_at = self.schedules[schedule_id], self.now
        while fire_at in known.occurrences:
            fire_at += TICK
        job_id = made.occurrence.job_id
        assert job_id is not None
        assert (made.occurrence.fire_at, made.occurrence.source) == (fire_at, "manual")
        known.occurrences[fire_at] = ModelOccurrence("manual", Fate.MADE, job_id)
        self._make(known, fire_at, job_id)
        if key is not None:
            self.keys[known.spec.tenant, key] = (schedule_id, job_id)

    def record(self, plans: Collection[Plan]) -> dict[tuple[UUID, datetime], Fate]:
        """Return what must be recorded of plans, some of which may be old; `follow` then brings the jobs."""
        recorded: dict[tuple[UUID, datetime], Fate] = {}
        for plan in plans:
            known = self.schedules.get(plan.schedule.id)
            believed = (plan.schedule.version, plan.schedule.next_fire_at)
            if known is None or (known.version, known.next_fire_at) != believed:
                continue
            for each in plan.occurrences:
                if each.fire_at not in known.occurrences:
                    limited = known.spec.most_alive is not None and not each.caught_up
                    undecided = each.outcome is Fate.MADE and limited
                    known.occurrences[each.fire_at] = ModelOccurrence("planned", each.outcome, None, undecided)
                    recorded[plan.schedule.id, each.fire_at] = each.outcome
            known.fired += len(plan.occurrences)
            known.next_fire_at = plan.next_fire_at
        return recorded

    def follow(self, schedule_id: UUID, shown: Collection[Occurrence]) -> None:
        """Learn which jobs the store made for what was recorded."""
        known = self.schedules[schedule_id]
        for each in shown:
            mine = known.occurrences[each.fire_at]
            if mine.outcome is Fate.MADE and mine.job_id is None:
                assert each.job_id is not None
                mine.job_id = each.job_id
                self._make(known, each.fire_at, each.job_id)

    def _make(self, known: ModelSchedule, fire_at: datetime, job_id: UUID) -> None:
        assert job_id not in self.jobs
        spec = planned_job(known.stored, job_id, fire_at)
        self.jobs[job_id] = ModelJob(job_id, spec, max(fire_at, self.now), None)

    def decide(self) -> tuple[int, int]:
        """Decide about what has become due; return how many that were, and how many of them do not run."""
        decided = skipped = 0
        for known in self.schedules.values():
            due = [each for at, each in known.occurrences.items() if each.undecided and at <= self.now]
            decided += len(due)
            if due:
                skipped += self._decide(known, due)
        return decided, skipped

    def _decide(self, known: ModelSchedule, due: list[ModelOccurrence]) -> int:
        jobs = {at: self.jobs[each.job_id] for at, each in known.occurrences.items() if each.job_id and at <= self.now}
        alive = [Alive(at, job.id, job.state is State.RUNNING) for at, job in jobs.items() if job.active]
        ids = [each.job_id for each in due if each.job_id is not None]
        skip, cancel = decide_due(known.spec.overlap, known.spec.max_concurrency, alive, ids)
        for each in due:
            each.undecided = False
            each.outcome = Fate.SKIPPED if each.job_id in skip else each.outcome
        self._end_all([self.jobs[job_id] for job_id in skip], Cause.OVERLAPPED)
        for job_id in cancel:
            self.cancel(job_id)
        return len(skip)

    # The comparison

    def agree_on_schedule(self, shown: Schedule, occurrences: Collection[Occurrence]) -> None:
        known = self.schedules[shown.id]
        assert shown.definition == known.spec
        assert (shown.version, shown.paused) == (known.version, known.paused)
        assert (shown.next_fire_at, shown.fired) == (known.next_fire_at, known.fired)
        found = {each.fire_at: (each.source, each.outcome, each.job_id) for each in occurrences}
        assert found == {at: (each.source, each.outcome, each.job_id) for at, each in known.occurrences.items()}
