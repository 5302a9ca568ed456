"""Limits and rules as operators set them, and their upkeep."""

from collections.abc import Sequence
from typing import Any

from tidewheel.errors import NotFound
from tidewheel.model.checks import check_name
from tidewheel.model.limit import (
    MOST_HOLDERS,
    MOST_WAITING,
    Limit,
    LimitRule,
    LimitUse,
    by_hand,
    check_declared,
    check_limit,
    check_rule,
    limit_of,
    rule_from,
)
from tidewheel.model.rate import Pace
from tidewheel.model.version import check_limit_version
from tidewheel.store.postgres.connection import SQL, Connection
from tidewheel.store.postgres.limits import Slot, let_go, make_limits
from tidewheel.store.postgres.parts import Part, intern_tenant, tenant_id


class Limiting(Part):
    """See `store.limiting.LimitStore`."""

    async def set_limit(
        self,
        key: str,
        most: int | None = None,
        *,
        rate: Pace | None = None,
        tenant: str = "default",
        version: int | None = None,
    ) -> Limit:
        check_limit(key, most, rate)
        check_name("tenant", tenant)

        async def put(connection: Connection) -> Limit:
            slot = (await intern_tenant(connection, tenant), key)
            await _check_version(connection, slot, tenant, version)
            await put_limit(connection, slot, most, rate)
            (row,) = await connection.fetch(SQL["limits"], tenant, key, None, None, 1)
            return _limit(row)

        limit = await self._db.transaction(put)
        self._hints.send()
        return limit

    async def remove_limit(self, key: str, *, tenant: str = "default", version: int | None = None) -> None:
        check_name("tenant", tenant)

        async def remove(connection: Connection) -> None:
            number = await tenant_id(connection, tenant)
            await _check_version(connection, (number or 0, key), tenant, version)
            if number is None or not await drop_limit(connection, (number, key)):
                raise NotFound("limit", key)

        await self._db.transaction(remove)
        self._hints.send()

    async def limit(self, key: str, *, tenant: str = "default") -> Limit:
        found = await self._db.read(lambda connection: _find(connection, key, tenant))
        if found is None:
            raise NotFound("limit", key)
        return found

    async def limits(
        self, *, tenant: str | None = None, limit: int | None = None, after: tuple[str, str] | None = None
    ) -> list[Limit]:
        values = (tenant, None, *(after or (None, None)), limit)
        rows = await self._db.read(lambda connection: connection.fetch(SQL["limits"], *values))
        return [_limit(row) for row in rows]

    async def limit_uses(self, keys: Sequence[tuple[str, str]]) -> list[LimitUse]:
        named = [[tenant for tenant, _ in keys], [key for _, key in keys]]

        async def look(connection: Connection) -> list[LimitUse]:
            waiting = await connection.fetch(SQL["limit_waiters"], *named, MOST_WAITING)
            rows = await connection.fetch(SQL["limit_holders"], *named)
            holders = {(row["tenant"], row["key"]): row["ids"][:MOST_HOLDERS] for row in rows}
            return [
                LimitUse(*key, row["waiting"], holders.get(key, [])) for key, row in zip(keys, waiting, strict=True)
            ]

        return await self._db.read(look)

    async def set_rule(self, rule: LimitRule) -> None:
        await self._put_rules([by_hand(check_rule(rule))])

    async def declare_rules(self, rules: Sequence[LimitRule]) -> int:
        return await self._put_rules(check_declared(rules))

    async def remove_rule(self, name: str) -> None:
        async def remove(connection: Connection) -> None:
            if await connection.fetchval(SQL["remove_rule"], name) is None:
                raise NotFound("rule", name)
            rows = await connection.fetch(SQL["remove_limits_of_rule"], name)
            await let_go(connection, _slots(rows))
            await connection.execute(SQL["note_lanes"])

        await self._db.transaction(remove)
        self._hints.send()

    async def rules(self) -> list[LimitRule]:
        rows = await self._db.read(lambda connection: connection.fetch(SQL["limit_rules"]))
        return [rule_from(row) for row in rows]

    async def repair_limits(self) -> int:
        async def repair(connection: Connection) -> tuple[int, int]:
            # Only those that seem wrong are locked; most are right, and in use.
            wrong = await _recount(connection, _slots(await connection.fetch(SQL["doubtful_limits"])))
            # Also keys that have no limit any more: whoever was locked when it was removed still waits.
            waited = _slots(await connection.fetch(SQL["keys_waited_for"]))
            return wrong, await let_go(connection, waited)

        wrong, released = await self._db.transaction(repair)
        if released:
            self._hints.send()
        return wrong

    async def forget_unused_limits(self, *, limit: int = 1000) -> int:
        rows = await self._db.write(lambda connection: connection.fetch(SQL["forget_unused_limits"], limit))
        return len(rows)

    async def _put_rules(self, rules: Sequence[LimitRule]) -> int:
        async def put(connection: Connection) -> int:
            changed = []
            for rule in sorted(rules, key=lambda rule: rule.name):
                values = (rule.name, *_bounds(rule.most, rule.rate), rule.by_hand, rule.waiting, rule.overflow)
                if await connection.fetchval(SQL["put_rule"], *values) is not None:
                    changed.append(rule.name)
            if not changed:
                return 0
            await connection.execute(SQL["make_limits_of_runs"], changed)
            slots = _slots(await connection.fetch(SQL["follow_rules"], changed))
            await _recount(connection, slots)
            await let_go(connection, slots)
            await connection.execute(SQL["note_lanes"])
            return len(changed)

        number = await self._db.transaction(put)
        if number:
            self._hints.send()
        return number


async def put_limit(connection: Connection, slot: Slot, most: int | None, rate: Pace | None = None) -> None:
    """Set the limit of a key, and let those go who have room now."""
    await connection.execute(SQL["set_limit"], *slot, *_bounds(most, rate))
    await _recount(connection, [slot])
    await let_go(connection, [slot])


async def _check_version(connection: Connection, slot: Slot, tenant: str, version: int | None) -> None:
    """Lock the limit of a key, and see whether it is the one that someone means."""
    if version is not None:
        await connection.fetch(SQL["lock_limits"], [slot[0]], [slot[1]])
        check_limit_version(slot[1], await _find(connection, slot[1], tenant), version)


async def _find(connection: Connection, key: str, tenant: str) -> Limit | None:
    rows = await connection.fetch(SQL["limits"], tenant, key, None, None, 1)
    return _limit(rows[0]) if rows else None


async def drop_limit(connection: Connection, slot: Slot) -> bool:
    """Remove the limit of a key, if it has one; a rule holds again, or all go who wait."""
    removed = await connection.fetchval(SQL["remove_limit"], *slot) is not None
    await make_limits(connection, [slot])
    await _recount(connection, [slot])
    await let_go(connection, [slot])
    return removed


async def _recount(connection: Connection, slots: Sequence[Slot]) -> int:
    """Lock limits, and recount them in a statement of its own; return how many were wrong."""
    if not slots:
        return 0
    tenants, keys = [slot[0] for slot in slots], [slot[1] for slot in slots]
    await connection.fetch(SQL["lock_limits"], tenants, keys)
    return len(await connection.fetch(SQL["recount_limits"], tenants, keys))


def _slots(rows: Sequence[Any]) -> list[Slot]:
    return sorted((row["tenant"], row["key"]) for row in rows)


def _limit(row: Any) -> Limit:
    return limit_of(row[1:], row[0])


def _bounds(most: int | None, rate: Pace | None) -> tuple[int | None, ...]:
    return (most, None, None, None) if rate is None else (most, rate.starts, rate.seconds, rate.burst)
