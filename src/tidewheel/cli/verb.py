"""What all commands that talk to Tidewheel have in common: where it is, whose jobs are meant, and how to print."""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

import msgspec
import typer

from tidewheel.cli.options import Database, setting
from tidewheel.cli.showing import Format, Output
from tidewheel.errors import Invalid, Unavailable
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.submission import MAX_ARGS_BYTES
from tidewheel.store.base import Store
from tidewheel.wiring import DEFAULT_URL, is_server, open_store

if TYPE_CHECKING:
    from tidewheel.client import Client
    from tidewheel.sdk.app import App

T = TypeVar("T")

_CONTEXT: Final = inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
_TYPED: Final = "COMMANDLINE"
"""What a context calls the source of an option that was given as one."""

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="TIDE_URL",
        help="A server to talk to, in place of the database, with its key in TIDE_KEY: https://host.",
    ),
]
MaxArgsBytes = Annotated[int, setting("max_args_bytes", hidden=True)]
Tenant = Annotated[str, typer.Option("--tenant", envvar="TIDE_TENANT", help="Whose jobs are meant.")]


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """Whom a command talks to, and how it answers."""

    database: Database = DEFAULT_URL
    url: Url = None
    tenant: Tenant = DEFAULT_TENANT
    output: Output = Format.TABLE
    max_args_bytes: MaxArgsBytes = MAX_ARGS_BYTES

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
            return await open_store(self.place, max_args_bytes=self.max_args_bytes)
        except Unavailable as error:
            if not is_server(self.place):
                raise
            why = f"{self.place} cannot be reached ({error}): is the server running, and is that its address?"
            raise Unavailable(why) from error

    def app(self) -> "App":
        """Return an app without tasks that keeps its jobs there."""
        from tidewheel.sdk.app import App  # noqa: PLC0415 - most commands do without

        return App(self.place, tenant=self.tenant, max_args_bytes=self.max_args_bytes)


def verb(app: typer.Typer, name: str | None = None) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add a command that takes a `Session`; see `with_session`."""

    def add(function: Callable[..., None]) -> Callable[..., None]:
        return app.command(name)(with_session(function))

    return add


def with_session(function: Callable[..., None]) -> Callable[..., None]:
    """Return a command that has the fields of the structs that a function takes as options, besides its own.

    One of these structs is the `Session`, whose options come last. An option that the function has itself, such as a
    tenant that means something else there, is its own.
    """
    parameters = inspect.signature(function).parameters.values()
    structs = {each.name: each.annotation for each in parameters if _is_struct(each.annotation)}
    own = [each for each in parameters if each.name not in structs and each.name != _CONTEXT.name]
    names = {each.name for each in own}
    wants_context = any(each.name == _CONTEXT.name for each in parameters)
    fields = {name: [each for each in _options_of(kind) if each.name not in names] for name, kind in structs.items()}

    @functools.wraps(function)
    def command(**given: Any) -> None:
        context: typer.Context = given.pop(_CONTEXT.name)
        _prefer_what_was_typed(context, given)
        made = {
            name: structs[name](**{each.name: given.pop(each.name) for each in of_struct})
            for name, of_struct in fields.items()
        }
        function(**made, **given, **({_CONTEXT.name: context} if wants_context else {}))

    in_order = [each for name in sorted(fields, key=lambda name: structs[name] is Session) for each in fields[name]]
    options = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in [*own, *in_order, _CONTEXT]]
    command.__annotations__ = {each.name: each.annotation for each in options}
    command.__signature__ = inspect.Signature(options)  # type: ignore[attr-defined] # what typer looks at
    return command


def _prefer_what_was_typed(context: typer.Context, given: dict[str, Any]) -> None:
    """Let a database that was typed come before a server that only the environment names."""
    typed = {name for name in ("database", "url") if getattr(context.get_parameter_source(name), "name", "") == _TYPED}
    if typed == {"database"}:
        given["url"] = None


def _is_struct(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, msgspec.Struct)


def _options_of(kind: type[msgspec.Struct]) -> list[inspect.Parameter]:
    """Return the fields of a struct as parameters; an empty list as default is made anew for each command."""
    return [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=each.default if each.default_factory is msgspec.NODEFAULT else each.default_factory(),
            annotation=kind.__annotations__[each.name],
        )
        for each in msgspec.structs.fields(kind)
    ]
