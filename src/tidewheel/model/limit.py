"""Limits: how many jobs that share a key may run at once."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Generic, TypeVar

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_key

Key = TypeVar("Key", bound=Hashable)


class Limit(msgspec.Struct, frozen=True):
    """A cap on the jobs that run at once under one key, and how many do."""

    tenant: str
    key: str
    most: int
    running: int = 0


def check_limit(key: str, most: int) -> None:
    """Refuse limits that would stop everything for ever."""
    check_key("key", key)
    if most < 1:
        raise Invalid("most", f"must be at least 1, not {most}; close a gate to stop a kind")


class Admission(msgspec.Struct, Generic[Key], frozen=True):
    """Which of the candidates may run, and for the others the key that they now wait for."""

    admitted: tuple[int, ...]
    refused: Mapping[int, Key]
    taken: Mapping[Key, int]


def admit(candidates: Sequence[Sequence[Key]], free: Mapping[Key, int]) -> Admission[Key]:
    """Decide in order which candidates start; each takes all of its keys or none.

    `candidates` are the keys of each job, best first; `free` is the room under each key that has a limit. Keys without
    a limit ask for nothing.
    """
    left = dict(free)
    admitted: list[int] = []
    refused: dict[int, Key] = {}
    for index, keys in enumerate(candidates):
        limited = [key for key in keys if key in left]
        full = next((key for key in limited if left[key] <= 0), None)
        if full is not None:
            refused[index] = full
            continue
        for key in limited:
            left[key] -= 1
        admitted.append(index)
    taken = {key: free[key] - room for key, room in left.items() if room != free[key]}
    return Admission(tuple(admitted), refused, taken)
