"""On what kind of disk a folder lies: figures from memory would not be durable ones."""

from pathlib import Path
from typing import Final

import psutil

from bench.measure import say

IN_MEMORY: Final = frozenset({"tmpfs", "ramfs"})


def file_system(folder: Path) -> str:
    """Return the type of the file system, and warn if it forgets everything when the power goes."""
    place = folder.resolve()
    holders = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    kind = max(holders, key=lambda part: len(part.mountpoint)).fstype if holders else "unknown"
    if kind in IN_MEMORY:
        say(f"warning: {folder} lies in memory ({kind}): these are not the figures of a durable store")
    return kind
