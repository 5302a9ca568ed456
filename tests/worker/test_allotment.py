"""What control groups leave of the memory and the cores of a machine."""

from pathlib import Path

import pytest

from tidewheel.worker.sandbox import allotment
from tidewheel.worker.sandbox.allotment import cpu_within, memory_within

GIBIBYTE = 1 << 30


def group(path: Path, **files: str) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(f"{text}\n")
    return path


def test_without_bounds_all_of_the_machine_may_be_used(tmp_path: Path) -> None:
    free = {"": group(tmp_path / "a", memory__max="max", cpu__max="max 100000")}

    for groups in ({}, free):
        assert memory_within(groups, 8 * GIBIBYTE) == 8 * GIBIBYTE
        assert cpu_within(groups, 4000) == 4000


def test_the_tightest_group_counts_be_it_above(tmp_path: Path) -> None:
    group(tmp_path / "pod", memory__max=str(GIBIBYTE), cpu__max="150000 100000")
    groups = {"": group(tmp_path / "pod" / "worker", memory__max=str(2 * GIBIBYTE), cpu__max="max 100000")}

    assert memory_within(groups, 8 * GIBIBYTE) == GIBIBYTE
    assert cpu_within(groups, 4000) == 1500
    assert cpu_within(groups, 1000) == 1000


def test_version_one_is_read_as_well(tmp_path: Path) -> None:
    memory = group(tmp_path / "memory", memory__limit_in_bytes=str(GIBIBYTE))
    cpu = group(tmp_path / "cpu", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    free = group(tmp_path / "free", cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")

    assert memory_within({"memory": memory}, 8 * GIBIBYTE) == GIBIBYTE
    assert cpu_within({"cpu": cpu}, 4000) == 500
    assert cpu_within({"cpu": free}, 4000) == 4000


def test_less_than_a_core_still_makes_one_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allotment, "cpu", lambda: 500)

    assert allotment.cores() == 1
