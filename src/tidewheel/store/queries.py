"""Reads named statements from `.sql` files: `-- name: claim` begins one, and its comments stay with it."""

from collections.abc import Mapping
from importlib.resources import files
from typing import LiteralString, cast

_MARK = "-- name: "


def parse(text: str) -> Mapping[str, LiteralString]:
    """Split a file into its named statements."""
    queries: dict[str, str] = {}
    for section in text.split(_MARK)[1:]:
        name, _, body = section.partition("\n")
        if name.strip() in queries:
            raise ValueError(f"query {name.strip()!r} is defined twice")
        queries[name.strip()] = body.strip().removesuffix(";")
    return cast("Mapping[str, LiteralString]", queries)


def load(package: str) -> Mapping[str, LiteralString]:
    """Return all statements of the `queries` folder of a package; a name may occur once."""
    folder = files(package) / "queries"
    texts = [entry.read_text("utf-8") for entry in sorted(folder.iterdir(), key=lambda e: e.name)]
    return parse("\n".join(texts))
