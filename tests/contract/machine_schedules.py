"""Random steps with schedules: made, changed, paused, triggered and deleted while their keeper comes and goes."""

import asyncio
from collections import Counter
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule

from tests.builders import SECOND, a_schedule
from tests.contract.backends import Backend
from tests.contract.machine_jobs import MILLISECOND, PICK, WHICH
from tests.contract.machine_runs import RunMachine
from tests.contract.planning import decide_all, plans_of
from tidewheel.errors import Conflict
from tidewheel.model.misfire import Misfire
from tidewheel.model.overlap import Overlap
from tidewheel.model.schedule import Schedule, ScheduleSpec
from tidewheel.triggers import Interval
from tidewheel.triggers.planning import Plan

MOST_SCHEDULES = 3
AHEAD = 30 * SECOND
KEPT = st.sampled_from(["as it is", "kept", "overdue"])
"""Whether a keeper came right before something else is done, or none for a while."""
DEFINITIONS = st.builds(
    lambda name, every, **fields: a_schedule(name, Interval(every * SECOND), tenant="a", **fields),
    st.sampled_from("pqrs"),
    st.sampled_from([10, 20, 45]),
    kind=st.sampled_from("xy"),
    overlap=st.sampled_from(Overlap),
    max_concurrency=st.sampled_from([None, None, 2]),
    limit_keys=st.sampled_from([(), (), ("l",)]),
    misfire=st.builds(
        Misfire,
        policy=st.sampled_from(["latest", "all", "skip"]),
        most=st.just(3),
        grace=st.just(timedelta(seconds=20)),
    ),
)


class ScheduleMachine(RunMachine):
    """With schedules, and with plans that are recorded when they may be old."""

    def __init__(self, new_backend: Callable[[], Backend], seen: Counter[str]) -> None:
        super().__init__(new_backend, seen)
        self.plans: list[Plan] = []

    def some_schedule(self, pick: int) -> UUID | None:
        known = list(self.reference.schedules)
        return known[pick % len(known)] if known else None

    @initialize(spec=DEFINITIONS)
    def begin_with_a_schedule(self, spec: ScheduleSpec) -> None:
        self.create_schedule(0, spec)
        self.keep_schedules(0, old=False)

    @rule(which=WHICH, pick=PICK, spec=DEFINITIONS, behind=st.sampled_from([0, 0, 0, 1]), kept=KEPT)
    def define_schedule(self, which: int, pick: int, spec: ScheduleSpec, behind: int, kept: str) -> None:
        """Change one, or make another."""
        self._let_be(which, kept)
        schedule_id = self.some_schedule(pick)
        if schedule_id is None or (pick % 3 == 0 and len(self.reference.schedules) < MOST_SCHEDULES):
            self.create_schedule(which, spec)
            return
        known = self.reference.schedules[schedule_id]
        version = known.version - behind
        expected = self.reference.refusal(spec, known, version)
        due = self.reference.settle_due(schedule_id)
        changed = self._try(self.stores[which].change_schedule(schedule_id, spec, version=version), expected)
        self._follow_due(which, schedule_id, due)
        if changed is not None:
            self.seen["taken back"] += self.reference.change(changed)

    def _let_be(self, which: int, kept: str) -> None:
        if kept == "kept":
            self.keep_schedules(which, old=False)
        elif kept == "overdue":
            self.advance(61 * SECOND)

    def _follow_due(self, which: int, schedule_id: UUID, due: int) -> None:
        """Learn of the jobs of what was due, which a change does not lose."""
        if due:
            self.seen["due before a change"] += due
            self.reference.follow(schedule_id, self.do(self.stores[which].occurrences(schedule_id, limit=1000)))

    def create_schedule(self, which: int, spec: ScheduleSpec) -> None:
        made = self._try(self.stores[which].create_schedule(spec), self.reference.refusal(spec))
        if made is not None:
            self.reference.create(made)
        self.advance(MILLISECOND)

    @rule(which=WHICH, pick=PICK, how=st.sampled_from(["pause", "pause", "resume", "resume", "delete"]), kept=KEPT)
    def steer_schedule(self, which: int, pick: int, how: str, kept: str) -> None:
        self._let_be(which, kept)
        store, schedule_id = self.stores[which], self.some_schedule(pick)
        if schedule_id is None:
            return
        if how == "delete":
            self.do(store.delete_schedule(schedule_id))
            self.reference.delete(schedule_id)
            return
        due = self.reference.settle_due(schedule_id) if how == "pause" else 0
        self.do(store.pause_schedule(schedule_id) if how == "pause" else store.resume_schedule(schedule_id))
        self._follow_due(which, schedule_id, due)
        self.seen["taken back"] += self.reference.pause(schedule_id, paused=how == "pause")

    @rule(which=WHICH, pick=PICK, key=st.sampled_from([None, None, "i", "t"]))
    def trigger_schedule(self, which: int, pick: int, key: str | None) -> None:
        if (schedule_id := self.some_schedule(pick)) is None:
            return
        expected = self.reference.expect_trigger(schedule_id, key)
        refusal = expected if isinstance(expected, type) else None
        made = self._try(self.stores[which].trigger_schedule(schedule_id, key=key), refusal)
        if made is None:
            return
        assert made.created == (expected is None)
        if made.created:
            self.reference.trigger(schedule_id, made, key)
            self.seen["triggered"] += 1
            self.advance(MILLISECOND)
        else:
            assert made.occurrence.job_id == expected

    @rule(which=WHICH, old=st.booleans())
    def keep_schedules(self, which: int, *, old: bool) -> None:
        """Do what a keeper does, perhaps by plans that it made when it last came."""
        decided, skipped = self.reference.decide()
        assert self.do(decide_all(self.stores[which])) == decided
        self.seen["overlapped"] += skipped
        plans = self.do(plans_of(self.stores[which], AHEAD))
        self._record(which, self.plans if old else plans)
        self.plans = plans

    @rule(which=WHICH, by=st.sampled_from([11, 61]))
    def keep_schedules_later(self, which: int, by: int) -> None:
        self.advance(by * SECOND)
        self.keep_schedules(which, old=False)

    def _record(self, which: int, plans: list[Plan]) -> None:
        expected = self.reference.record(plans)
        assert self.do(self.stores[which].record_occurrences(plans)) == len(expected)
        self.seen["recorded"] += len(expected)
        for schedule_id in {schedule_id for schedule_id, _ in expected}:
            self.reference.follow(schedule_id, self.do(self.stores[which].occurrences(schedule_id, limit=1000)))

    def _try(self, call: Coroutine[Any, Any, Any], expected: type[Exception] | None) -> Any:
        """Return what a call answers, or None if it is refused as it must be."""
        try:
            answer = self.do(call)
        except Conflict as refusal:
            assert type(refusal) is expected  # noqa: PT017
            self.seen[type(refusal).__name__] += 1
            return None
        assert expected is None
        return answer

    @invariant()
    def the_schedules_agree_with_the_reference(self) -> None:
        self.do(self._compare_schedules())

    async def _compare_schedules(self) -> None:
        shown: list[Schedule] = await self.stores[0].schedules(limit=100)
        assert {schedule.id for schedule in shown} == set(self.reference.schedules)
        found = await asyncio.gather(*(self.stores[1].occurrences(each.id, limit=1000) for each in shown))
        for schedule, occurrences in zip(shown, found, strict=True):
            self.reference.agree_on_schedule(schedule, occurrences)
