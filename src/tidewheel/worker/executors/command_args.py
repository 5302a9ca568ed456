"""The arguments of a job of the kind `command`, checked."""

import re
from typing import Annotated, Final

import msgspec

from tidewheel.errors import Invalid

ARTIFACT: Final = "{artifact}"
"""Stands in argv for the path of the artifact."""

_ExitCode = Annotated[int, msgspec.Meta(ge=0, le=255)]
_place_of = re.compile(r"(.*?)(?: - at `\$\.?(.*?)`)?").fullmatch
_unknown_field = re.compile(r"Object contains unknown field `(.*)`.*").fullmatch


class CommandArgs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to run, and how to read its end."""

    argv: list[str] = []
    """The program and its arguments, never a text for a shell."""
    env: dict[str, str] = {}
    stdin: str = ""
    cwd: str | None = None
    """Where it runs; its scratch directory unless said otherwise."""
    artifact: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")] | None = None
    """The SHA-256 of an uploaded file, which is the program if argv is empty or names it as `{artifact}`."""
    fatal_exit_codes: tuple[_ExitCode, ...] = ()
    """Codes after which another attempt cannot help."""
    ok_exit_codes: tuple[_ExitCode, ...] = (0,)


def parse_command(args: str) -> CommandArgs:
    """Return the command that a job's arguments ask for, or raise `Invalid` with the field and the reason."""
    try:
        command = msgspec.json.decode(args, type=CommandArgs)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    if not command.argv and command.artifact is None:
        raise Invalid("argv", "must name a program")
    if ARTIFACT in command.argv and command.artifact is None:
        raise Invalid("argv", f"names {ARTIFACT}, and there is no artifact")
    _refuse_nul("argv", command.argv)
    _refuse_nul("cwd", [command.cwd or ""])
    _refuse_nul("env", [*command.env, *command.env.values()])
    if command.argv and not command.argv[0]:
        raise Invalid("argv", "must begin with the name of a program, not with nothing")
    if bad := [name for name in command.env if not name or "=" in name]:
        raise Invalid("env", f"{bad[0]!r} cannot be the name of a variable")
    return command


def _refuse_nul(field: str, texts: list[str]) -> None:
    if any("\0" in text for text in texts):
        raise Invalid(field, "must not contain the NUL character")


def _invalid(message: str) -> Invalid:
    if found := _unknown_field(message):
        return Invalid(found[1], "is no field of a command")
    found = _place_of(message)
    assert found is not None
    return Invalid(found[2] or "args", found[1])
