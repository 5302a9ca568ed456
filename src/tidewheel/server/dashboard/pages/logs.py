"""Searching what all runs wrote."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tidewheel.server.dashboard.visit import Visit
from tidewheel.server.problems import Refused

FILTERS: Final = ("q", "kind", "level", "job_id")
LEVELS: Final = ("debug", "info", "warning", "error", "critical")


class Piece(NamedTuple):
    """A part of an excerpt, and whether it is what was searched for."""

    text: str
    found: bool


async def load(visit: Visit) -> Mapping[str, Any]:
    """Return the lines that meet the conditions, newest first."""
    chosen = {name: visit.query[name].strip() for name in FILTERS if visit.query.get(name, "").strip()}
    lines, cursor, wrong = list[Any](), None, ""
    try:
        page = await visit.desk.ask("search_logs", query={**chosen, "cursor": visit.query.get("cursor")})
        lines, cursor = page.lines, page.next_cursor
    except Refused as refused:
        wrong = refused.detail
    return {
        "lines": [(line, pieces_of(line.excerpt, [(mark.start, mark.end) for mark in line.marks])) for line in lines],
        "next_cursor": cursor,
        "chosen": chosen,
        "wrong": wrong,
        "levels": LEVELS,
    }


def pieces_of(excerpt: str, marks: Sequence[tuple[int, int]]) -> list[Piece]:
    """Cut an excerpt where what was found begins and ends."""
    pieces, last = [], 0
    for begin, end in sorted(marks):
        if begin < last:
            continue
        pieces += [Piece(excerpt[last:begin], found=False), Piece(excerpt[begin:end], found=True)]
        last = end
    return [piece for piece in (*pieces, Piece(excerpt[last:], found=False)) if piece.text]
