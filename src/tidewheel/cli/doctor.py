"""`tide doctor`: whether everything is as it should be."""

import asyncio
import enum
import os
import platform
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import msgspec
import typer

from tidewheel.blobs import open_blobs
from tidewheel.cli.options import Blobs
from tidewheel.cli.settings_check import complaints
from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, with_session
from tidewheel.clock import SystemClock
from tidewheel.errors import Forbidden, TideError
from tidewheel.settings import find_file, read_file, resolve, unknown_variables
from tidewheel.store.base import Store
from tidewheel.wiring import blobs_url, database_of, files_of, is_server, without_secrets
from tidewheel.worker.sandbox.layers import report

FAILED: Final = 1
GIB: Final = 2**30
LITTLE_ROOM: Final = 1 * GIB
NO_ROOM: Final = GIB // 10
_PROBE: Final = b"brought by `tide doctor`, to see whether files are kept here\n"
LARGE_OFFSET: Final = 1.0
"""Seconds by which a clock may be wrong before people wonder about the times they see."""
_NEEDED: Final = ("pid-namespace", "network-namespace", "landlock")
"""Layers without which tasks are confined less than they could be."""


class Health(enum.StrEnum):
    """How something stands."""

    GOOD = "good"
    WARNING = "warning"
    BAD = "bad"


