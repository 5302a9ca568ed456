"""Helpers for testing code that uses Tidewheel."""

from tidewheel.testing.clock import FakeClock
from tidewheel.testing.inline import Ran
from tidewheel.testing.memory import InMemory, in_memory

__all__ = ["FakeClock", "InMemory", "Ran", "in_memory"]
