r"""Reads crontabs: the file of a user, what `crontab -l` prints, or a file of the system with a column for the user.

A command becomes a job for the shell, as cron does it: with the variables that are set above its line, and with what
follows an unescaped `%` as its input.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from tidewheel.cli.foreign.plan import Planned, name_of, unique_names
from tidewheel.errors import Invalid
from tidewheel.tasks.definition import COMMAND
from tidewheel.triggers import parse_rule
from tidewheel.triggers.bounds import EPOCH

FIELDS: Final = 5
_variable = re.compile(r"\s*([A-Za-z_]\w*)\s*=\s*(.*?)\s*").fullmatch
_says_something = re.compile(r"[A-Za-z./~][^=]*").fullmatch
_percent = re.compile(r"(?<!\\)%")
_NOT_PASSED: Final = frozenset(("MAILTO", "MAILFROM", "SHELL", "CRON_TZ", "TZ", "LOGNAME", "USER", "RANDOM_DELAY"))
_WORDS_BEFORE: Final = frozenset(("cd", "exec", "nice", "ionice", "flock", "env", "sudo", "timeout", "test", "["))
"""Words that say little about what a line is for."""


def read_crontab(text: str, *, timezone: str, system: bool = False) -> list[Planned]:
    """Return what a crontab runs; raise Invalid with the first line that is none of a crontab."""
    found = unique_names(_entries(text, timezone, system=system))
    if not found:
        raise Invalid("file", "has no line of a crontab, such as `0 5 * * * command`")
    return found


def _entries(text: str, timezone: str, *, system: bool) -> Iterator[Planned]:
    variables: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), 1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        if "\0" in line:
            raise Invalid("file", f"line {number} is no text: this is no crontab")
        if (variable := _variable(line)) is not None:
            variables[variable[1]] = _unquoted(variable[2])
        else:
            zone = variables.get("CRON_TZ") or variables.get("TZ") or timezone
            yield _entry(bare, f"line {number}", zone, variables, system=system)


def _entry(line: str, source: str, zone: str, variables: Mapping[str, str], *, system: bool) -> Planned:
    number = 1 if line.startswith("@") else FIELDS
    *fields, rest = line.split(None, number) if len(line.split(None, number)) > number else [line, ""]
    expression = " ".join(fields)
    if system and rest:
        rest = rest.partition(" ")[2].strip() or ""
    if not rest:
        raise Invalid("file", f"{source} is none of a crontab: {line[:60]!r} should be five fields and a command")
    command, stdin = _split_input(rest)
    name = name_of(_program(command))
    if expression == "@reboot":
        note = "@reboot has no counterpart here: start it by your service manager"
        return Planned(source=source, name=name, kind=COMMAND, note=note)
    _check(expression, source, zone)
    passed = {key: value for key, value in variables.items() if key not in _NOT_PASSED}
    args = {"argv": [variables.get("SHELL", "/bin/sh"), "-c", command]}
    extras = {"env": passed, "stdin": stdin}
    return Planned(
        source=source,
        name=name,
        kind=COMMAND,
        args={**args, **{key: value for key, value in extras.items() if value}},
        when={"cron": expression, "timezone": zone},
    )


def _check(expression: str, source: str, zone: str) -> None:
    try:
        parse_rule(expression, zone, EPOCH)
    except Invalid as error:
        raise Invalid("file", f"{source} is none of a crontab: {error.why}") from None


def _split_input(text: str) -> tuple[str, str]:
    """Return a command and its input, which an unescaped percent sign sets off; further ones are ends of lines."""
    command, *lines = (part.replace(r"\%", "%") for part in _percent.split(text))
    return command.strip(), "".join(f"{line}\n" for line in lines)


def _program(command: str) -> str:
    """Return the word of a command that says most about it."""
    last = command.rsplit("&&", maxsplit=1)[-1].rsplit(";", maxsplit=1)[-1].split()
    words = [word for word in last if _says_something(word) and word not in _WORDS_BEFORE]
    return (words or command.split())[0].rpartition("/")[2]


def _unquoted(text: str) -> str:
    for quote in ("'", '"'):
        if len(text) > 1 and text[0] == text[-1] == quote:
            return text[1:-1]
    return text
