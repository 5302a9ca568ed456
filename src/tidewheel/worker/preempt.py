"""Preemption: whom a more urgent job may push aside when no slot is free; pure."""

from collections.abc import Iterable
from typing import Protocol, TypeVar

from tidewheel.model.priority import Priority
from tidewheel.tasks.definition import Preempt


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


def next_to_resume(occupants: Iterable[Someone]) -> Someone | None:
    """Return who goes on when a slot becomes free: the most urgent of the paused, of these the first to start."""
    paused = [one for one in occupants if one.paused]
    return min(paused, key=lambda one: (one.priority, one.since), default=None)
