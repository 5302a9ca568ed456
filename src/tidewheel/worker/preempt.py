"""Preemption: whom a more urgent job may push aside when no slot is free; pure."""

from collections.abc import Callable, Collection, Iterable
from typing import Protocol, TypeVar

from tidewheel.model.job import Run
from tidewheel.model.priority import Priority
from tidewheel.model.resources import Resources, fits
from tidewheel.tasks.builtin import preempt_in
from tidewheel.tasks.definition import COMMAND, Preempt
from tidewheel.tasks.registry import CatalogueEntry


class Occupant(Protocol):
    """A run in a slot, as far as this decision needs to know it."""

    preempt: Preempt
    since: float

    @property
    def paused(self) -> bool:
        """Whether it stands still."""

    @property
    def priority(self) -> Priority:
        """How urgent it is."""

    @property
    def held(self) -> frozenset[tuple[str, str]]:
        """The limit keys that it holds, each with its tenant."""


Someone = TypeVar("Someone", bound=Occupant)
FreeWithout = Callable[[Someone], Resources]
"""Says what would be free if one were pushed aside."""


def preempt_of(run: Run, task: CatalogueEntry | None) -> Preempt:
    """Return what may happen to a run: as its task was declared, or as the command itself says."""
    if run.kind == COMMAND:
        return preempt_in(run.args)
    return "never" if task is None else task.preempt


def victim(
    occupants: Iterable[Someone], for_priority: Priority | None = None, needed: frozenset[tuple[str, str]] = frozenset()
) -> Someone | None:
    """Return whom to push aside: the least urgent, of these one that can be paused, of these the last to start.

    Without a priority given: who would be pushed aside by the most urgent job there is. Nobody who holds a limit key
    that the urgent job needs: the key stands for something that both use, and a paused one goes on holding it.
    """
    limit = Priority.HIGH if for_priority is None else for_priority
    willing = [
        one
        for one in occupants
        if not one.paused and one.preempt != "never" and one.priority > limit and not one.held & needed
    ]
    if not willing:
        return None
    return max(willing, key=lambda one: (one.priority, one.preempt == "pause", one.since))


def most_giving(occupants: Collection[Someone], free_without: FreeWithout[Someone]) -> Someone | None:
    """Return who would be pushed aside by the most urgent job there is, whatever that may need.

    That is one that is put back rather than one that is paused, if all is free then that would be free otherwise.
    """
    weakest, other = victim(occupants), victim([one for one in occupants if one.preempt == "requeue"])
    if weakest is None or other is None or other.priority != weakest.priority:
        return weakest
    free, less = free_without(other), free_without(weakest)
    return other if all(free.get(name, 0) >= amount for name, amount in less.items()) else weakest


def room_maker(occupants: Collection[Someone], run: Run, free_without: FreeWithout[Someone]) -> Someone | None:
    """Return whom to push aside for an urgent run such that it has what it needs.

    If a pause does not make enough room, that is one that can be put back.
    """
    weakest = victim(occupants, run.priority, run.held)
    if weakest is None or fits(run.needs, free_without(weakest)):
        return weakest
    giving = [one for one in occupants if one.preempt == "requeue" and fits(run.needs, free_without(one))]
    return victim(giving, run.priority, run.held)


def next_to_resume(occupants: Iterable[Someone]) -> Someone | None:
    """Return who goes on when a slot becomes free: the most urgent of the paused, of these the first to start."""
    paused = [one for one in occupants if one.paused]
    return min(paused, key=lambda one: (one.priority, one.since), default=None)
