"""The benchmark of schedules runs on both stores and tells all it promises, on sizes too small to mean anything."""

import json

import pytest

from bench.__main__ import main


@pytest.mark.proof
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_tells_how_late_jobs_of_schedules_start(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "--store", store, "--json", "--tiny", "--only", "schedules"]) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["schedules_fired"] > 0
    assert 0 <= figures["schedules_10k_lag_ms_p50"] <= figures["schedules_10k_lag_ms_p99"]
