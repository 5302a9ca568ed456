"""The store itself."""

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any

from tidewheel.clock import Clock, SystemClock
from tidewheel.errors import Invalid
from tidewheel.model.worker_protocol import Me
from tidewheel.store.bell import Bell
from tidewheel.store.remote.alerting import Alerting
from tidewheel.store.remote.dead_letters import DeadLetters
from tidewheel.store.remote.flow import Flow
from tidewheel.store.remote.hints import Listeners
from tidewheel.store.remote.jobs import Jobs
from tidewheel.store.remote.looking import Looking
from tidewheel.store.remote.notifying import Notifying
from tidewheel.store.remote.runs import Runs
from tidewheel.store.remote.schedules import Schedules
from tidewheel.store.remote.secrets import Secrets
from tidewheel.store.remote.transport import Place, Transport


class RemoteStore(Jobs, Runs, Flow, Schedules, DeadLetters, Looking, Notifying, Alerting, Secrets):
    """What a server offers of `store.base.Store`."""

    def __init__(self, transport: Transport, me: Me, clock: Clock) -> None:
        self._transport = transport
        self._listeners = Listeners(transport, clock)
        self.me = me
        """Who one is at the server."""

    @property
    def epoch(self) -> int:
        return self.me.epoch

    def listen(self) -> AbstractAsyncContextManager[Bell]:
        return self._listeners.listen()

    async def close(self) -> None:
        await self._listeners.close()
        await self._transport.close()

    def __getattr__(self, name: str) -> Callable[..., Coroutine[Any, Any, Any]]:
        """Stand in for what a server does not offer."""
        if name.startswith("_"):
            raise AttributeError(name)

        async def refuse(*_: object, **__: object) -> None:
            raise Invalid("database", f"{name} is not offered over HTTP; name the database of the server itself")

        return refuse


async def open_store(url: str, key: str | None = None, clock: Clock | None = None) -> RemoteStore:
    """Open the store behind a server. Raises Unavailable, Unauthenticated and Invalid."""
    clock = clock or SystemClock()
    transport = Transport(Place(url, key), clock)
    try:
        return RemoteStore(transport, await transport.get("/v1/me", Me), clock)
    except BaseException:
        await transport.close()
        raise
