"""Commands whose files are loaded when they are called: all together take longer to load than most take to run."""

from importlib import import_module
from typing import Any, Final, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

WIDEST: Final = 200
"""More characters than a line of help has."""


class Entry(NamedTuple):
    """A command of the root: where it is, and one line about it."""

    place: str
    """`module:attribute` below `tidewheel.cli`; the attribute is a group, or a function."""
    about: str


class LazyCommand(TyperCommand):
    """Stands for a command until it is called."""

    def __init__(self, name: str, entry: Entry) -> None:
        super().__init__(name, help=entry.about, rich_markup_mode=None)
        self.entry = entry

    def load(self) -> Any:
        """Return the command itself."""
        module, _, attribute = self.entry.place.partition(":")
        found = getattr(import_module(f"tidewheel.cli.{module}"), attribute)
        return get_command(found if isinstance(found, typer.Typer) else _lone(found))

    def make_context(self, *words: Any, **more: Any) -> Any:
        """Let the command itself read its words."""
        return self.load().make_context(*words, **more)


def loaded(command: Any) -> Any:
    """Return a command with all of its options."""
    return command.load() if isinstance(command, LazyCommand) else command


def add_lazily(root: TyperGroup, entries: dict[str, Entry]) -> TyperGroup:
    """Add commands that are not loaded yet to a group."""
    for name, entry in entries.items():
        root.add_command(LazyCommand(name, entry))
    return root


def group(about: str) -> typer.Typer:
    """Return an empty group of commands."""
    return typer.Typer(help=about, no_args_is_help=True, rich_markup_mode=None, add_completion=False)


def _lone(function: Any) -> typer.Typer:
    app = typer.Typer(rich_markup_mode=None, add_completion=False)
    app.command()(function)
    return app
