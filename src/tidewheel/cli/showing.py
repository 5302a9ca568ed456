"""How commands show what they found: as columns for people, or as JSON or YAML for programs."""

import enum
import getpass
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Final, TypeVar

import msgspec
import typer

from tidewheel.cli.yaml_text import yaml_text
from tidewheel.errors import Invalid
from tidewheel.model.access import Actor, Role
from tidewheel.model.checks import duration_text
from tidewheel.model.harmless_text import clean_lines

T = TypeVar("T")
Columns = Mapping[str, Callable[[T], Any]]
"""Titles, and what to show of a thing below each."""


class Format(enum.StrEnum):
    """What a command prints."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


Output = Annotated[
    Format, typer.Option("--output", "-o", envvar="TIDE_OUTPUT", help="table for people; json, yaml for programs.")
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]

_COLOURS: Final = {
    "running": "cyan",
    "succeeded": "green",
    "dead": "red",
    "held": "yellow",
    "retrying": "yellow",
    "limited": "yellow",
    "cancelled": "dim",
    "dropped": "dim",
    "skipped": "dim",
    "expired": "red",
}


def plain(value: Any) -> Any:
    """Return a record as programs read it: dicts, lists, texts and numbers, with all fields, also those left empty."""
    return msgspec.json.decode(msgspec.json.encode(_whole(value)))


def _whole(value: Any) -> Any:
    if isinstance(value, msgspec.Struct):
        config = value.__struct_config__
        tag = {config.tag_field or "type": config.tag} if config.tag is not None else {}
        return tag | {name: _whole(getattr(value, name)) for name in value.__struct_fields__}
    if isinstance(value, Mapping):
        return {key: _whole(inner) for key, inner in value.items()}
    return [_whole(inner) for inner in value] if isinstance(value, list | tuple | frozenset) else value


def show_value(value: Any, output: Format = Format.JSON) -> None:
    """Print something for programs; columns have no place for a single value, so people get JSON, too."""
    if output is Format.YAML:
        typer.echo(yaml_text(plain(value)))
    else:
        typer.echo(msgspec.json.format(msgspec.json.encode(plain(value))).decode())


def show_list(things: Sequence[T], columns: Columns[T], output: Format, document: Callable[[T], Any] = plain) -> None:
    """Print things: a line each for people, or a list of documents for programs."""
    if output is Format.TABLE:
        show_table(tuple(columns), [[cell(thing) for cell in columns.values()] for thing in things])
    else:
        show_value([document(thing) for thing in things], output)


def show_one(thing: T, rows: Columns[T], output: Format, document: Callable[[T], Any] = plain) -> None:
    """Print one thing: a line for each of its traits that is there, or a document."""
    if output is not Format.TABLE:
        show_value(document(thing), output)
        return
    traits = [(title, _text(cell(thing))) for title, cell in rows.items()]
    width = max(len(title) for title, _ in traits)
    for title, text in traits:
        if text != "-":
            typer.echo(f"{title.ljust(width)}  {text}")


def show_table(head: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print columns as wide as they must be; on a terminal, with colours and no wider than it is."""
    texts = [[_text(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        _show_on_terminal(head, texts)
        return
    cells = [list(head), *texts]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    for row in cells:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def _show_on_terminal(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console  # noqa: PLC0415 - takes longer to load than most commands to run
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for column, title in enumerate(head):
        table.add_column(title, overflow="ellipsis", no_wrap=True, min_width=36 if _is_id(rows, column) else None)
    for row in rows:
        table.add_row(*(Text(cell, style=_COLOURS.get(cell, "")) for cell in row))
    Console(no_color=True if os.environ.get("NO_COLOR") else None, highlight=False).print(table)


def _is_id(rows: Iterable[Sequence[str]], column: int) -> bool:
    """Tell whether a column has ids, which are of no use if they are cut."""
    return column == 0 and any(len(row[0]) == 36 and row[0].count("-") == 4 for row in rows)  # noqa: PLR2004 - a UUID


def confirm(count: int, what: str, *, yes: bool) -> bool:
    """Say how many things something would be done to, and ask; where nobody can answer, it must have been said."""
    if yes or count == 0:
        return True
    if not sys.stdin.isatty():
        raise Invalid("yes", f"{count} {what}; add --yes to do it")
    return typer.confirm(f"{count} {what}. Go on?")


def whoever_types() -> Actor:
    """Return who acts at this machine: whoever reaches the database itself may do all there is."""
    try:
        return Actor(role=Role.ADMIN, name=f"cli:{getpass.getuser()}")
    except (KeyError, OSError):  # a user without a name, as in a container
        return Actor(role=Role.ADMIN, name="cli")


def _text(cell: Any) -> str:
    if cell is None or cell in ("", ()):
        return "-"
    if isinstance(cell, datetime):
        return f"{cell.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z"
    if isinstance(cell, timedelta):
        return duration_text(cell)
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return clean_lines(str(cell))
