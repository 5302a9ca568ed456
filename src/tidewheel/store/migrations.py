"""Numbered migrations: SQL files `0001_expand_….sql`, applied in order, each in one transaction with its number."""

from importlib.resources import files
from typing import Final, NamedTuple

from tidewheel.errors import StoreMismatch

COPYING: Final = 1_000_000
"""Stands for the number of the schema while a copy into the store is under way."""


class Migration(NamedTuple):
    """One step of the schema."""

    number: int
    name: str
    sql: str


def read(package: str) -> list[Migration]:
    """Return the migrations in the `migrations` folder of a package, in order and without gaps."""
    found = []
    for entry in sorted((files(package) / "migrations").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".sql"):
            number, _, rest = entry.name.partition("_")
            found.append(Migration(int(number), rest.removesuffix(".sql"), entry.read_text("utf-8")))
    if [migration.number for migration in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"the migrations of {package} are not numbered without gaps")
    return found


def check_version(found: int, known: int) -> None:
    """Refuse a store that this program does not fit, and say what to do."""
    if found == COPYING:
        raise StoreMismatch("a copy into this store was begun and is not complete: go on by `tide db copy`")
    if found > known:
        raise StoreMismatch(
            f"the store has schema {found}, but this program knows only {known}: "
            "upgrade Tidewheel on this host to the version that made the store"
        )
    if found < known:
        raise StoreMismatch(f"the store has schema {found}, but this program needs {known}: run `tide db upgrade` once")
