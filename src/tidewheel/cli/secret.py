"""`tide secret`: the secrets that are stored for jobs. No command takes one as an argument, and none shows one."""

import getpass
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from tidewheel.cli.lazy import group
from tidewheel.cli.showing import Columns, Format, show_list, show_value, whoever_types
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import Conflict, Invalid
from tidewheel.model.secret import MAX_SECRET, text_of
from tidewheel.model.stored_secret import StoredSecret

app = group("Store secrets that jobs may name, list and remove them.")

Name = Annotated[str, typer.Argument(help="How jobs name it: up to 64 small letters, digits and _.")]
FromFile = Annotated[str | None, typer.Option("--from-file", help="A file that has the text, in place of stdin.")]
Whose = Annotated[str | None, typer.Option("--tenant", help="Only those of this tenant.  [default: all]")]

COLUMNS: Final[Columns[StoredSecret]] = {
    "name": lambda secret: secret.name,
    "tenant": lambda secret: secret.tenant,
    "version": lambda secret: secret.version,
    "changed": lambda secret: secret.changed_at,
    "by": lambda secret: secret.changed_by,
    "sealed by": lambda secret: secret.sealed_by,
}


@verb(app, "set")
def set_secret(session: Session, name: Name, *, from_file: FromFile = None) -> None:
    """Give a secret its text, which is read from stdin; one line end at its end is left out."""
    text = _given(from_file)
    made = session.ask(lambda store: store.set_secret(name, text, tenant=session.tenant, by=whoever_types()))
    show_list([made], COLUMNS, session.output)


@verb(app, "list")
def list_secrets(session: Session) -> None:
    """List the secrets of a tenant by name, without their texts."""
    show_list(session.ask(lambda store: store.stored_secrets(tenant=session.tenant)), COLUMNS, session.output)


@verb(app, "rm")
def remove_secret(session: Session, name: Name) -> None:
    """Remove a secret; jobs that name it fail, unless their worker has it by other means."""
    session.ask(lambda store: store.remove_secret(name, tenant=session.tenant, by=whoever_types()))
    typer.echo(f"{name} is removed")


@verb(app, "rotate")
def rotate_secrets(session: Session, *, tenant: Whose = None) -> None:
    """Encrypt by the first key what is encrypted by another one; that one is then no longer needed."""
    rotation = session.ask(lambda store: store.rotate_secrets(tenant=tenant, by=whoever_types()))
    if session.output is not Format.TABLE:
        show_value(rotation, session.output)
    else:
        typer.echo(f"encrypted anew, by the first key: {rotation.rotated}")
    if rotation.locked:
        raise Conflict(f"no key opens {rotation.locked} of the secrets, which stay as they are: see `tide secret list`")


def _given(file: str | None) -> str:
    """Return the text of a secret; at a terminal it is asked for, and not shown."""
    if file is None and sys.stdin is not None and sys.stdin.isatty():
        return getpass.getpass("Secret: ")
    try:
        return text_of(_piped() if file is None else _read(file))
    except ValueError as error:
        raise Invalid("value", str(error)) from None


def _piped() -> bytes:
    if sys.stdin is None:
        raise Invalid("value", "comes by the standard input, which is closed; name a file by --from-file")
    return sys.stdin.buffer.read(MAX_SECRET + 1)


def _read(file: str) -> bytes:
    try:
        with Path(file).open("rb") as source:
            return source.read(MAX_SECRET + 1)
    except OSError as error:
        raise Invalid("from-file", f"{file}: {error.strerror}") from None
    except ValueError as error:  # what can be no name of a file
        raise Invalid("from-file", str(error)) from None
