"""Tenants: their weight among others, and how much of the store each may use."""

import math
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name

MOST_WEIGHT: Final = 1_000_000.0
LEAST_WEIGHT: Final = 0.001
MOST_QUEUED: Final = 1_000_000_000
MOST_PAYLOAD: Final = 256 * 1024


class Tenant(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A tenant. It need not be made: the first job of one makes it known, with these defaults."""

    name: str
    weight: float = 1.0
    """Its share of the starts while others wait, too."""
    max_queued: int | None = None
    """How many jobs it may have that have not ended; None for any number."""
    max_payload: int | None = None
    """How many bytes of arguments, as JSON, each of its jobs may have; None for what the store allows."""


def check_tenant(tenant: Tenant) -> None:
    """Refuse names, weights and bounds that cannot be."""
    check_name("name", tenant.name)
    if not LEAST_WEIGHT <= tenant.weight <= MOST_WEIGHT or not math.isfinite(tenant.weight):
        raise Invalid("weight", f"must be between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g}, not {tenant.weight!r}")
    if tenant.max_queued is not None and not 0 <= tenant.max_queued <= MOST_QUEUED:
        raise Invalid("max_queued", f"must be between 0 and {MOST_QUEUED}, not {tenant.max_queued!r}")
    if tenant.max_payload is not None and not 2 <= tenant.max_payload <= MOST_PAYLOAD:  # noqa: PLR2004 - {} is the least
        raise Invalid("max_payload", f"must be between 2 and {MOST_PAYLOAD}, not {tenant.max_payload!r}")
