"""The audit log: who changed what, and when. Entries are added and grow old; none is ever changed."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.access import Action, Actor
from tidewheel.model.checks import check_json, check_name, clean_text

KEEP_AUDIT: Final = timedelta(days=365)
MAX_SUBJECT: Final = 500
MAX_DETAIL: Final = 16 * 1024
"""As JSON."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written down: an actor did something to something."""

    actor: Actor
    action: str
    subject: str = ""
    """What it was done to: an id or a name."""
    tenant: str | None = None
    """Whose it is; None if it concerns all."""
    detail: Mapping[str, Any] = {}


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What was written down."""

    id: UUID
    at: datetime
    actor: str
    role: str
    key_id: UUID | None = None
    tenant: str | None = None
    action: str
    subject: str = ""
    detail: Any = None


class AuditFilter(msgspec.Struct, frozen=True, kw_only=True):
    """Which entries a list shows; all conditions must hold."""

    tenant: str | None = None
    """Entries of one tenant; entries that concern all are not among them."""
    action: str | None = None
    subject: str | None = None
    key_id: UUID | None = None
    since: datetime | None = None
    before: datetime | None = None


class AuditPage(msgspec.Struct, frozen=True):
    """One page, newest first. It may be short, even empty, while `next` leads on."""

    entries: list[AuditEntry]
    next: UUID | None = None
    """Where the next page begins (exclusive); None at the end."""


class AuditRow(msgspec.Struct, frozen=True, array_like=True):
    """A change, ready to be stored."""

    actor: str
    role: str
    key_id: UUID | None
    tenant: str | None
    action: str
    subject: str
    detail: str | None


def prepare_changes(changes: Sequence[Change]) -> list[AuditRow]:
    """Make changes ready to be stored, or raise Invalid for the first bad one (`changes[3].detail`)."""
    rows = []
    for position, change in enumerate(changes):
        try:
            rows.append(_prepare(change))
        except Invalid as error:
            raise Invalid(f"changes[{position}].{error.field}", error.why) from error
    return rows


def change_by(
    actor: Actor, action: Action, subject: object = "", *, tenant: str | None = None, **detail: Any
) -> Change:
    """Return a change; details that are None are left out."""
    told = {name: value for name, value in detail.items() if value is not None}
    return Change(actor=actor, action=action.value, subject=str(subject), tenant=tenant, detail=told)


def _prepare(change: Change) -> AuditRow:
    if change.tenant is not None:
        check_name("tenant", change.tenant)
    return AuditRow(
        actor=clean_text(change.actor.name, 200),
        role=change.actor.role.value,
        key_id=change.actor.key_id,
        tenant=change.tenant,
        action=check_name("action", change.action),
        subject=clean_text(change.subject, MAX_SUBJECT),
        detail=check_json("detail", dict(change.detail), max_bytes=MAX_DETAIL) if change.detail else None,
    )
