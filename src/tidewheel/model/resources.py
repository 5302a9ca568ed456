"""Resources: what a job asks for, what a worker has, and the exact arithmetic between the two.

Amounts are whole numbers of the smallest unit (`cpu` in thousandths of a core, `memory` in bytes, any other name in
pieces), so that what was taken and given back always adds up.
"""

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import Final

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_labels, check_name

RESERVE_AFTER: Final = timedelta(seconds=30)
MAX_RESOURCES: Final = 32
MAX_AMOUNT: Final = 2**63 - 1

Resources = Mapping[str, int]
"""Name → amount. A name that is missing stands for nothing asked or nothing there."""

_AMOUNT = re.compile(r"([0-9]{1,19})(?:\.([0-9]{1,9}))?([A-Za-z]{0,3})").fullmatch
_BYTES: Final = {"TiB": 1 << 40, "GiB": 1 << 30, "MiB": 1 << 20, "KiB": 1 << 10}
_UNITS: Final[Mapping[str, Mapping[str, int]]] = {
    "cpu": {"": 1000, "m": 1},
    "memory": {
        "": 1,
        "B": 1,
        **_BYTES,
        **{unit.removesuffix("B"): size for unit, size in _BYTES.items()},
        "kB": 10**3,
        "KB": 10**3,
        "MB": 10**6,
        "GB": 10**9,
        "TB": 10**12,
    },
}
_PIECES: Final = {"": 1}


class Needs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a job asks of a worker."""

    resources: Resources = {}
    labels: Mapping[str, str] = {}
    """Labels that the worker must have, with these very values."""


class Offer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a worker has in all."""

    resources: Resources = {}
    labels: Mapping[str, str] = {}


NO_NEEDS: Final = Needs()

# Arithmetic


def fits(needs: Needs, free: Resources, labels: Mapping[str, str] | None = None) -> bool:
    """Tell whether what is asked for is free on a worker with these labels; None leaves the labels out of it."""
    if labels is not None and any(labels.get(name) != value for name, value in needs.labels.items()):
        return False
    return all(amount <= free.get(name, 0) for name, amount in needs.resources.items())


def take(free: Resources, needs: Needs) -> dict[str, int]:
    """Return what is free after a job has taken what it needs; the caller has seen that it fits."""
    left = dict(free)
    for name, amount in needs.resources.items():
        if amount > left.get(name, 0):
            raise Invalid("resources", f"{amount} of {name} cannot be taken, for {left.get(name, 0)} are free")
        if amount:
            left[name] -= amount
    return left


def give_back(free: Resources, needs: Needs, total: Resources) -> dict[str, int]:
    """Return what is free after a job has ended; more than the worker has would mean that it gave back twice."""
    left = dict(free)
    for name, amount in needs.resources.items():
        after = left.get(name, 0) + amount
        if after > total.get(name, 0):
            raise Invalid("resources", f"{amount} of {name} given back makes {after}, over {total.get(name, 0)} in all")
        if amount:
            left[name] = after
    return left


def should_reserve(
    waited: timedelta, needs: Needs, free: Resources, offer: Offer, *, after: timedelta = RESERVE_AFTER
) -> bool:
    """Tell whether a worker should keep what becomes free for a job that has long been too large for it.

    Only for a job that fits the empty worker: for any other the worker would stand idle for ever.
    """
    return waited >= after and not fits(needs, free) and fits(needs, offer.resources, offer.labels)


def spare(free: Resources, reserved: Needs) -> dict[str, int]:
    """Return what other jobs may take while a reservation collects what it needs."""
    return {name: max(amount - reserved.resources.get(name, 0), 0) for name, amount in free.items()}


# Text


def needs_text(needs: Needs) -> str:
    """Return the one text of equal needs, "" for none. It is part of a stored key, so its form must not change."""
    resources = {name: amount for name, amount in needs.resources.items() if amount}
    if not resources and not needs.labels:
        return ""
    plain = Needs(resources=resources, labels=needs.labels)
    return msgspec.json.encode(plain, order="deterministic").decode()


def parse_needs_text(text: str) -> Needs:
    """Return the needs that `needs_text` wrote down."""
    try:
        return msgspec.json.decode(text, type=Needs) if text else NO_NEEDS
    except (msgspec.DecodeError, UnicodeError) as error:
        raise Invalid("needs", f"cannot be read: {error}") from error


def parse_resources(text: str, field: str = "resources") -> dict[str, int]:
    """Return the amounts that a text such as `cpu=500m,memory=2GiB,gpu=1` stands for.

    `cpu` is in cores (`2`, `0.5`) or thousandths of a core (`500m`), `memory` in bytes or kB, MB, GB, TB, KiB, MiB,
    GiB, TiB. A fraction is welcome if it makes a whole number of the smallest unit.
    """
    amounts: dict[str, int] = {}
    for part in text.split(",") if text.strip() else ():
        name, equals, amount = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise Invalid(field, f"must be a list such as cpu=500m,memory=2GiB, not {part.strip()[:40]!r}")
        if name in amounts:
            raise Invalid(field, f"names {name} twice")
        amounts[name] = _parse_amount(name, amount, field)
    return check_resources(field, amounts)


def resources_text(resources: Resources) -> str:
    """Return resources in the form that `parse_resources` reads, sorted by name."""
    return ",".join(f"{name}={amount_text(name, amount)}" for name, amount in sorted(resources.items()))


def _parse_amount(name: str, text: str, field: str) -> int:
    units = _UNITS.get(name, _PIECES)
    found = _AMOUNT(text)
    if not found or found[3] not in units:
        known = ", ".join(unit for unit in units if unit)
        raise Invalid(field, f"{name} must be a number{f' (units: {known})' if known else ''}, not {text[:40]!r}")
    fraction = found[2] or ""
    scaled = int(found[1] + fraction) * units[found[3]]
    amount, rest = divmod(scaled, int("1" + "0" * len(fraction)))
    if rest:
        raise Invalid(field, f"{name} must be a whole number of its smallest unit, not {text}")
    return amount


def amount_text(name: str, amount: int) -> str:
    """Return an amount as people write it."""
    if name == "cpu":
        return f"{amount}m" if amount % 1000 else str(amount // 1000)
    if name == "memory":
        return next(
            (f"{amount // size}{unit}" for unit, size in _BYTES.items() if amount and not amount % size), str(amount)
        )
    return str(amount)


# Checks


def check_resources(field: str, resources: Resources) -> dict[str, int]:
    """Return resources whose names and amounts can be stored."""
    if len(resources) > MAX_RESOURCES:
        raise Invalid(field, f"must be at most {MAX_RESOURCES}, not {len(resources)}")
    for name, amount in resources.items():
        check_name(field, name)
        if type(amount) is not int or not 0 <= amount <= MAX_AMOUNT:
            raise Invalid(field, f"{name} must be a whole number between 0 and {MAX_AMOUNT}, not {str(amount)[:40]}")
    return dict(resources)


def check_needs(needs: Needs, field: str = "needs") -> Needs:
    """Refuse needs that cannot be stored."""
    if needs.resources:
        check_resources(f"{field}.resources", needs.resources)
    if needs.labels:
        check_labels(f"{field}.labels", needs.labels)
    return needs


def check_offer(offer: Offer, field: str = "offer") -> Offer:
    """Refuse offers that cannot be stored."""
    check_resources(f"{field}.resources", offer.resources)
    check_labels(f"{field}.labels", offer.labels)
    return offer
