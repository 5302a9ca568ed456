"""The benchmark of flow control runs on both stores and tells all, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.flow import FLOW
from bench.report import table

FIGURES = {
    "limit_ratio",
    "full_limit_ratio",
    "fanout_per_s",
    "fanout_growth",
    "fanin_per_s",
    "fanin_growth",
    "fanin_single_ms",
}


@pytest.mark.slow
@pytest.mark.parametrize("store", [pytest.param("postgres", marks=pytest.mark.proof), "sqlite"])
def test_a_run_prints_one_object_with_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["flow", "--store", store, "--json", "--tiny", "--only", "limit,full_limit,fan"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [name for name in FIGURES if not figures[name] > 0] == []
    assert "a limit on every job" in table(figures, FLOW.rows)
