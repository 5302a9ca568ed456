"""Workers make the schedules that their app declares, once, and the jobs of these run on time."""

from datetime import timedelta
from itertools import pairwise

import pytest

from tests.worker.running import Scene, until
from tidewheel.model.schedule import Schedule
from tidewheel.model.states import State
from tidewheel.store.base import JobFilter

pytestmark = pytest.mark.slow
APP = "tests.worker.scheduled_app:app"
BOTH = pytest.mark.parametrize(
    "empty_scene", ["sqlite", pytest.param("postgres", marks=pytest.mark.proof)], indirect=True
)


def schedules(scene: Scene) -> dict[str, Schedule]:
    return {schedule.name: schedule for schedule in scene.app.schedules.list()}


@BOTH
def test_two_workers_make_each_schedule_once_and_its_jobs_run_once_a_second(empty_scene: Scene) -> None:
    scene = empty_scene
    for _ in range(2):
        scene.start("--slots", "0", app=APP)
    made = schedules(scene)
    assert set(made) == {"tick", "tidy", "forgotten"}
    assert {schedule.version for schedule in made.values()} == {1}
    assert {schedule.declared_by for schedule in made.values()} == {APP}

    ticks = JobFilter(schedule_id=made["tick"].id, states=frozenset({State.SUCCEEDED}))
    until(lambda: len(scene.store(lambda store: store.find(ticks)).jobs) >= 5, "five ticks")

    jobs = sorted(scene.store(lambda store: store.find(ticks)).jobs, key=lambda job: job.due_at)
    apart = {later.due_at - earlier.due_at for earlier, later in pairwise(jobs)}
    assert apart == {timedelta(seconds=1)}
    assert all(job.last_started_at >= job.due_at for job in jobs)
    assert (
        scene.workers[0].said.count("schedules made: tick, tidy, forgotten")
        + scene.workers[1].said.count("schedules made")
        == 1
    )


def test_newer_code_changes_what_it_declares_and_reports_what_it_does_no_more(empty_scene: Scene) -> None:
    scene = empty_scene
    scene.start("--slots", "0", app=APP).stop()
    before = schedules(scene)
    again = scene.start("--slots", "0", app=APP)
    again.stop()
    assert schedules(scene)["tidy"] == before["tidy"]
    assert "schedules" not in again.said

    newer = scene.start("--slots", "0", "--env", "TIDE_TEST_NEWER=1", app=APP)
    newer.stop()

    after = schedules(scene)
    assert after["tidy"].version == 2
    assert b"Asia/Tokyo" in bytes(after["tidy"].trigger)
    assert after["forgotten"].orphaned_at is not None
    assert after["forgotten"].next_fire_at == before["forgotten"].next_fire_at
    assert "schedules changed: tidy" in newer.said
    assert f"schedules that {APP} declares no more go on until someone deletes them: forgotten" in newer.said
