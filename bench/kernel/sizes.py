"""How much is measured: once in full, once so that it takes about a minute."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Self


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Numbers of jobs and rounds. A round is one A and one B, measured one after the other."""

    name: str
    batch: int = 200
    """Jobs of one claim and one settle, wherever a drain is measured."""
    round_jobs: int = 20_000
    drain_rounds: int = 9
    submit_batch: int = 1_000
    submit_many_jobs: int = 200_000
    submit_one_jobs: int = 20_000
    submit_clients: int = 32
    future_jobs: int = 3_000_000
    future_rounds: int = 7
    history_jobs: int = 2_000_000
    history_rounds: int = 7
    snapshot_jobs: int = 20_000
    """Jobs of one round under the held snapshot; smaller rounds would hide how dead rows pile up."""
    snapshot_rounds: int = 20
    due_jobs: int = 1_000_000
    claims: int = 500
    claim_batch: int = 50
    kinds: int = 50
    tenants: int = 20
    lanes_rounds: int = 7
    vacuum_rounds: int = 3

    @classmethod
    def full(cls) -> Self:
        return cls(name="full")

    @classmethod
    def quick(cls) -> Self:
        return cls(
            name="quick",
            round_jobs=10_000,
            drain_rounds=5,
            submit_many_jobs=20_000,
            submit_one_jobs=4_000,
            future_jobs=300_000,
            future_rounds=3,
            history_jobs=200_000,
            history_rounds=3,
            snapshot_rounds=10,  # times 20 000: less hides the decay
            due_jobs=100_000,
            claims=200,
            lanes_rounds=3,
            vacuum_rounds=2,
        )

    @classmethod
    def tiny(cls) -> Self:
        """Return sizes that prove only that everything runs."""
        return cls(
            name="tiny",
            batch=20,
            round_jobs=60,
            drain_rounds=2,
            submit_batch=20,
            submit_many_jobs=60,
            submit_one_jobs=40,
            submit_clients=4,
            future_jobs=200,
            future_rounds=1,
            history_jobs=200,
            history_rounds=1,
            snapshot_jobs=60,
            snapshot_rounds=3,
            due_jobs=300,
            claims=4,
            claim_batch=5,
            kinds=3,
            tenants=4,
            lanes_rounds=1,
            vacuum_rounds=1,
        )


SIZES: Final[Mapping[str, Sizes]] = MappingProxyType(
    {sizes.name: sizes for sizes in (Sizes.full(), Sizes.quick(), Sizes.tiny())}
)
