"""A server as a child of a supervisor."""

import gc
from contextlib import AsyncExitStack
from typing import Final

from tidewheel.cli.serving import certificate_of, rate_of
from tidewheel.clock import SystemClock
from tidewheel.errors import Invalid
from tidewheel.observe import tracing
from tidewheel.observe.own_log import announce
from tidewheel.server import Address, Service, Serving, build_app
from tidewheel.server.access import Auth, Door, check_exposure
from tidewheel.server.serving import LINGER
from tidewheel.server.views import Views
from tidewheel.wiring import open_all, replica_of
from tidewheel.worker.child import Greeting, run_child, send_last_spans
from tidewheel.worker.link import Drain, Ready, TakeOver

NEW_OBJECTS: Final = 10_000
"""After how many new objects Python looks for rings among them. A batch makes many thousands, and none in a ring, so
the usual 700 cost a fifth of the CPU."""


async def _serve(greeting: Greeting) -> None:
    setup, clock, seconds = greeting.setup, SystemClock(), 0.0
    if (serve := setup.serve) is None:
        raise Invalid("serve", "a server must be told where to listen")
    address, certificate = Address(serve.host, serve.port), certificate_of(serve)
    store, blobs = await open_all(setup)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(store.close)
        views = Views(store, clock, None if setup.replica is None else replica_of(setup.replica))
        views.start()
        stack.push_async_callback(views.close)
        door = Door(store, clock, keyless=check_exposure(serve.host, Auth(serve.auth)), rate=rate_of(serve))
        stack.push_async_callback(door.close)
        service = Service(store, blobs, clock, views)
        service.metrics.join(greeting.registry, greeting.inquiry.ask)
        stack.push_async_callback(service.close)
        app = build_app(service, door, behind_tls=serve.behind_tls)
        serving = Serving(app, service, address, clock, certificate)
        await serving.start()
        _leave_alone_what_stays()
        stack.push_async_callback(send_last_spans, tracing.start(setup.otel, setup.name))
        greeting.link.send(Ready())
        if setup.name.endswith("/server-0"):
            url = address.url_by("http" if certificate is None else "https")
            announce(setup.log, f"Tidewheel answers at {url} (dashboard: {url}/ui, docs: {url}/docs)")
        async for word in greeting.words:
            if isinstance(word, TakeOver):
                serving.take_over(word.older, word.newest)
            if isinstance(word, Drain):
                seconds = word.seconds
                break
        await serving.stop(seconds, linger=LINGER)


def _leave_alone_what_stays() -> None:
    """Have Python look for rings less often, and no more among all that was loaded by now."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)


if __name__ == "__main__":
    run_child(_serve)
