"""Builds alerts and windows from rows; both stores select the same columns in the same order."""

from collections.abc import Iterable
from typing import Any

import msgspec

from tidewheel.model.alert import Alert, AlertState, Finding, Rule, Window
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


def detail_text(rule: str, subject: str, told: str) -> str:
    """Return what an event says of an alert."""
    return msgspec.json.encode({"rule": rule, "subject": subject, "told": told}).decode()


def finding_detail(finding: Finding) -> str:
    """Return what an event says of something that was found."""
    return detail_text(finding.rule, finding.subject, finding.told)