class Finding(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    what: str
    health: Health
    found: str


COLUMNS: Final[Columns[Finding]] = {
    "what": lambda finding: finding.what,
    "health": lambda finding: finding.health.value,
    "found": lambda finding: finding.found,
}


@with_session
def doctor(session: Session, context: typer.Context, *, blobs: Blobs = None) -> None:
    """Look whether everything is as it should be, and say what to do where not.

    Looks at the program, the settings, the database or the server and its clock, the workers, what alerts can see, the
    isolation of tasks, the place for large things, and the room on disks. Exits with 1 if something is bad.
    """
    settings = list(_settings(context.find_root()))
    findings = [_program(), *settings, *_store(session), *_blobs(session, blobs), *_layers(), *_rooms(session)]
    show_list(findings, COLUMNS, session.output)
    if any(finding.health is Health.BAD for finding in findings):
        raise typer.Exit(FAILED)


def _program() -> Finding:
    return Finding("program", Health.GOOD, f"tide {version('tidewheel')}, Python {platform.python_version()}")


def _settings(root: Any) -> Iterator[Finding]:
    what = "settings"
    if isinstance(root.obj, TideError):
        yield Finding(what, Health.BAD, str(root.obj))
        return
    file = find_file(root.params.get("config_file"), os.environ, Path.cwd())
    values = resolve({} if file is None else read_file(file), file, os.environ)
    wrong = complaints(values)
    yield from (Finding(what, Health.BAD, complaint) for complaint in wrong)
    for name in unknown_variables(os.environ):
        yield Finding(what, Health.WARNING, f"{name} is no setting, and is not heeded")
    if not wrong:
        said = sum(value.source != "default" for value in values)
        where = "no file" if file is None else str(file)
        yield Finding(what, Health.GOOD, f"{said} are not as by default ({where}); `tide config show` shows them")


def _store(session: Session) -> Iterator[Finding]:
    what, place = ("server" if is_server(session.place) else "database"), without_secrets(session.place)
    try:
        if is_server(session.place):
            workers = session.ask(_workers)
            yield Finding(what, Health.GOOD, f"{place} answers")
            yield from _server_clock(session.place)
            yield from workers
            return
        number = asyncio.run(_schema(session.database))
        yield Finding(what, Health.GOOD, f"{place} has schema {number}, which this program fits")
        yield from session.ask(_clock)
        yield from session.ask(_workers)
        yield from session.ask(_alerts)
    except TideError as error:
        yield Finding(what, Health.BAD, f"{place}: {error}")


async def _schema(url: str) -> int:
    return await database_of(url).check()


async def _clock(store: Store) -> list[Finding]:
    clock = SystemClock()
    before = clock.now()
    then = (await store.look_ahead(0, timedelta(0), limit=1)).now
    # The store read its clock at some moment in between.
    offset = (then - before - (clock.now() - before) / 2).total_seconds()
    return [_judged("database", offset, LARGE_OFFSET)]


def _server_clock(url: str) -> Iterator[Finding]:
    """Compare clocks by what a server says of each answer: when it gave it, to the second."""
    import httpx  # noqa: PLC0415 - only for this

    clock = SystemClock()
    before = clock.now()
    try:
        said = parsedate_to_datetime(httpx.get(f"{url.rstrip('/')}/livez").headers["date"])
    except (httpx.HTTPError, KeyError, ValueError):
        yield Finding("clock", Health.WARNING, "the server does not say what time it is")
        return
    half = (clock.now() - before) / 2
    offset = (said + timedelta(seconds=0.5) - before - half).total_seconds()
    yield _judged("server", offset, LARGE_OFFSET + 1)


def _judged(whose: str, offset: float, bound: float) -> Finding:
    far = abs(offset) > bound
    told = f"that of the {whose} is {abs(offset):.3f} s {'ahead' if offset > 0 else 'behind'}"
    return Finding("clock", Health.WARNING if far else Health.GOOD, told + ("; let NTP set both" if far else ""))


async def _workers(store: Store) -> list[Finding]:
    if alive := await store.workers(alive=True):
        return [Finding("workers", Health.GOOD, f"{len(alive)} are alive")]
    return [Finding("workers", Health.WARNING, "none is alive: start one by `tide worker`, or all by `tide up`")]


async def _alerts(store: Store) -> list[Finding]:
    if gaps := await store.alert_gaps():
        return [Finding("alerts", Health.WARNING, gap) for gap in gaps]
    return [Finding("alerts", Health.GOOD, "all that the rules ask of the database can be seen")]


def _blobs(session: Session, chosen: str | None) -> Iterator[Finding]:
    if is_server(session.place):
        yield from _blobs_of_server(session)
        return
    url = blobs_url(session.database, chosen)
    try:
        asyncio.run(open_blobs(url).check())
    except TideError as error:
        yield Finding("blobs", Health.BAD, f"{without_secrets(url)}: {error}")
    else:
        yield Finding("blobs", Health.GOOD, f"{without_secrets(url)} can be written and read")


def _blobs_of_server(session: Session) -> Iterator[Finding]:
    """Bring a file to a server, the same one each time, and fetch it again."""
    place = without_secrets(session.place)
    try:
        with session.client() as tide, tempfile.TemporaryDirectory() as folder:
            sent, fetched = Path(folder, "sent"), Path(folder, "fetched")
            sent.write_bytes(_PROBE)
            tide.fetch_artifact(tide.put_artifact(sent, name="tide-doctor").digest, fetched)
            same = fetched.read_bytes() == _PROBE
    except Forbidden as error:
        yield Finding("blobs", Health.WARNING, f"{place} was not asked to keep a file: {error}")
    except TideError as error:
        yield Finding("blobs", Health.BAD, f"{place}: {error}")
    else:
        told = "keeps files and gives them back" if same else "gave back another file than it was given"
        yield Finding("blobs", Health.GOOD if same else Health.BAD, f"{place} {told}")


def _layers() -> Iterator[Finding]:
    for layer in report():
        missing = not layer.active and layer.name in _NEEDED
        word = "" if layer.active else "off: "
        yield Finding(f"isolation: {layer.name}", Health.WARNING if missing else Health.GOOD, f"{word}{layer.why}")


def _rooms(session: Session) -> Iterator[Finding]:
    files = () if is_server(session.place) else files_of(session.database)
    folders = {Path(file).parent for file in files} | {Path(tempfile.gettempdir())}
    for folder in sorted(folder for folder in folders if folder.is_dir()):
        free = shutil.disk_usage(folder).free
        health = Health.BAD if free < NO_ROOM else Health.WARNING if free < LITTLE_ROOM else Health.GOOD
        advice = "" if health is Health.GOOD else ": make room"
        yield Finding(f"disk: {folder}", health, f"{free / GIB:.1f} GiB free{advice}")
