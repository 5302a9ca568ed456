"""The place of a run: a scratch directory, with a directory for output files in it, and nothing else at first."""

import os
import stat
from pathlib import Path
from typing import Final

_OUTPUT: Final = "output"
_GIVEN: Final = stat.S_IFDIR | 0o700


def make_place(directory: str) -> None:
    """Make a place for runs."""
    os.mkdir(directory, 0o700)  # noqa: PTH102 - on the hot path, as all below
    os.mkdir(output_directory(directory), 0o700)  # noqa: PTH102


def output_directory(directory: str) -> str:
    """Return where in its place a run leaves files that are to be kept."""
    return f"{directory}/{_OUTPUT}"


def above_place(file: Path, name: str) -> Path:
    """Return the directory that the place of an output file is in: all beneath it was in the hands of the task."""
    return file.parents[len(Path(name).parts) + 1]


def is_as_given(directory: str) -> bool:
    """Tell whether a place was left as it was made, so that it can serve again: making one is dear."""
    output = output_directory(directory)
    try:
        is_empty = os.listdir(directory) == [_OUTPUT] and not os.listdir(output)  # noqa: PTH208
        has_rights = all(os.lstat(path).st_mode == _GIVEN for path in (directory, output))
    except OSError:
        return False
    return is_empty and has_rights and is_alone(directory)


def is_alone(directory: str) -> bool:
    """Tell whether there is nothing beside a place: the tree can write there, too, and the next run could read it."""
    around, _, name = directory.rpartition("/")
    try:
        return all(entry == name for entry in os.listdir(around)) and os.lstat(around).st_mode == _GIVEN  # noqa: PTH208
    except OSError:
        return False
