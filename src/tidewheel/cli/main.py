"""The root of the command line; each group of commands has its own file and is added here."""

import sys
from importlib.metadata import version
from typing import Annotated

import typer

from tidewheel.cli import audit, dlq, keeper, key, server, store, submit, tenant, up, worker
from tidewheel.errors import TideError

app = typer.Typer(
    name="tide", help="Run jobs on time.", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False
)
app.add_typer(store.app, name="store")
app.add_typer(key.app, name="key")
app.add_typer(tenant.app, name="tenant")
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
    *,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Run jobs on time."""


def main() -> None:
    """Run the command line; what goes wrong for a known reason is told in one line."""
    try:
        app()
    except TideError as error:
        typer.echo(f"tide: {error}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
