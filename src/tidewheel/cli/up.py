"""`tide up`: everything that is needed on one machine, in one command."""

import msgspec
import typer

from tidewheel.cli.options import Blobs, Database, SecretsFolder
from tidewheel.cli.worker import App, KeepFor, MaxAge, Slots, plan_of, run_worker
from tidewheel.model.retention import parse_upkeep
from tidewheel.wiring import DEFAULT_URL, database_of, without_secrets

DRAIN = 10.0
"""Seconds that running jobs get to end by themselves after Ctrl-C."""


def up(
    *,
    database: Database = DEFAULT_URL,
    app: App = None,
    blobs: Blobs = None,
    slots: Slots = None,
    secrets: SecretsFolder = None,
    keep: KeepFor = [],  # noqa: B006 - typer copies it
    max_age: MaxAge = "14d",
) -> None:
    """Start Tidewheel: bring the database up to date, run its jobs and keep it, until Ctrl-C.

    Runs commands (`tide submit -- echo hello`), HTTP calls and the tasks of an app; takes back the runs of workers that
    died, lets start deadlines expire, and removes finished jobs: successes after 7 days, others after 30, unless told
    otherwise.
    """

    async def migrate() -> None:
        await database_of(database).migrate()
        typer.echo(f"Tidewheel keeps {without_secrets(database)}. Try: tide submit --wait -- echo hello")

    plan = plan_of(database, app=app, blobs=blobs, slots=slots, secrets=secrets)
    run_worker(msgspec.structs.replace(plan, upkeep=parse_upkeep(keep, max_age)), DRAIN, migrate)
