"""Plans of prepared statements, as PostgreSQL explains them when it has carried them out."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Literal, NamedTuple
from uuid import UUID

from tests.postgres_store.tools import Raw
from tidewheel.store.postgres.connection import SQL

Mode = Literal["force_generic_plan", "force_custom_plan"]
MODES: tuple[Mode, ...] = ("force_generic_plan", "force_custom_plan")
"""The driver keeps its statements prepared: PostgreSQL plans them for their values at first, then once for all."""


class Plan(NamedTuple):
    """A plan that was carried out, and what it touched."""

    tree: Mapping[str, Any]

    def nodes(self) -> Iterator[Mapping[str, Any]]:
        return _walk(self.tree)

    def ways_to(self, relation: str) -> set[str]:
        """Return how the rows of a table are reached: by the name of an index, or the kind of scan."""
        return {way for node in self._scans(relation) for way in _ways(node)}

    def rows_of(self, relation: str) -> int:
        """Count the rows that were looked at in a table, those that did not fit included."""
        kinds = ("Actual Rows", "Rows Removed by Filter", "Rows Removed by Index Recheck")
        rows: float = sum(node.get(kind, 0) * node["Actual Loops"] for node in self._scans(relation) for kind in kinds)
        return round(rows)

    @property
    def buffers(self) -> int:
        """Count the pages that were touched, each time anew."""
        return int(self.tree["Shared Hit Blocks"] + self.tree["Shared Read Blocks"])

    def _scans(self, relation: str) -> Iterator[Mapping[str, Any]]:
        return (
            node
            for node in self.nodes()
            if node.get("Relation Name") == relation and node["Node Type"] != "ModifyTable" and node["Actual Loops"]
        )


def _walk(node: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield node
    for child in node.get("Plans", ()):
        yield from _walk(child)


def _ways(node: Mapping[str, Any]) -> Iterator[str]:
    if node["Node Type"] == "Bitmap Heap Scan":
        yield from (below["Index Name"] for below in _walk(node) if "Index Name" in below)
    else:
        yield node.get("Index Name", node["Node Type"])


class Prepared:
    """The statements of a session, prepared once and explained again and again."""

    def __init__(self, connection: Raw) -> None:
        self._connection = connection

    @classmethod
    async def all(cls, connection: Raw, names: Sequence[str], mode: Mode) -> "Prepared":
        await connection.execute(f"SET plan_cache_mode = {mode}")
        for name in names:
            await connection.execute(f"PREPARE {name} AS {SQL[name]}")
        return cls(connection)

    async def explain(self, name: str, values: Sequence[Any]) -> Plan:
        """Carry a statement out and take it back."""
        given = f"({', '.join(map(literal, values))})" if values else ""
        transaction = self._connection.transaction()
        await transaction.start()
        try:
            text = await self._connection.fetchval(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {name}{given}")
        finally:
            await transaction.rollback()
        return Plan(json.loads(text)[0]["Plan"])


def literal(value: Any) -> str:
    """Write a value so that PostgreSQL reads it as whatever the parameter is."""
    if value is None:
        return "NULL"
    return "'" + _text(value).replace("'", "''") + "'"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return "{" + ",".join(map(_element, value)) + "}"
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, timedelta):
        return f"{value.total_seconds()} seconds"
    return str(value) if isinstance(value, int | str | UUID) else repr(value)


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    return '"' + _text(value).replace("\\", "\\\\").replace('"', '\\"') + '"'
