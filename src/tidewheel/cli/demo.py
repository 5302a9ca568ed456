"""`tide demo`: a living example, so that a newcomer sees everything move."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from tidewheel.cli.serving import Port, reserved
from tidewheel.cli.worker import plan_of, run_worker
from tidewheel.errors import Invalid, StoreMismatch
from tidewheel.sdk.flow import chain
from tidewheel.sdk.stores import Place
from tidewheel.server.serving import DEFAULT_PORT
from tidewheel.store.base import JobFilter
from tidewheel.wiring import database_of, files_of, open_store, without_secrets
from tidewheel.worker.link import ServerSetup

OWN: Final = "sqlite:///tidewheel-demo.db"
Database = Annotated[
    str, typer.Option("--database", help="Another store for the example alone; TIDE_DATABASE does not count here.")
]
APP: Final = "tidewheel.cli.demo_tasks:app"
QUEUES: Final = ("default", "orders", "images", "mail")
ORDERS: Final = 12
PICTURES: Final = 20
LETTERS: Final = 8
REFUNDS: Final = 3
FIRST: Final = "shop.charge"
"""The kind of which an example always has a job."""
HELD: Final = "shop.newsletter"
DRAIN: Final = 5.0


def demo(
    *,
    own_database: Database = OWN,
    port: Port = DEFAULT_PORT,
    run: Annotated[
        bool, typer.Option("--run/--no-run", help="Whether to run it, too, until Ctrl-C; or only fill the store.")
    ] = True,
) -> None:
    """Fill a store with a living example and run it, to see everything move.

    A shop: orders that go through a chain of three jobs, pictures of which two are made at once, a newsletter behind a
    closed gate, refunds that die, and schedules that fire every few seconds and every night. It has a file of its own,
    and refuses a store that holds anything else.
    """
    database = own_database
    words = f"--database {database}"

    async def prepare() -> None:
        if database != OWN:
            await _check_free(database)
        await database_of(database).migrate()
        await fill(database)
        typer.echo(f"A shop is open in {without_secrets(database)}. In another terminal, try:")
        for line in ("tide job list", "tide schedule list", "tide dlq groups", "tide gate open --kind shop.newsletter"):
            typer.echo(f"  {line} {words}")

    if not run:
        asyncio.run(prepare())
        typer.echo(f"Run it by: tide worker --app {APP} {' '.join(f'--queue {queue}' for queue in QUEUES)} {words}")
        return
    with reserved(ServerSetup(host="127.0.0.1", port=port)) as serve:
        plan = plan_of(database, app=APP, blobs=None, slots=None)
        plan = msgspec.structs.replace(plan, servers=1, serve=serve, queues=QUEUES)
        run_worker(plan, DRAIN, prepare)


async def _check_free(database: str) -> None:
    """Refuse a store that has jobs or schedules of others: the example would mix with them, and run them."""
    if _is_file_to_come(database):
        return
    try:
        await database_of(database).check()
    except StoreMismatch:  # there is nothing yet, or nothing that could be filled
        return
    store = await open_store(database)
    try:
        others = (await store.find(JobFilter(), limit=1)).jobs or await store.schedules(limit=1)
        if others and not (await store.find(JobFilter(kind=FIRST), limit=1)).jobs:
            where = without_secrets(database)
            raise Invalid("database", f"{where} holds other jobs than the example's: name one that does not")
    finally:
        await store.close()


def _is_file_to_come(database: str) -> bool:
    return any(not Path(file).exists() for file in files_of(database)[:1])


async def fill(database: str) -> None:
    """Put the example into a store; a second time it adds orders."""
    from tidewheel.cli import demo_tasks as shop  # noqa: PLC0415 - declares tasks

    shop.app.stores.place = Place(database)
    async with shop.app as tide:
        if all(gate.kind != HELD for gate in await tide.gates.alist()):
            await tide.gates.ahold(kind=HELD, reason="the mail server is down", author="demo")
        for order in range(ORDERS):
            await chain(shop.charge.si(order), shop.pack.s(), shop.ship.s()).aenqueue()
        await tide.aenqueue_many([shop.thumbnail.si(f"picture-{number}.png") for number in range(PICTURES)])
        await tide.aenqueue_many([shop.newsletter.si(f"reader-{number}@example.com") for number in range(LETTERS)])
        await tide.aenqueue_many([shop.refund.si(number) for number in range(REFUNDS)])
        await tide.acommand(["uname", "-a"], queue="orders", name="any executable")
        await shop.charge.using(delay=timedelta(hours=1), priority="low").aenqueue(order=1000)
