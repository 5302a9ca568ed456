"""Helpers for testing code that uses Tidewheel."""

from tidewheel.testing.clock import FakeClock

__all__ = ["FakeClock"]
