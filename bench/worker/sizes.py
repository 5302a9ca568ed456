"""How much is measured of workers: once in full, once so that it takes about a minute."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of jobs and seconds."""

    name: str
    drain_jobs: int = 100_000
    drain_rounds: int = 3
    """In each round the jobs are drained by one runner, by two, and by the bare loop."""
    submit_batch: int = 1_000
    batch: int = 200
    """Jobs of one claim and one settle of the bare loop."""
    start_rate: int = 50
    """Jobs a second."""
    start_seconds: float = 20.0
    late_jobs: int = 2_000
    late_seconds: float = 20.0
    late_ahead: float = 5.0
    """Seconds from the submit to the first due job."""
    process_jobs: int = 20_000
    command_jobs: int = 2_000
    preempt_jobs: int = 100
    settle_seconds: float = 12.0
    """Before a worker counts as idle: PostgreSQL may count transactions only ten seconds after they were."""
    idle_seconds: float = 60.0

    @classmethod
    def full(cls) -> Self:
        return cls(name="full")

    @classmethod
    def quick(cls) -> Self:
        return cls(
            name="quick",
            drain_jobs=20_000,
            drain_rounds=2,
            start_seconds=5.0,
            late_jobs=500,
            late_seconds=5.0,
            late_ahead=2.0,
            process_jobs=4_000,
            command_jobs=400,
            preempt_jobs=40,
            idle_seconds=8.0,
        )

    @classmethod
    def tiny(cls) -> Self:
        """Return sizes that prove only that everything runs."""
        return cls(
            name="tiny",
            drain_jobs=200,
            drain_rounds=1,
            submit_batch=100,
            batch=20,
            start_seconds=0.2,
            late_jobs=20,
            late_seconds=0.2,
            late_ahead=0.2,
            process_jobs=40,
            command_jobs=8,
            preempt_jobs=2,
            settle_seconds=0.1,
            idle_seconds=1.5,
        )


SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {sizes.name: sizes for sizes in (Sizes.full(), Sizes.quick(), Sizes.tiny())}
)
