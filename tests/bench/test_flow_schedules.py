"""The benchmark of schedules runs on both stores and tells all it promises, on sizes too small to mean anything."""

import json

import pytest

from bench.__main__ import main


@pytest.mark.proof
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_tells_how_late_jobs_of_schedules_start(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "--store", store, "--json", "--tiny", "--only", "schedules,same_second"]) == 0

    figures = json.loads(capsys.readouterr().out)
    assert min(figures["schedules_fired"], figures["schedules_same_second_fired"]) > 0
    for lag in ("schedules_10k_lag_ms", "schedules_10k_same_second_lag_ms"):
        assert 0 <= figures[f"{lag}_p50"] <= figures[f"{lag}_p99"] <= figures[f"{lag}_max"]
