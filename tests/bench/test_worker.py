"""The benchmark of workers runs on both stores and tells all that it promises, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.grounds.ground import open_ground
from bench.report import table
from bench.worker.gated import drain_by_worker
from bench.worker.loads import INLINE, WARM
from bench.worker.process import Shape, jobs_since, running
from bench.worker.suite import WORKER
from tidewheel.clock import SystemClock

FIGURES = {
    "drain_per_s",
    "drain_one_runner_per_s",
    "drain_two_runners_per_s",
    "bare_drain_per_s",
    "drain_vs_bare",
    "worker_us_per_job",
    "start_ms_max",
    "late_ms_p50",
    "late_ms_p99",
    "late_ms_max",
    "preempt_ms_p50",
    "preempt_ms_p99",
    "preempt_ms_max",
    "process_per_s",
    "command_per_s",
    "idle_rss_mib",
    "idle_rss_keeper_mib",
    "idle_cpu_percent",
    "idle_cpu_keeper_percent",
}
MAY_BE_NOTHING = {"start_ms_p50", "start_ms_p99", "idle_queries_per_s", "idle_queries_keeper_per_s"}
"""A body may begin before the client has its answer, and in a short time an idle worker may ask nothing."""
CONTEXT = {"store", "sizes", "date", "commit", "cpu", "cores", "python", "data_on", "seconds"}


@pytest.mark.proof
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_prints_one_object_with_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["worker", "--store", store, "--json", "--tiny"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert figures.keys() >= FIGURES | MAY_BE_NOTHING | CONTEXT
    assert [name for name in FIGURES if not figures[name] > 0] == []
    assert [name for name in MAY_BE_NOTHING if figures.get(name, 0) < 0] == []
    assert figures["drain_per_s"] == max(figures["drain_one_runner_per_s"], figures["drain_two_runners_per_s"])
    assert figures["start_ms_p50"] <= figures["start_ms_p99"] <= figures["start_ms_max"]
    assert figures["seconds"].keys() == {*WORKER.parts, "all"}
    shown = table(figures, WORKER.rows)
    assert [row.meaning for row in WORKER.rows if row.name in figures and row.meaning not in shown] == []
    assert "aim ≤ 15" in shown


@pytest.mark.slow
async def test_measured_jobs_begin_when_the_worker_has_warmed_up_and_not_before() -> None:
    since = SystemClock().now()
    async with open_ground("sqlite") as ground, ground.place() as place:
        drained = await drain_by_worker(place, Shape(inline=1), INLINE, jobs=50, batch=50)

        measured = await jobs_since(place, INLINE, since)
        warming = await jobs_since(place, INLINE.of_tenant(WARM), since)
        gates = await place.store.gates()
    begun = [job.last_started_at for job in measured if job.last_started_at is not None]
    ended = [job.finished_at for job in measured if job.finished_at is not None]
    assert len(begun) == len(ended) == drained.jobs == 50
    assert min(begun) > max(job.finished_at for job in warming if job.finished_at is not None)
    assert drained.wall == pytest.approx((max(ended) - min(begun)).total_seconds())
    assert gates == []


@pytest.mark.slow
async def test_a_worker_that_cannot_be_is_told_of_with_its_own_words() -> None:
    async with open_ground("sqlite") as ground, ground.place() as place:
        with pytest.raises(RuntimeError, match=r"ended with (?s:.)*inline"):
            async with running(place, Shape(inline=1000), [INLINE]):
                pass
