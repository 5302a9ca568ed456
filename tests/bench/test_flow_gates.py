"""The benchmark of gates, shares and herds runs on both stores, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main

FIGURES = {
    "gate_close_1m_s",
    "gate_open_1m_s",
    "gate_others_p99_ms",
    "gate_others_quiet_p99_ms",
    "tenant_delay_ratio",
    "herd_start_p50_s",
    "herd_start_p99_s",
    "herd_per_s",
}


@pytest.mark.proof
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_tells_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "--store", store, "--json", "--tiny", "--only", "gate,share,herd"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert figures.keys() >= FIGURES
    assert [name for name in FIGURES if not figures[name] > 0] == []


def test_a_part_of_it_tells_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "--store", "sqlite", "--json", "--tiny", "--only", "herd"]) == 0

    assert json.loads(capsys.readouterr().out)["herd_per_s"] > 0
