"""The schema as the migrations leave it, for the snapshot beside them."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import apsw

from tidewheel.store.sqlite.migrate import MIGRATIONS

SNAPSHOT: Final = Path(str(files("tidewheel.store.sqlite"))) / "schema.sql"
_HEAD: Final = "-- The schema after all migrations. Written by a tool: change a migration, not this file.\n"


def schema_text() -> str:
    """Return the statements that make the present schema."""
    connection = apsw.Connection(":memory:")
    for migration in MIGRATIONS:
        connection.execute(migration.sql)
    made = connection.execute("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid").fetchall()
    return _HEAD + "".join(f"\n{sql};\n" for (sql,) in made)


if __name__ == "__main__":
    SNAPSHOT.write_text(schema_text(), "utf-8")
