"""Points between the writes of a transaction at which a test may end the process; else nothing happens there."""

from collections.abc import Callable

Fault = Callable[[str], None]
"""Called with the name of the point that was reached."""


def silent(point: str) -> None:
    """Do nothing."""
