"""The benchmark of logs runs on both stores and tells all that it promises, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.logs.suite import LOGS
from bench.report import table


@pytest.mark.proof
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_prints_one_object_with_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--store", store, "--json", "--tiny"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    costs = {row.name for row in LOGS.rows if row.name.endswith("_cost")}
    assert [row.name for row in LOGS.rows if row.name not in costs and not figures[row.name] > 0] == []
    assert len(costs) == 3
    assert all(figures[name] < 1 for name in costs)
    assert figures["search_p50_ms"] <= figures["search_p99_ms"] <= figures["search_max_ms"]
    assert figures["seconds"].keys() == {*LOGS.parts, "all"}
    shown = table(figures, LOGS.rows)
    assert [row.meaning for row in LOGS.rows if row.meaning not in shown] == []


def test_parts_of_it_print_their_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["logs", "--store", "sqlite", "--json", "--tiny", "--only", "append,search"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert figures["append_lines_per_s"] > 0
    assert figures["search_p50_ms"] <= figures["search_p99_ms"] <= figures["search_max_ms"]
