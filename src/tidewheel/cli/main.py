"""The root of the command line: which commands there are, and what becomes of errors."""

import io
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup
from typer.main import get_command

from tidewheel.cli.lazy import Entry, add_lazily, loaded
from tidewheel.errors import Invalid, TideError, Unauthenticated, Unavailable
from tidewheel.settings import (
    CONFIG_VARIABLE,
    SETTINGS,
    check_variables,
    find_file,
    read_file,
    read_secret_files,
    variables_of_profile,
)

FAILED: Final = 1
USAGE: Final = 2
UNREACHABLE: Final = 3

_UsageError: Final[Any] = typer.BadParameter.__bases__[0]
"""What all wrong words raise; it has no public name."""

COMMANDS: Final = {
    "up": Entry("up:up", "Start Tidewheel: server, worker and chores, all on this machine."),
    "demo": Entry("demo:demo", "Fill a store with a living example and run it, to see everything move."),
    "submit": Entry("submit:submit", "Hand over a command or a task to be run; print the id of the job."),
    "job": Entry("job:app", "Look at jobs and steer them."),
    "logs": Entry("logs:logs", "Search what runs wrote, the oldest of what was found first; or follow it."),
    "schedule": Entry("schedule:app", "Make schedules, look at them and steer them."),
    "queue": Entry("queue:app", "See what waits in which queue, and bound how much may."),
    "gate": Entry("gate:app", "Hold, drop or slow all jobs of a kind, a queue or a tenant."),
    "limit": Entry("limit:app", "Bound how many jobs that share a key run at once, start in a time, or wait."),
    "dlq": Entry("dlq:app", "Look after dead letters: jobs that ended without success."),
    "notify": Entry("notify:app", "Tell people and programs what becomes of jobs."),
    "alert": Entry("alert:app", "See what is wrong, and say who looks after it."),
    "artifact": Entry("artifact:app", "Bring files that jobs need, list them and fetch them."),
    "workers": Entry("workers:workers", "List the workers that are alive, newest first."),
    "import": Entry("importing:app", "Make schedules of what another scheduler runs."),
    "worker": Entry("worker:worker", "Run jobs until SIGTERM or Ctrl-C."),
    "server": Entry("server:server", "Answer HTTP requests until SIGTERM or Ctrl-C."),
    "keeper": Entry(
        "keeper:app", "Do the chores until SIGTERM or Ctrl-C; every server and worker does its share of them, too."
    ),
    "db": Entry("db:app", "Look after the database: its schema, and moving to another one."),
    "config": Entry("config:app", "Look at the settings."),
    "doctor": Entry("doctor:doctor", "Look whether everything is as it should be, and say what to do where not."),
    "key": Entry("key:app", "Give out, list and revoke keys."),
    "secret": Entry("secret:app", "Store secrets that jobs may name, list and remove them."),
    "tenant": Entry("tenant:app", "List tenants, and give them shares and bounds."),
    "audit": Entry("audit:audit", "Show who changed what, newest first."),
}

app = typer.Typer(name="tide", no_args_is_help=True, rich_markup_mode=None, pretty_exceptions_enable=False)


def _show_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - takes longer to load than some commands do

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
    profile: Annotated[
        str | None,
        typer.Option("--profile", envvar="TIDE_PROFILE", help="A place to talk to, as the file of settings names it."),
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and leave.")
    ] = False,
) -> None:
    """Run jobs on time."""
    del show_version
    try:
        said = _settle(config_file, profile)
    except Invalid as error:
        if context.invoked_subcommand != "doctor":
            raise
        context.obj = error  # which says so together with all else
        return
    if said:
        context.default_map = _defaults_of(context, said)


def _settle(config_file: str | None, profile: str | None) -> dict[str, Any]:
    """Return what the file of settings says; what a profile, a secret file or no option stands for is a variable."""
    os.environ.update(read_secret_files(os.environ))
    check_variables(os.environ)
    file = find_file(config_file, os.environ, Path.cwd())
    said = {} if file is None else read_file(file)
    for setting in SETTINGS.values():
        if not setting.typed and setting.name in said:
            os.environ.setdefault(setting.variable, said[setting.name])
    if profile is not None:
        os.environ.update(variables_of_profile(said, profile, os.environ))
    return said


def _defaults_of(context: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a file says, for the command that was called."""
    called = context.invoked_subcommand
    command = context.command.commands.get(called)
    return {} if command is None else {called: _defaults_in(called, loaded(command), said)}


def _defaults_in(name: str, command: Any, said: Mapping[str, Any]) -> dict[str, Any]:
    """Return those settings that a command has, or for each command of a group those that it has."""
    if hasattr(command, "commands"):
        return {part: _defaults_in(f"{name} {part}", each, said) for part, each in command.commands.items()}
    own = {parameter.name for parameter in command.params}
    return {
        key: value
        for key, value in said.items()
        if key in own and (SETTINGS[key].commands is None or name in (SETTINGS[key].commands or ()))
    }


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
    except Unauthenticated as error:
        return _told(f"{error}: put one into TIDE_KEY (`tide key create` makes them)", FAILED)
    except TideError as error:
        return _told(str(error), _code_of(error))
    except BrokenPipeError:  # whoever reads has heard enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115, PTH123 - lives as long as the process
        return FAILED


def main() -> None:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a name that is no text must not be the end of whoever prints it
            stream.reconfigure(errors="backslashreplace")
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
