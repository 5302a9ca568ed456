"""The root of the command line; each command and each group of commands is a file, loaded when it is asked for."""

import sys
from importlib import import_module
from typing import Annotated, Final

import typer

from tidewheel.errors import TideError

GROUPS: Final = ("store", "key", "tenant", "keeper", "dlq")
"""Files that have an `app` with several commands."""
COMMANDS: Final = ("audit", "up", "server", "worker", "submit")
"""Files that have one function, named as they are."""


def build(first: str | None = None) -> typer.Typer:
    """Return the command line: one command if the first word names it, for the others cost time, or else all."""
    app = typer.Typer(
        name="tide",
        help="Run jobs on time.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(root)
    known = (*GROUPS, *COMMANDS)
    for name in [first] if first in known else known:
        module = import_module(f"tidewheel.cli.{name}")
        if name in GROUPS:
            app.add_typer(module.app, name=name)
        else:
            app.command(name)(getattr(module, name))
    return app


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - takes longer to load than some commands do

        typer.echo(f"tide {version('tidewheel')}")
        raise typer.Exit


def root(
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Run jobs on time."""


def main() -> None:
    """Run the command line; what goes wrong for a known reason is told in one line."""
    try:
        build(*sys.argv[1:2])()
    except TideError as error:
        typer.echo(f"tide: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
