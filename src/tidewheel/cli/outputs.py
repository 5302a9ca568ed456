"""`tide job outputs`: the files that runs of a job left behind."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from tidewheel.cli.options import Blobs
from tidewheel.cli.picking import JobId, job_id
from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session
from tidewheel.errors import Invalid, NotFound
from tidewheel.wiring import blobs_url

if TYPE_CHECKING:
    from tidewheel.blobs import Blobs as Place

COLUMNS: Final[Columns[Any]] = {
    "run": lambda output: output.token,
    "name": lambda output: output.name,
    "size": lambda output: output.size,
}
To = Annotated[
    str | None,
    typer.Option(
        "--to", help="Fetch the files of the last run that left any into this folder, and print where they are."
    ),
]
Run = Annotated[int | None, typer.Option("--run", min=1, help="Only those of this run, as the list numbers them.")]


def outputs(session: Session, job: JobId, *, to: To = None, run: Run = None, blobs: Blobs = None) -> None:
    """List the files that runs of a job left behind, or fetch them.

    Each appears whole, in place of an earlier one of its name, or not at all.
    """
    found = [output for output in _found(session, job, blobs) if run is None or output.token == run]
    if to is None:
        show_list(found, COLUMNS, session.output)
        return
    if not found:
        raise NotFound("output of job", job)
    folder = _folder(to)
    for output in found:
        if output.token == found[-1].token:
            _fetch(session, output, _place(folder, output.name), blobs)


def _found(session: Session, job: str, blobs: str | None) -> Sequence[Any]:
    """Return the files by run and by name."""
    number = job_id(job)
    if session.on_server:
        with session.client() as tide:
            return tide.outputs(number)
    session.ask(lambda store: store.get(number, tenant=session.tenant))
    return asyncio.run(_kept(session, blobs).list_outputs(number))


def _fetch(session: Session, output: Any, place: Path, blobs: str | None) -> None:
    if session.on_server:
        with session.client() as tide:
            tide.fetch_output(output, place)
    else:
        asyncio.run(_kept(session, blobs).fetch_output(output, place))
    typer.echo(place)


def _kept(session: Session, blobs: str | None) -> "Place":
    from tidewheel.blobs import open_blobs  # noqa: PLC0415 - most commands about jobs do without

    return open_blobs(blobs_url(session.database, blobs))


def _folder(to: str) -> Path:
    try:
        folder = Path(to)
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise Invalid("to", f"{to[:200]!r} is no folder: {getattr(error, 'strerror', None) or error}") from None
    return folder


def _place(folder: Path, name: str) -> Path:
    """Return where to put a file whose name a job chose: below the folder, and nowhere by a link."""
    from tidewheel.blobs.names import check_output_name  # noqa: PLC0415 - as above

    place = folder / check_output_name(name)
    for step in reversed(place.relative_to(folder).parents[:-1]):
        try:
            (folder / step).mkdir(exist_ok=True)
        except OSError as error:
            raise Invalid("to", f"{folder / step} is no folder: {error.strerror}") from None
        if (folder / step).is_symlink():
            raise Invalid("to", f"{folder / step} is a link, and would lead elsewhere")
    if place.is_dir() or (place.exists() and not place.is_file()):
        raise Invalid("to", f"there is a {place} already that is no file")
    return place
