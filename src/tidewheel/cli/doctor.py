"""`tide doctor`: whether everything is as it should be."""

import asyncio
import enum
import platform
import shutil
import tempfile
from collections.abc import Iterator
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path
from typing import Final

import msgspec
import typer

from tidewheel.blobs import open_blobs
from tidewheel.cli.options import Blobs
from tidewheel.cli.showing import Columns, show_list
from tidewheel.cli.verb import Session, with_session
from tidewheel.clock import SystemClock
from tidewheel.errors import TideError
from tidewheel.store.base import Store
from tidewheel.wiring import blobs_url, database_of, files_of, is_server, without_secrets
from tidewheel.worker.sandbox.layers import report

FAILED: Final = 1
GIB: Final = 2**30
LITTLE_ROOM: Final = 1 * GIB
NO_ROOM: Final = GIB // 10
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
def doctor(session: Session, *, blobs: Blobs = None) -> None:
    """Look whether everything is as it should be, and say what to do where not.

    Looks at the program, the database and its clock, the workers, the isolation of tasks, the place for large things,
    and the room on disks. Exits with 1 if something is bad.
    """
    findings = [_program(), *_store(session), *_blobs(session, blobs), *_layers(), *_rooms(session)]
    show_list(findings, COLUMNS, session.output)
    if any(finding.health is Health.BAD for finding in findings):
        raise typer.Exit(FAILED)


def _program() -> Finding:
    return Finding("program", Health.GOOD, f"tide {version('tidewheel')}, Python {platform.python_version()}")


def _store(session: Session) -> Iterator[Finding]:
    what, place = ("server" if is_server(session.place) else "database"), without_secrets(session.place)
    try:
        if is_server(session.place):
            yield from session.ask(_workers)
            yield Finding(what, Health.GOOD, f"{place} answers")
            return
        number = asyncio.run(_schema(session.database))
        yield Finding(what, Health.GOOD, f"{place} has schema {number}, which this program fits")
        yield from session.ask(_clock)
        yield from session.ask(_workers)
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
    far = abs(offset) > LARGE_OFFSET
    told = f"the database is {abs(offset):.3f} s {'ahead' if offset > 0 else 'behind'}"
    return [
        Finding("clock", Health.WARNING if far else Health.GOOD, told + ("; let NTP set both clocks" if far else ""))
    ]


async def _workers(store: Store) -> list[Finding]:
    if alive := await store.workers(alive=True):
        return [Finding("workers", Health.GOOD, f"{len(alive)} are alive")]
    return [Finding("workers", Health.WARNING, "none is alive: start one by `tide worker`, or all by `tide up`")]


def _blobs(session: Session, chosen: str | None) -> Iterator[Finding]:
    if is_server(session.place):
        return
    url = blobs_url(session.database, chosen)
    try:
        asyncio.run(open_blobs(url).check())
    except TideError as error:
        yield Finding("blobs", Health.BAD, f"{without_secrets(url)}: {error}")
    else:
        yield Finding("blobs", Health.GOOD, f"{without_secrets(url)} can be written and read")


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
