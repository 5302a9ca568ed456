"""Tenants: who shares the workers, and by which weights."""

from math import isfinite
from typing import Final

import msgspec

from tidewheel.errors import Invalid

LEAST_WEIGHT: Final = 0.01
MOST_WEIGHT: Final = 100.0


class Tenant(msgspec.Struct, frozen=True):
    """Someone who has jobs, or has been given a weight."""

    name: str
    weight: float
    """Its share of the starts is its weight over the sum of the weights of those who have jobs of that priority due."""


def check_weight(weight: object) -> float:
    """Refuse weights by which someone would get nothing, or everything."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight):
        raise Invalid("weight", f"must be a number, not {weight!r}")
    if weight <= 0:
        raise Invalid("weight", f"must be more than 0, not {weight:g}; close a gate to stop a tenant")
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise Invalid("weight", f"must be between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, not {weight:g}")
    return float(weight)
