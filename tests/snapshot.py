"""Writes the committed schema snapshots anew: `make schema`, or `python -m tests.snapshot`."""

import asyncio

from harness.postgres import FAST, PostgresServer
from tests.postgres_store import snapshot as postgres
from tests.sqlite import snapshot as sqlite
from tidewheel.store.postgres import migrate


def main() -> None:
    """Migrate an empty database of each kind and write down what came out."""
    with PostgresServer(FAST) as server:
        asyncio.run(migrate(server.url()))
        postgres.SNAPSHOT.write_text(postgres.schema_text(server.url()), encoding="utf-8")
    sqlite.SNAPSHOT.write_text(sqlite.schema_text(), encoding="utf-8")
    for path in (postgres.SNAPSHOT, sqlite.SNAPSHOT):
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
