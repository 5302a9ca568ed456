"""`tide artifact`: files that jobs need, named by their content."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from tidewheel.blobs import open_blobs
from tidewheel.blobs.names import check_digest
from tidewheel.cli.job import Limit
from tidewheel.cli.lazy import group
from tidewheel.cli.options import Blobs
from tidewheel.cli.progress import bytes_moved
from tidewheel.cli.showing import Columns, Format, show_list, show_value
from tidewheel.cli.verb import Session, verb
from tidewheel.errors import Invalid
from tidewheel.model.artifact import ArtifactSpec, check_artifact
from tidewheel.store.base import Store
from tidewheel.wiring import blobs_url

app = group("Bring files that jobs need, list them and fetch them.")

Digest = Annotated[str, typer.Argument(metavar="SHA256", help="What `put` printed: the SHA-256 of the file.")]
To = Annotated[str | None, typer.Option("--to", help="Where to write it.  [default: its name, in this folder]")]

COLUMNS: Final[Columns[Any]] = {
    "digest": lambda artifact: artifact.digest,
    "size": lambda artifact: artifact.size,
    "name": lambda artifact: artifact.name,
    "created": lambda artifact: artifact.created_at,
    "used": lambda artifact: artifact.used_at,
}


@verb(app)
def put(
    session: Session,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file to bring.")],
    *,
    name: Annotated[str | None, typer.Option("--name", help="A name for people.  [default: that of the file]")] = None,
    blobs: Blobs = None,
) -> None:
    """Bring a file, and print its SHA-256, by which jobs name it. One that is there is not sent again."""
    if not os.path.isfile(file):  # noqa: PTH113 - of a path, it raises for what can be no name
        raise Invalid("file", f"there is no file {file[:200]}")
    path = Path(file)
    made: Any
    if session.on_server:
        with session.client() as tide, bytes_moved(path.stat().st_size) as moved:
            made = tide.put_artifact(path, name=name, moved=moved)
    else:
        made = _put(session, path, path.name if name is None else name, blobs)
    if session.output is Format.TABLE:
        typer.echo(made.digest)
    else:
        show_value(made, session.output)


@verb(app, "list")
def list_artifacts(session: Session, *, limit: Limit = 50) -> None:
    """List files, newest first."""
    found: Sequence[Any]
    if session.on_server:
        with session.client() as tide:
            found = list(islice(tide.artifacts(), limit))
    else:
        found = session.ask(lambda store: store.artifacts(tenant=session.tenant, limit=limit))
    show_list(found, COLUMNS, session.output)


@verb(app)
def get(session: Session, digest: Digest, *, to: To = None, blobs: Blobs = None) -> None:
    """Fetch a file, and print where it is. It appears whole and right, or not at all."""
    check_digest(digest)
    chosen = None if to is None else _chosen(to)
    if session.on_server:
        with session.client() as tide:
            there = tide.artifact(digest)
            place = chosen or _place(there.name, digest)
            with bytes_moved(there.size) as moved:
                tide.fetch_artifact(digest, place, moved=moved)
    else:
        known = session.ask(lambda store: store.get_artifact(digest, tenant=session.tenant))
        place = chosen or _place(known.name, digest)
        kept = open_blobs(blobs_url(session.database, blobs))
        with bytes_moved(known.size) as moved:
            asyncio.run(kept.fetch(digest, place, replace=to is not None, moved=moved))
    typer.echo(place)


def _put(session: Session, file: Path, name: str, blobs: str | None) -> Any:
    place = open_blobs(blobs_url(session.database, blobs))
    size = file.stat().st_size

    async def bring(store: Store) -> Any:
        digest = await place.put_file(file, moved)
        spec = ArtifactSpec(tenant=session.tenant, digest=digest, size=size, name=name)
        made = await store.add_artifact(check_artifact(spec))
        # Until it was noted, an earlier one with this digest may have been on its way out.
        if not await place.has(digest):
            await place.put_file(file)
        return made

    with bytes_moved(size) as moved:
        return session.ask(bring)


def _chosen(to: str) -> Path:
    """Return the file that someone wants to have written. Raises Invalid if that cannot be."""
    place = Path(to)
    try:
        if not to or (place.exists() and not place.is_file()):  # a device would become a file
            raise Invalid("to", f"must name a file, not {to!r}")
        if not place.parent.is_dir():
            raise Invalid("to", f"there is no folder {place.parent}")
        with suppress(FileNotFoundError):
            place.lstat()
    except (OSError, ValueError) as error:
        raise Invalid("to", f"{to[:200]!r} cannot be written: {getattr(error, 'strerror', error)}") from None
    if not os.access(place.parent, os.W_OK):
        raise Invalid("to", f"nothing may be written to {place.parent}")
    return place


def _place(name: str, digest: str) -> Path:
    """Return where to put a file whose name someone else chose: here, and not over another one."""
    place = Path(Path(name).name or digest)
    if place.exists():
        raise Invalid("to", f"there is a {place} here already: say by --to where to write it")
    return place
