"""The root of the command line; each group of commands has its own file and is added here."""

import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from tidewheel.cli import audit, config, dlq, keeper, key, server, store, submit, tenant, up, worker
from tidewheel.errors import TideError
from tidewheel.settings import CONFIG_VARIABLE, SETTINGS, find_file, read_file, read_secret_files

app = typer.Typer(
    name="tide", help="Run jobs on time.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.add_typer(store.app, name="store")
app.add_typer(key.app, name="key")
app.add_typer(tenant.app, name="tenant")
app.add_typer(config.app, name="config")
app.add_typer(keeper.app, name="keeper")
app.add_typer(dlq.app, name="dlq")
app.command("audit")(audit.audit)
app.command("up")(up.up)
app.command("server")(server.server)
app.command("worker")(worker.worker)
app.command("submit")(submit.submit)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tide {version('tidewheel')}")
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    *,
    config_file: Annotated[
        str | None,
        typer.Option(
            "--config", envvar=CONFIG_VARIABLE, help="A file of settings.  [default: tidewheel.toml, if it is here]"
        ),
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Run jobs on time."""
    del show_version
    os.environ.update(read_secret_files(os.environ))
    file = find_file(config_file, os.environ, Path.cwd())
    if file is not None:
        context.default_map = _defaults_of(context.command, read_file(file))


def _defaults_of(group: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says, for each command those settings that it has."""
    found: dict[str, Any] = {}
    for name, command in getattr(group, "commands", {}).items():
        if hasattr(command, "commands"):
            found[name] = _defaults_of(command, said)
            continue
        own = {parameter.name for parameter in command.params}
        found[name] = {
            key: value
            for key, value in said.items()
            if key in own and (SETTINGS[key].commands is None or name in (SETTINGS[key].commands or ()))
        }
    return found


def main() -> None:
    """Run the command line; what goes wrong for a known reason is told in one line."""
    try:
        app()
    except TideError as error:
        typer.echo(f"tide: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
