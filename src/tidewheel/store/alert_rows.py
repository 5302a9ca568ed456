"""Builds alerts and windows from rows; both stores select the same columns in the same order."""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from tidewheel.model.alert import Alert, AlertState, Finding, LaneFact, Rule, Window
from tidewheel.model.resources import parse_needs_text
from tidewheel.store.records import Dialect


def alert_of(row: Any, dialect: Dialect) -> Alert:
    """Build an alert from its columns."""
    number, rule, subject, tenant, told, state, since, resolved_at, acknowledged_by, acknowledged_at = row
    return Alert(
        id=dialect.uuid(number),
        rule=Rule(rule),
        subject=subject,
        tenant=tenant,
        told=told,
        state=AlertState(state),
        since=dialect.instant(since),
        resolved_at=None if resolved_at is None else dialect.instant(resolved_at),
        acknowledged_by=acknowledged_by,
        acknowledged_at=None if acknowledged_at is None else dialect.instant(acknowledged_at),
    )


def window_of(row: Any, rules: Iterable[str], dialect: Dialect) -> Window:
    """Build a maintenance window from its columns; `rules` is one that each store reads in its own way."""
    number, start, end, _, reason, author = row
    return Window(
        id=dialect.uuid(number),
        start=dialect.instant(start),
        end=dialect.instant(end),
        rules=frozenset(Rule(name) for name in rules),
        reason=reason,
        author=author,
    )


def lane_of(row: Any, waits: timedelta) -> LaneFact:
    """Build what is known of a lane from its columns; `waits` is the last, which each store reads in its own way."""
    tenant, queue, kind, needs, _ = row
    return LaneFact(tenant, queue, kind, parse_needs_text(needs), waits)


def detail_text(alert_id: UUID, rule: str, subject: str, told: str) -> str:
    """Return what an event says of an alert."""
    return msgspec.json.encode({"alert_id": alert_id, "rule": rule, "subject": subject, "told": told}).decode()


def finding_detail(alert_id: UUID, finding: Finding) -> str:
    """Return what an event says of something that was found."""
    return detail_text(alert_id, finding.rule, finding.subject, finding.told)
