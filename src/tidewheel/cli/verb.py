"""What all commands that talk to Tidewheel have in common: where it is, whose jobs are meant, and how to print."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
import typer

from tidewheel.cli.options import Database
from tidewheel.cli.showing import Format, Output
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.store.base import Store
from tidewheel.wiring import DEFAULT_URL, is_server, open_store

if TYPE_CHECKING:
    from tidewheel.client import Client
    from tidewheel.sdk.app import App

T = TypeVar("T")

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="TIDE_URL",
        help="A server to talk to, in place of the database, with its key in TIDE_KEY: https://host.",
    ),
]
Tenant = Annotated[str, typer.Option("--tenant", envvar="TIDE_TENANT", help="Whose jobs are meant.")]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a command talks to, and how it answers."""

    database: Database = DEFAULT_URL
    url: Url = None
    tenant: Tenant = DEFAULT_TENANT
    output: Output = Format.TABLE

    @property
    def place(self) -> str:
        """The server if one was named, or else the database."""
        if self.url is not None and not is_server(self.url):
            raise Invalid("url", f"must be the http:// or https:// address of a server, not {self.url[:60]!r}")
        return self.url or self.database

    @property
    def on_server(self) -> bool:
        """Whether it talks to a server."""
        return is_server(self.place)

    def client(self) -> "Client":
        """Return a client of the server that was named."""
        from tidewheel.client import Client  # noqa: PLC0415 - most commands do without

        return Client(self.place, tenant=self.tenant)

    def ask(self, work: Callable[[Store], Awaitable[T]]) -> T:
        """Open the store for one piece of work."""

        async def run() -> T:
            store = await self._open()
            try:
                return await work(store)
            finally:
                await store.close()

        return asyncio.run(run())

    async def _open(self) -> Store:
        try:
            return await open_store(self.place)
        except Unavailable as error:
            if not is_server(self.place):
                raise
            why = f"{self.place} cannot be reached ({error}): is the server running, and is that its address?"
            raise Unavailable(why) from error

    def app(self) -> "App":
        """Return an app without tasks that keeps its jobs there."""
        from tidewheel.sdk.app import App  # noqa: PLC0415 - most commands do without

        return App(self.place, tenant=self.tenant)


_SHARED: Final = inspect.signature(Session).parameters


def verb(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command whose first parameter is a `Session`; the options for it are added to its own."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        return app.command(name)(with_session(function))

    return add


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that makes a `Session` of the options that all share, and calls the function with it.

    An option that the function has itself, such as a tenant that means something else there, is its own.
    """
    own = list(inspect.signature(function).parameters.values())[1:]
    names = [name for name in _SHARED if name not in {parameter.name for parameter in own}]
    shared = [_SHARED[name].replace(annotation=Session.__annotations__[name]) for name in names]

    @functools.wraps(function)
    def command(**given: Any) -> None:
        session = Session(**{name: given.pop(name) for name in names})
        function(session, **given)

    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in [*own, *shared]]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined] # what typer looks at
    return command
