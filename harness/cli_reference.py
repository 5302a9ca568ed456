"""Writes `docs/reference/cli.md` from the commands themselves."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from typer import Context

from tidewheel.cli.lazy import LazyCommand
from tidewheel.cli.main import commands

PAGE = Path(__file__).parents[1] / "docs/reference/cli.md"
HEAD = """# The command line

Written by a tool from the commands themselves (`make reference`): change those, not this page. `tide COMMAND --help`
says the same, and `tide --install-completion` lets your shell complete commands and options.

**Where.** Commands talk to a server if one is named (`--url`, `TIDE_URL`; its key is in `TIDE_KEY`), and else straight
to the database (`--database`, `TIDE_DATABASE`; a file `tidewheel.db` in the current folder if there is none). What a
server does not offer is told in one line. Places that you talk to often have names in the file of settings
([settings](settings.md)), and `tide --profile production job list` talks to one:

```toml
# tidewheel.toml
[profile.production]
url = "https://tide.example.com"
key = "tide_..."
tenant = "acme"
```

**Output.** `-o table` is for people: with colours on a terminal unless `NO_COLOR` is set, plain columns in a pipe.
`-o json` and `-o yaml` are for programs. Notes and errors go to stderr, an error in one line.

**Exit codes.** 0: done. 1: it could not be done, or the job that was waited for failed. 2: the words were wrong, and
nothing was done. 3: the server or the database cannot be reached. 130: stopped by Ctrl-C.

**Care.** What touches many things says how many, and asks; where nobody can answer, `--yes` must be given.
"""


SHARED = ("database", "url", "tenant", "output")
"""What all commands that talk to Tidewheel have; these are told once."""


def page() -> str:
    """Return the text of the page."""
    root = commands()
    workers = root.commands["workers"]
    assert isinstance(workers, LazyCommand)
    shared = _table(workers.load(), lambda name: name in SHARED)
    return "\n".join(
        [
            HEAD,
            f"**Options of all commands that have `--output`**, which are not repeated below:\n\n{shared}",
            *_sections(),
        ]
    )


def _sections() -> Iterator[str]:
    for name, lazy in commands().commands.items():
        assert isinstance(lazy, LazyCommand)
        command = lazy.load()
        yield f"## tide {name}\n\n{_about(command)}\n"
        inner = getattr(command, "commands", None)
        if inner is None:
            yield _options(command, f"tide {name}")
            continue
        for verb, each in inner.items():
            yield f"### tide {name} {verb}\n\n{_about(each)}\n"
            yield _options(each, f"tide {name} {verb}")


def _about(command: Any) -> str:
    paragraphs = (command.help or "").split("\n\n")
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)


def _options(command: Any, path: str) -> str:
    usage = " ".join([path, *command.collect_usage_pieces(Context(command, info_name=path))])
    talks = any(parameter.name == "output" for parameter in command.params)
    told = SHARED if talks else ()
    # A tenant without a default is one that the command asks for itself, in another sense.
    own = {parameter.name for parameter in command.params if parameter.name == "tenant" and parameter.default is None}
    table = _table(command, lambda name: name not in told or name in own)
    return f"```console\n{usage}\n```\n\n{table}"


def _table(command: Any, wanted: Callable[[str], bool]) -> str:
    """Return what is said of the parameters that are wanted, as a table; nothing if there are none."""
    context: Any = Context(command)
    rows = []
    for parameter in command.params:
        record = parameter.get_help_record(context)
        if record is not None and parameter.name != "help" and wanted(parameter.name):
            words, about = (" ".join(part.split()).replace("|", r"\|") for part in record)
            rows.append(f"| `{words}` | {about} |")
    return "\n".join(["| | |", "|---|---|", *rows, ""]) if rows else ""


if __name__ == "__main__":
    PAGE.write_text(page())
