"""The root of the command line: which commands there are, and what becomes of errors."""

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tidewheel.cli.lazy import Entry, add_lazily
from tidewheel.errors import Invalid, TideError, Unavailable

FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

_UsageError: Final[Any] = typer.BadParameter.__bases__[0]
"""What all wrong words raise; it has no public name."""

COMMANDS: Final = {
    "up": Entry("up:up", "Start Tidewheel: server, worker and chores, all on this machine."),
    "server": Entry("server:server", "Answer HTTP requests until SIGTERM or Ctrl-C."),
    "worker": Entry("worker:worker", "Run jobs until SIGTERM or Ctrl-C."),
    "keeper": Entry("keeper:app", "Look at the chores that every worker does beside its jobs."),
    "audit": Entry("audit:audit", "Show who changed what, newest first."),
    "dlq": Entry("dlq:app", "Look after dead letters: jobs that ended without success."),
    "key": Entry("key:app", "Give out, list and revoke keys."),
    "tenant": Entry("tenant:app", "List tenants, and give them shares and bounds."),
    "submit": Entry("submit:submit", "Hand over a command or a task to be run; print the id of the job."),
    "job": Entry("job:app", "Look at jobs and steer them."),
    "logs": Entry("logs:logs", "Search what runs wrote, or follow it."),
    "db": Entry("db:app", "Look after the database: its schema, and moving to another one."),
}

app = typer.Typer(name="tide", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


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


def commands() -> TyperGroup:
    """Return the root with all of its commands, none of which is loaded."""
    made = get_command(app)
    assert isinstance(made, TyperGroup)
    return add_lazily(made, COMMANDS)


def run(words: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; what goes wrong for a known reason is told in one line."""
    try:
        return int(commands().main(words, prog_name="tide", standalone_mode=False) or 0)
    except _UsageError as error:
        return _misused(error)
    except typer.Abort:
        return _told("stopped; nothing more was done", FAILED)
    except TideError as error:
        return _told(str(error), _code_of(error))
    except BrokenPipeError:  # whoever reads has heard enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as the process
        return FAILED


def main() -> None:
    """Run the command line."""
    sys.exit(run())


def _code_of(error: TideError) -> int:
    if isinstance(error, Invalid):
        return USAGE
    return UNREACHABLE if isinstance(error, Unavailable) else FAILED


def _misused(error: Any) -> int:
    """Tell what is wrong with the words, and where to read about them; a group without a command shows its help."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        return USAGE
    path = error.ctx.command_path if error.ctx is not None else "tide"
    message = error.format_message().rstrip(".")
    return _told(f"{message[:1].lower()}{message[1:]} (see `{path} --help`)", USAGE)


def _told(message: str, code: int) -> int:
    typer.echo(f"tide: {' '.join(message.split())}", err=True)
    return code


if __name__ == "__main__":
    main()
