"""What every chaos test ends with."""

from typing import Final

import pytest

from harness.arena import Arena
from harness.checker import Figures, require

BOTH: Final = pytest.mark.parametrize("store", ["sqlite", "postgres"])
"""For faults that the two databases could take differently."""


async def safe(arena: Arena, **least: int) -> Figures:
    """Let everything come to rest, demand that no promise was broken, and that what was to be tested did happen."""
    history = await arena.finish()
    assert arena.judge(history) == []
    return require(history, **least)
