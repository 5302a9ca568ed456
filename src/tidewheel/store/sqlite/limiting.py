"""Limits and rules as operators set them, and their upkeep."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

import apsw
import msgspec

from tidewheel.errors import NotFound
from tidewheel.model.limit import MOST_HOLDERS, MOST_WAITING, Limit, LimitRule, LimitUse, limit_of, rule_from
from tidewheel.model.rate import Pace
from tidewheel.model.version import check_limit_version
from tidewheel.store.sqlite.connection import rows
from tidewheel.store.sqlite.limits import Key, ensure_limit, let_go
from tidewheel.store.sqlite.session import Session
from tidewheel.store.sqlite.values import json_text

_ids: Final = msgspec.json.Decoder(list[UUID]).decode
_keys: Final = msgspec.json.Decoder(list[tuple[int, str]]).decode


def change_limit(session: Session, asked: Limit, version: int | None) -> Limit:
    """See `store.limiting.LimitStore.set_limit`."""
    check_limit_version(asked.key, _find(session.connection, asked.key, asked.tenant, session.now), version)
    return set_limit(session, asked.key, asked.most, asked.rate, asked.tenant)


def set_limit(session: Session, key: str, most: int | None, rate: Pace | None, tenant: str) -> Limit:
    """Set the limit of a key, and let those go who have room now."""
    number = session.lanes.tenant(session.connection, tenant)
    session.run("set_limit", tenant=number, key=key, **bounds(most, rate))
    session.rows("recount", tenant=number, key=key)
    let_go(session, [(number, key)], session.now)
    session.stir()
    return limit(session.connection, key, tenant, session.now)


def remove_limit(session: Session, key: str, tenant: str, version: int | None) -> None:
    """See `store.limiting.LimitStore.remove_limit`."""
    number = session.lanes.known_tenant(tenant)
    check_limit_version(key, _find(session.connection, key, tenant, session.now), version)
    if number is None or not drop_limit(session, (number, key)):
        raise NotFound("limit", key)


def drop_limit(session: Session, key: Key) -> bool:
    """Remove the limit of a key, if it has one; a rule holds again, or all go who wait."""
    tenant, name = key
    removed = session.value("remove_limit", tenant=tenant, key=name) is not None
    if ensure_limit(session, key):
        session.rows("recount", tenant=tenant, key=name)
    let_go(session, [key], session.now)
    session.lanes.look_again_at(session.value("next_look"))
    return removed


def limit(connection: apsw.Connection, key: str, tenant: str, now: int) -> Limit:
    """See `store.limiting.LimitStore.limit`."""
    found = _find(connection, key, tenant, now)
    if found is None:
        raise NotFound("limit", key)
    return found


def _find(connection: apsw.Connection, key: str, tenant: str, now: int) -> Limit | None:
    one = {"tenant": tenant, "key": key, "limit": 1, "after_tenant": None, "after_key": None}
    return next((limit_of(row, now) for row in rows(connection, "limits", one)), None)


def limits(
    connection: apsw.Connection, tenant: str | None, page: tuple[int | None, tuple[str, str] | None], now: int
) -> list[Limit]:
    """See `store.limiting.LimitStore.limits`; a page is how many, and after which."""
    limit, after = page
    beyond = dict(zip(("after_tenant", "after_key"), after or (None, None), strict=True))
    values = {"tenant": tenant, "key": None, "limit": limit, **beyond}
    return [limit_of(row, now) for row in rows(connection, "limits", values)]


def uses(connection: apsw.Connection, keys: Sequence[tuple[str, str]]) -> list[LimitUse]:
    """See `store.limiting.LimitStore.limit_uses`."""
    named = json_text(keys)
    waiting = [row[0] for row in rows(connection, "limit_waiters", {"keys": named, "most": MOST_WAITING})]
    found = rows(connection, "limit_holders", {"keys": named})
    holders = {(tenant, key): _ids(ids)[:MOST_HOLDERS] for tenant, key, ids in found}
    return [LimitUse(*key, number, holders.get(key, [])) for key, number in zip(keys, waiting, strict=True)]


def put_rules(session: Session, new: Sequence[LimitRule]) -> int:
    """See `store.limiting.LimitStore.set_rule` and `declare_rules`."""
    changed = [rule.name for rule in new if session.rows("put_rule", **_rule_values(rule))]
    if not changed:
        return 0
    for name in changed:
        session.run("follow_rule", name=name)
        session.run("keys_of_runs_under_rule", name=name)
    session.rows("recount", tenant=None, key=None)
    for name in changed:
        let_go(session, session.rows("keys_of_rule", name=name), session.now)
    _tell_others(session)
    return len(changed)


def remove_rule(session: Session, name: str) -> None:
    """See `store.limiting.LimitStore.remove_rule`."""
    if session.value("remove_rule", name=name) is None:
        raise NotFound("rule", name)
    let_go(session, session.rows("remove_keys_of_rule", name=name), session.now)
    _tell_others(session)


def rules(connection: apsw.Connection) -> list[LimitRule]:
    """See `store.limiting.LimitStore.rules`."""
    return [rule_from(row) for row in rows(connection, "limit_rules", {})]


def repair_limits(session: Session) -> int:
    """See `store.limiting.LimitStore.repair_limits`. Also lets those go who wait for a key without a limit."""
    wrong = session.rows("recount", tenant=None, key=None)
    let_go(session, _keys(session.value("keys_waited_for")), session.now)
    return len(wrong)


def forget_unused(session: Session, limit: int) -> int:
    """See `store.limiting.LimitStore.forget_unused_limits`."""
    return len(session.rows("forget_unused_keys", now=session.now, limit=limit))


def _tell_others(session: Session) -> None:
    session.lanes.changed(session.connection)
    session.lanes.read(session.connection)
    session.lanes.look_again_at(session.value("next_look"))
    session.stir()


def _rule_values(rule: LimitRule) -> dict[str, Any]:
    cap = {"waiting": rule.waiting, "overflow": rule.overflow}
    return {"name": rule.name, "by_hand": int(rule.by_hand), **bounds(rule.most, rule.rate), **cap}


def bounds(most: int | None, rate: Pace | None) -> dict[str, Any]:
    """Return the columns that say what a limit allows."""
    if rate is None:
        return {"most": most, "starts": None, "seconds": None, "burst": None}
    return {"most": most, "starts": rate.starts, "seconds": rate.seconds, "burst": rate.burst}
