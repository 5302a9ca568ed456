"""Trees that wait for their next run, by the layers that they are behind."""

from typing import Generic, Protocol, TypeVar

from tidewheel.tasks.definition import Isolation


class Reusable(Protocol):
    """A tree that serves one run after the other."""

    isolation: Isolation

    @property
    def is_usable(self) -> bool:
        """Whether it can have a run."""

    def retire(self) -> None:
        """End it."""


Member = TypeVar("Member", bound=Reusable)


class Idle(Generic[Member]):
    """The longest idle first in line for being ended, the latest one for being used: its memory is warm."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._members: list[Member] = []

    def __len__(self) -> int:
        """Return how many wait."""
        return len(self._members)

    def take(self, isolation: Isolation) -> Member | None:
        """Return one behind these layers, if there is one that can be used."""
        for member in reversed(self._members):
            if member.isolation == isolation:
                self._members.remove(member)
                if member.is_usable:
                    return member
        return None

    def keep(self, member: Member) -> None:
        """Let one wait, and end the one that has waited longest if they are too many."""
        self._members.append(member)
        if len(self._members) > self._most:
            self.drop()

    def drop(self) -> Member | None:
        """End the one that has waited longest, if any waits, and return it."""
        if not self._members:
            return None
        member = self._members.pop(0)
        member.retire()
        return member
