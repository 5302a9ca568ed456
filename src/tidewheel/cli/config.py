"""`tide config`: what the settings are, and who says so."""

import os
from pathlib import Path

import typer

from tidewheel.cli.showing import Format, Output, show_table, show_value
from tidewheel.settings import find_file, read_file, resolve, shown, unknown_variables

app = typer.Typer(help="Look at the settings.", no_args_is_help=True)


@app.callback()
def group() -> None:
    """Look at the settings."""


@app.command()
def show(context: typer.Context, output: Output = Format.TABLE) -> None:
    """Print every setting with its source: a variable, a file, or the default. Passwords are masked.

    An option of a command comes before all of these.
    """
    file = find_file(context.find_root().params.get("config_file"), os.environ, Path.cwd())
    values = resolve({} if file is None else read_file(file), file, os.environ)
    if output is not Format.TABLE:
        show_value({one.setting.name: {"value": shown(one), "source": one.source} for one in values}, output)
        return
    show_table(["setting", "value", "source"], [[one.setting.name, _text(shown(one)), one.source] for one in values])
    for name in unknown_variables(os.environ):
        typer.echo(f"tide: {name} is no setting, and is not heeded", err=True)


def _text(value: object) -> str:
    return "-" if value is None else ", ".join(value) or "-" if isinstance(value, list) else str(value)
