"""Versions of what is not counted: a number that stands for a definition, another one for another definition."""

import hashlib

import msgspec

from tidewheel.errors import StaleVersion
from tidewheel.model.gate import Gate
from tidewheel.model.limit import Limit

_BYTES = 6


def gate_version(gate: Gate) -> int:
    """Return what stands for a gate as someone closed it, however many it let through since."""
    return _digest(msgspec.structs.replace(gate, ready_at=None))


def limit_version(limit: Limit) -> int:
    """Return what stands for what a limit allows, whatever runs under it."""
    return _digest((limit.most, limit.rate, limit.rule))


def check_gate_version(gate: Gate | None, version: int | None) -> None:
    """Raise StaleVersion if someone means another version of a gate than there is."""
    if gate is not None and version not in (None, current := gate_version(gate)):
        raise StaleVersion(str(gate.id), version or 0, current, "gate")


def check_limit_version(key: str, limit: Limit | None, version: int | None) -> None:
    """Raise StaleVersion if someone means another version of a limit than there is, or there is none."""
    current = 0 if limit is None else limit_version(limit)
    if version not in (None, current):
        raise StaleVersion(key, version or 0, current, "limit")


def _digest(definition: object) -> int:
    digest = hashlib.sha256(msgspec.json.encode(definition)).digest()
    return 1 + int.from_bytes(digest[:_BYTES])
