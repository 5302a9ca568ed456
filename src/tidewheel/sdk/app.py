"""The app: tasks and the place where their jobs are kept."""

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack
from uuid import UUID

from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.checks import check_name, shown
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.sdk import builtin
from tidewheel.sdk.dead_letters import DeadLetters
from tidewheel.sdk.declaring import Declaration
from tidewheel.sdk.desk import Desk
from tidewheel.sdk.gates import Gates
from tidewheel.sdk.job import Job
from tidewheel.sdk.limiting import Limits
from tidewheel.sdk.notifications import Notifications
from tidewheel.sdk.schedules import Schedules
from tidewheel.sdk.stored_secrets import StoredSecrets
from tidewheel.sdk.stores import Place
from tidewheel.sdk.task import Signature, checked_calls, one_connection
from tidewheel.sdk.tenants import Tenants
from tidewheel.sdk.transaction import Transaction, arun_transaction
from tidewheel.wiring import anchored, args_bound

T = TypeVar("T")


class App(Desk):
    """Declares tasks and enqueues jobs. Nothing is opened before the first job.

    The database is `url`, or that of the worker which runs the app, or TIDE_DATABASE, or a SQLite file in the current
    folder. An `https://` address of a server
    serves as well, with a `key` (or TIDE_KEY) if it asks for one. Large results are read from `blobs`, or TIDE_BLOBS,
    or a folder beside the SQLite file. The arguments of a job may have `max_args_bytes` as JSON, or
    TIDE_MAX_ARGS_BYTES, or 256 KiB; a server goes by its own setting. Methods whose names begin with `a`
    are for async code; their twins without it are for all other code and wait.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        blobs: str | None = None,
        tenant: str = DEFAULT_TENANT,
        clock: Clock | None = None,
        key: str | None = None,
        max_args_bytes: int | None = None,
    ) -> None:
        bound = None if max_args_bytes is None else args_bound(max_args_bytes)
        place = Place(None if url is None else anchored(url), clock or SystemClock(), blobs, key, bound)
        super().__init__(place, tenant=check_name("tenant", tenant))

    @property
    def task(self) -> Declaration:
        """Declare a task: `@app.task` or `@app.task(queue="mail", retry=3)`."""
        return Declaration(self)

    def job(self, job_id: UUID | str) -> Job[Any]:
        """Return the handle of a job by its id."""
        try:
            return Job(self, job_id if isinstance(job_id, UUID) else UUID(job_id), created=False)
        except (ValueError, AttributeError, TypeError):
            raise Invalid("job_id", f"must be the id of a job, not {shown(job_id)}") from None

    @property
    def limits(self) -> Limits:
        """Limits by key: `app.limits.set("rate:mail.send", rate="5/s")`."""
        return Limits(self)

    @property
    def dead_letters(self) -> DeadLetters:
        """Jobs that ended without success: what they died of, and sending them round again."""
        return DeadLetters(self)

    @property
    def gates(self) -> Gates:
        """Hold, drop or slow jobs: `app.gates.hold(kind="mail", reason="the server is down")`."""
        return Gates(self)

    @property
    def notifications(self) -> Notifications:
        """Tell others: `app.notifications.subscribe("ops", "dead", kind="mail")`."""
        return Notifications(self)

    @property
    def secrets(self) -> StoredSecrets:
        """Texts that jobs may name, stored encrypted: `app.secrets.set("stripe_key", text)`."""
        return StoredSecrets(self)

    @property
    def tenants(self) -> Tenants:
        """Share the workers out among tenants: `app.tenants.set_weight("acme", 3)`."""
        return Tenants(self)

    @property
    def schedules(self) -> Schedules:
        """The schedules: `app.schedules.create(report, cron="0 5 * * *", timezone="Europe/Berlin")`."""
        return Schedules(self)

    # Many at once

    def enqueue_many(self, calls: Sequence[Signature[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Enqueue many jobs at once, all or none: `app.enqueue_many([send.s(1), send.s(2)])`.

        With a connection, given here or by `using` of any call, all of them are part of its transaction.
        """
        each = checked_calls(calls)
        answers = self.submit([call.spec() for call in each], one_connection(each, connection))
        return [Job(self, answer.job_id, created=answer.created) for answer in answers]

    async def aenqueue_many(self, calls: Sequence[Signature[Any]], *, connection: Any = None) -> list[Job[Any]]:
        """Enqueue many jobs at once, all or none: `app.enqueue_many([send.s(1), send.s(2)])`.

        With a connection, given here or by `using` of any call, all of them are part of its transaction.
        """
        each = checked_calls(calls)
        answers = await self.asubmit([call.spec() for call in each], one_connection(each, connection))
        return [Job(self, answer.job_id, created=answer.created) for answer in answers]

    # Jobs without a function

    def command(self, argv: Sequence[str], **options: Unpack[builtin.CommandOptions]) -> Job[Any]:
        """Enqueue a job that runs an executable: `app.command(["echo", "hello"])`. There is no shell in between."""
        return builtin.command(self, argv, options).enqueue()

    async def acommand(self, argv: Sequence[str], **options: Unpack[builtin.CommandOptions]) -> Job[Any]:
        """Enqueue a job that runs an executable: `app.command(["echo", "hello"])`. There is no shell in between."""
        return await builtin.command(self, argv, options).aenqueue()

    def http(self, method: str, url: str, **options: Unpack[builtin.HttpOptions]) -> Job[Any]:
        """Enqueue a job that makes an HTTP call: `app.http("POST", "https://example.com/hook", json={"id": 1})`."""
        return builtin.http(self, method, url, options).enqueue()

    async def ahttp(self, method: str, url: str, **options: Unpack[builtin.HttpOptions]) -> Job[Any]:
        """Enqueue a job that makes an HTTP call: `app.http("POST", "https://example.com/hook", json={"id": 1})`."""
        return await builtin.http(self, method, url, options).aenqueue()

    # One transaction on SQLite

    def transaction(self, work: Callable[[Transaction], T]) -> T:
        """Run statements of yours and enqueue jobs in one transaction of a SQLite store, all or nothing.

        `work` gets a `Transaction` and is run in the thread that does all writing, so it must be short: no other job is
        enqueued or settled meanwhile. What it raises undoes all of it. On PostgreSQL, use your own connection.
        """
        return self.run(self.atransaction(work))

    async def atransaction(self, work: Callable[[Transaction], T]) -> T:
        """Run statements of yours and enqueue jobs in one transaction of a SQLite store, all or nothing.

        `work` gets a `Transaction` and is run in the thread that does all writing, so it must be short: no other job is
        enqueued or settled meanwhile. What it raises undoes all of it. On PostgreSQL, use your own connection.
        """
        return await arun_transaction(self, work)

    # Opening and closing

    def close(self) -> None:
        """Close what was opened; the app may be used again."""
        self.run(self.aclose())

    async def aclose(self) -> None:
        """Close what was opened; the app may be used again."""
        await self.stores.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        """Open a store in this event loop, so that calls need not go through the one in the background."""
        await self.stores.enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stores.exit()
