"""The benchmark of the API runs on both stores and tells all that it promises, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.api.suite import API
from bench.report import table

FIGURES = {row.name for row in API.rows}


@pytest.mark.proof
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", ["postgres", "sqlite"])
def test_a_run_prints_one_object_with_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", "--store", store, "--json", "--tiny"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert [name for name in FIGURES if not figures[name] > 0] == []
    assert figures["submit_p50_ms"] <= figures["submit_alone_p99_ms"]
    assert figures["seconds"].keys() == {*API.parts, "all"}
    shown = table(figures, API.rows)
    assert [row.meaning for row in API.rows if row.meaning not in shown] == []


@pytest.mark.slow
def test_a_part_of_it_prints_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["api", "--store", "sqlite", "--json", "--tiny", "--only", "batch"]) == 0

    figures = json.loads(capsys.readouterr().out)
    assert figures["batch_jobs_per_s"] > 0
    assert figures["seconds"].keys() == {"batch", "all"}
