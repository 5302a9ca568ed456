"""Tenants: who shares the workers, by which weights, and how much of the store each may use."""

from datetime import timedelta
from math import isfinite
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_duration, check_name, shown

LEAST_WEIGHT: Final = 0.01
MOST_WEIGHT: Final = 100.0
MOST_QUEUED: Final = 1_000_000_000
LEAST_PAYLOAD: Final = 2
"""For no arguments at all: `{}`."""
MOST_PAYLOAD: Final = 256 * 1024
LEAST_KEEP: Final = timedelta(hours=1)
MOST_KEEP: Final = timedelta(days=36_500)


class Tenant(msgspec.Struct, frozen=True):
    """Someone who has jobs, or was given something. None need be made: the first job of one makes it known."""

    name: str
    weight: float = 1.0
    """Its share of the starts is its weight over the sum of the weights of those who have jobs of that priority due."""
    max_queued: int | None = None
    """How many jobs it may have that have not ended; None for any number."""
    max_payload: int | None = None
    """How many bytes of arguments, as JSON, each of its jobs may have; None for what the store allows."""
    keep_logs: timedelta | None = None
    """How long the lines of its runs are kept; None for as long as everyone's."""


def check_tenant(tenant: Tenant) -> None:
    """Refuse names, weights and bounds that cannot be."""
    check_name("name", tenant.name)
    check_weight(tenant.weight)
    if tenant.max_queued is not None and not 0 <= tenant.max_queued <= MOST_QUEUED:
        raise Invalid("max_queued", f"must be between 0 and {MOST_QUEUED}, not {shown(tenant.max_queued)}")
    if tenant.max_payload is not None and not LEAST_PAYLOAD <= tenant.max_payload <= MOST_PAYLOAD:
        raise Invalid(
            "max_payload", f"must be between {LEAST_PAYLOAD} and {MOST_PAYLOAD}, not {shown(tenant.max_payload)}"
        )
    if tenant.keep_logs is not None:
        check_duration("keep_logs", tenant.keep_logs, LEAST_KEEP, MOST_KEEP)


def check_weight(weight: object) -> float:
    """Refuse weights by which someone would get nothing, or everything."""
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not isfinite(weight):
        raise Invalid("weight", f"must be a number, not {shown(weight)}")
    if weight <= 0:
        raise Invalid("weight", f"must be more than 0, not {weight:g}; close a gate to stop a tenant")
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise Invalid("weight", f"must be between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, not {weight:g}")
    return float(weight)
