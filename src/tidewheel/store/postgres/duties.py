"""Duties that the nodes share, and what there is to do."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from tidewheel.model.duty import MOST_NODES, Agenda, Duty, check_duties, share
from tidewheel.store.postgres.connection import SQL, Connection, one
from tidewheel.store.postgres.parts import Part
from tidewheel.store.scheduling import SHARDS


class Duties(Part):
    """See `store.keeping.DutyStore`."""

    async def share_duties(self, node: UUID, names: Sequence[str], ttl: timedelta) -> list[Duty] | None:
        check_duties(names, ttl)
        return await self._db.write(lambda connection: _share(connection, node, sorted(set(names)), ttl))

    async def leave_duties(self, node: UUID) -> None:
        await self._db.write(lambda connection: connection.execute(SQL["leave_duties"], node))

    async def agenda(self) -> Agenda:
        row = dict(await self._db.read(lambda connection: one(connection, SQL["agenda"], SHARDS)))
        fires, decisions = tuple(row.pop("next_fires")), tuple(row.pop("next_decisions"))
        return Agenda(**row, next_fires=fires, next_decisions=decisions)


async def _share(connection: Connection, node: UUID, names: list[str], ttl: timedelta) -> list[Duty] | None:
    """Most often one statement: the second is for what changes hands."""
    rows: list[Any] = await connection.fetch(SQL["be_there"], node, names, ttl, MOST_NODES)
    if not any(row["node"] == node and row["name"] is None for row in rows):
        return None
    offers = {row["node"]: row["duties"] for row in rows if row["name"] is None} | {node: names}
    duties = [row for row in rows if row["name"] is not None and row["node"] in offers]
    due = share({row["name"]: row["node"] for row in duties}, offers)
    mine = [Duty(row["name"], node, row["until"], row["epoch"]) for row in duties if row["node"] == node]
    kept = [duty for duty in mine if due.get(duty.name) == node]
    held = {row["name"] for row in duties}
    take = [name for name, whose in due.items() if whose == node and name not in held]
    give = [duty.name for duty in mine if due.get(duty.name) != node]
    if take or give:
        taken = await connection.fetch(SQL["move_duties"], node, take, give, ttl)
        kept += [Duty(row["name"], node, row["until"], row["epoch"]) for row in taken]
    return sorted(kept, key=lambda duty: duty.name)
