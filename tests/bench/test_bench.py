"""The benchmark of the kernel runs on both stores and tells all it promises, on sizes too small to mean anything."""

import json
from typing import Any

import pytest

from bench.__main__ import main
from bench.kernel.suite import KERNEL
from bench.report import table

FIGURES = {
    "submit_many_per_s",
    "submit_one_per_s",
    "drain_per_s",
    "bare_drain_per_s",
    "drain_vs_bare",
    "future_ratio",
    "snapshot_ratio",
    "history_ratio",
    "vacuumed_ratio",
    "claim_p50_ms",
    "claim_p99_ms",
    "claim_max_ms",
    "lanes_ratio",
    "claim_us_per_job",
    "settle_us_per_job",
    "python_us_per_job",
    "python_share",
}
CONTEXT = {"store", "sizes", "date", "commit", "cpu", "cores", "python", "data_on", "seconds"}
RATIOS = ("drain_vs_bare", "future_ratio", "snapshot_ratio", "history_ratio", "lanes_ratio", "vacuumed_ratio")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_server")
@pytest.mark.parametrize("store", [pytest.param("postgres", marks=pytest.mark.proof), "sqlite"])
def test_a_run_prints_one_object_with_every_figure(store: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "--store", store, "--json", "--tiny"]) == 0

    figures: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert figures.keys() >= FIGURES | CONTEXT
    assert [name for name in FIGURES if not figures[name] > 0] == []
    for ratio in RATIOS:
        least, most = figures[f"{ratio}_spread"]
        assert least <= figures[ratio] <= most
    assert figures["seconds"].keys() == {*KERNEL.parts, "all"}
    assert "claim and complete" in table(figures, KERNEL.rows)


def test_some_parts_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "--store", "sqlite", "--tiny", "--only", "lanes"]) == 0

    out = capsys.readouterr().out
    assert "many lanes" in out
    assert "claim and complete" not in out


def test_an_unknown_part_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["kernel", "--store", "sqlite", "--only", "lanes,coffee"])

    assert "coffee" in capsys.readouterr().err
