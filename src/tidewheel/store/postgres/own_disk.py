"""How much is free where PostgreSQL has its data, if that is on this machine."""

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Final

from tidewheel.model.alert import DiskFact

_PARENT: Final = 1
"""Which field of `/proc/<pid>/stat`, after the name of the program, is the parent."""


def disks_of(folder: str | None, backend: int) -> list[DiskFact]:
    """Return what is free where the data, and the log of writes, of the server lie that has this process.

    A server may be reached by loopback and be elsewhere, behind a tunnel, while another one has the same folder here.
    So the process that answered must be a child of the one that has the folder. Nothing if that cannot be seen.
    """
    if folder is None:
        return []
    data = Path(folder)
    with suppress(OSError, ValueError, IndexError):
        if _parent_of(backend) == int((data / "postmaster.pid").read_text().split("\n", 1)[0]):
            places = {place.stat().st_dev: place for place in (data / "pg_wal", data)}
            return [DiskFact(str(place), shutil.disk_usage(place).free) for place in places.values()]
    return []


def _parent_of(process: int) -> int:
    status = Path(f"/proc/{process}/stat").read_text()
    return int(status.rpartition(")")[2].split()[_PARENT])
