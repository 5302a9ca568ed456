"""What of a host's resources is free; counted anew from who is there, so that nothing can be given back twice; pure."""

from collections.abc import Iterable
from typing import Final, NamedTuple, Protocol

from tidewheel.model.resources import Needs, Resources
from tidewheel.tasks.definition import Preempt

PAUSE_FREES: Final = frozenset({"cpu"})
"""What a paused run does not use: it keeps its memory and all else."""


class Holder(Protocol):
    """A run that holds resources."""

    @property
    def needs(self) -> Needs:
        """What it asked for."""

    @property
    def paused(self) -> bool:
        """Whether it stands still."""

    @property
    def preempt(self) -> Preempt:
        """What becomes of it when it is pushed aside."""


class Unstarted(NamedTuple):
    """A run that was claimed and has not begun: what it asked for is kept for it."""

    needs: Needs
    paused: bool = False
    preempt: Preempt = "never"


def free_of(total: Resources, holders: Iterable[Holder], aside: Holder | None = None) -> dict[str, int]:
    """Return what is free, or what would be if one more were pushed aside: of who is put back all that it has.

    A run that went on after its longest pause may take more than there is; then nothing is free.
    """
    left = dict(total)
    for holder in holders:
        if holder is aside and holder.preempt == "requeue":
            continue
        stands_still = holder.paused or holder is aside
        for name, amount in holder.needs.resources.items():
            if not (stands_still and name in PAUSE_FREES):
                left[name] = left.get(name, 0) - amount
    return {name: max(amount, 0) for name, amount in left.items()}
