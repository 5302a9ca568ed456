"""The dependency graph of a job as a drawing: parents on the left, children on the right; pure."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

BOX_WIDTH: Final = 190
BOX_HEIGHT: Final = 44
GAP: Final = 14
BETWEEN: Final = 70
MARGIN: Final = 4


class Box(NamedTuple):
    """A job in the drawing."""

    job: Any
    x: int
    y: int
    is_self: bool


class Edge(NamedTuple):
    """A line from a job to one that waits for it."""

    path: str


class Drawing(NamedTuple):
    """Where everything is."""

    width: int
    height: int
    boxes: list[Box]
    edges: list[Edge]


def drawing_of(job: Any, parents: Sequence[Any], children: Sequence[Any]) -> Drawing:
    """Place a job between those that it waits for and those that wait for it."""
    columns = [column for column in (parents, [job], children) if column]
    tallest = max(map(len, columns))
    height = tallest * (BOX_HEIGHT + GAP) - GAP + 2 * MARGIN
    boxes: list[list[Box]] = []
    for position, column in enumerate(columns):
        x = MARGIN + position * (BOX_WIDTH + BETWEEN)
        top = (height - (len(column) * (BOX_HEIGHT + GAP) - GAP)) // 2
        boxes.append([Box(one, x, top + row * (BOX_HEIGHT + GAP), one is job) for row, one in enumerate(column)])
    width = len(columns) * (BOX_WIDTH + BETWEEN) - BETWEEN + 2 * MARGIN
    edges = [_edge(left, right) for lefts, rights in pairwise(boxes) for left in lefts for right in rights]
    return Drawing(width, height, [box for column in boxes for box in column], edges)


def _edge(left: Box, right: Box) -> Edge:
    x1, y1 = left.x + BOX_WIDTH, left.y + BOX_HEIGHT // 2
    x2, y2 = right.x, right.y + BOX_HEIGHT // 2
    middle = (x1 + x2) // 2
    return Edge(f"M{x1} {y1} C{middle} {y1} {middle} {y2} {x2 - 6} {y2}")
