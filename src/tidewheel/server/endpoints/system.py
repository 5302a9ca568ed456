"""About the server itself: whether it lives, whether it is ready, and what it offers."""

import asyncio
from typing import Final, Literal

import msgspec

from tidewheel.errors import TideError
from tidewheel.observe import MEDIA_TYPE
from tidewheel.server.endpoint import HTML, Answer, Call, NoQuery
from tidewheel.server.problems import RETRY_AFTER, Refused
from tidewheel.server.service import Service

READY_WITHIN: Final = 2.0
_CLOSED: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """All is well."""

    status: Literal["ok"] = "ok"


async def live(_: Service, __: Call[None, NoQuery]) -> Answer:
    """Tell that the process is there."""
    return Answer(Health())


async def ready(service: Service, _: Call[None, NoQuery]) -> Answer:
    """Tell whether requests can be served: the store answers, and the server is not about to end."""
    again = [("retry-after", str(RETRY_AFTER))]
    if service.stopping.is_set():
        raise Refused("unavailable", "the server is about to end", headers=again)
    try:
        async with asyncio.timeout(READY_WITHIN):
            await service.store.gates()
    except (TimeoutError, TideError):
        raise Refused("unavailable", "the store does not answer", headers=again) from None
    return Answer(Health())


async def metrics(service: Service, _: Call[None, NoQuery]) -> Answer:
    """Return the numbers of this server and of the processes beside it, and of its store."""
    return Answer(await service.metrics.page(), media_type=MEDIA_TYPE)


async def openapi(service: Service, _: Call[None, NoQuery]) -> Answer:
    """Return the OpenAPI document."""
    return Answer(service.pages()["openapi"])


async def docs(service: Service, _: Call[None, NoQuery]) -> Answer:
    """Return the docs for people; they load nothing."""
    return Answer(service.pages()["docs"], headers=(("content-security-policy", _CLOSED),), media_type=HTML)
