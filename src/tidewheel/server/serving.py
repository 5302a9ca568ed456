"""Serving: the application behind a real socket, started and ended inside an event loop that is there already."""

import asyncio
import logging
import socket
import ssl
from pathlib import Path
from typing import Any, Final, NamedTuple

from granian.constants import HTTPModes, Interfaces
from granian.http import HTTP1Settings
from granian.server.embed import Server

from tidewheel.clock import Clock
from tidewheel.errors import Invalid
from tidewheel.server.app import App
from tidewheel.server.port_sharing import listening_on, prefer_newest
from tidewheel.server.service import Service
from tidewheel.settings import SETTINGS

DEFAULT_PORT: Final[int] = SETTINGS["port"].default
BACKLOG: Final = 1024
HEADERS_WITHIN: Final = 20.0
"""Seconds for a client to send the head of its next request; then the connection is closed."""
UP_WITHIN: Final = 10.0
LOOK_EVERY: Final = 0.01
TAKEN_WITHIN: Final = 30.0
"""Seconds for which a client may take nothing of what was sent to it; then the kernel closes the connection."""
LINGER: Final = 0.5
"""Seconds for which a server that is about to end still answers whoever has connected."""
_log = logging.getLogger(__name__)


class Address(NamedTuple):
    """Where a server listens."""

    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT

    @property
    def url(self) -> str:
        return self.url_by("http")

    def url_by(self, scheme: str) -> str:
        """Return where the server answers, by http or https."""
        return f"{scheme}://[{self.host}]:{self.port}" if ":" in self.host else f"{scheme}://{self.host}:{self.port}"


class Certificate(NamedTuple):
    """The files of a certificate with its chain and of its key, as PEM."""

    chain: Path
    key: Path

    def check(self) -> None:
        """Refuse files that cannot be read or do not belong together."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        try:
            context.load_cert_chain(self.chain, self.key, password=lambda: b"")
        except (OSError, ValueError) as error:
            raise Invalid("tls-cert", f"{self.chain} and {self.key} are no certificate and its key: {error}") from None


def resolve(host: str) -> str:
    """Return the address that a name stands for on this machine."""
    try:
        return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])
    except (OSError, UnicodeError) as error:
        raise Invalid("host", f"{host!r} is no address of this machine: {error}") from None


class Reservation:
    """A port that is kept for servers of this program, and of no other start of it.

    Several processes listen on one port, and the kernel shares connections out among them. So that a second start with
    another database does not take half of them unnoticed, the port must be free at first, and is then kept.
    """

    def __init__(self, wanted: Address) -> None:
        found = socket.getaddrinfo(resolve(wanted.host), wanted.port, type=socket.SOCK_STREAM)[0]
        _bind(found, wanted, shared=False).close()
        self._kept = _bind(found, wanted, shared=True)
        self.address = Address(*self._kept.getsockname()[:2])

    def close(self) -> None:
        """Let go of the port."""
        self._kept.close()


class Serving:
    """A server in this process."""

    def __init__(
        self, app: App, service: Service, address: Address, clock: Clock, certificate: Certificate | None = None
    ) -> None:
        self._service = service
        self._address = address
        self._clock = clock
        self._server = Server(
            app,
            address=address.host,
            port=address.port,
            interface=Interfaces.ASGINL,
            http=HTTPModes.http1,
            websockets=False,
            backlog=BACKLOG,
            http1_settings=HTTP1Settings(header_read_timeout=int(HEADERS_WITHIN * 1000)),
            log_enabled=False,
            ssl_cert=None if certificate is None else certificate.chain,
            ssl_key=None if certificate is None else certificate.key,
        )
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Listen; returns when connections are accepted."""
        logging.getLogger("_granian").setLevel(logging.ERROR)
        self._running = asyncio.create_task(self._server.serve())
        latest = self._clock.monotonic() + UP_WITHIN
        while not await _answers(self._address):
            if self._running.done():
                self._running.result()
            if self._clock.monotonic() > latest:
                raise Invalid("port", f"nobody listens on {self._address.url} after {UP_WITHIN:g} s")
            await self._clock.sleep(LOOK_EVERY)
        self._let_go_of_the_slow()

    def _let_go_of_the_slow(self) -> None:
        """Have the kernel cut off whoever takes nothing; connections are made as the socket is that listens."""
        try:
            with listening_on(self._address.port) as end:
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(TAKEN_WITHIN * 1000))
        except OSError as error:
            _log.warning("clients that take no answer may stay: %s", error)

    def take_over(self, older: int, newest: int) -> None:
        """Have all new connections come to the newest servers on this port, of which this is one."""
        try:
            with listening_on(self._address.port) as end:
                prefer_newest(end, older, newest)
        except OSError as error:
            _log.warning("connections that nobody has accepted may be lost when old servers end: %s", error)

    async def stop(self, seconds: float, *, linger: float = 0.0) -> None:
        """Give requests under way so many seconds to be answered, and end.

        Whoever keeps a connection is told to open another one; those who have just connected may `linger` so long.
        """
        self._service.stopping.set()
        await self._service.doorbell.close()
        latest = self._clock.monotonic() + seconds
        await self._clock.sleep(min(linger, seconds))
        while self._service.under_way and self._clock.monotonic() < latest:
            await self._clock.sleep(LOOK_EVERY)
        self._server.stop()  # type: ignore[no-untyped-call]
        if self._running is not None:
            await self._running


def _bind(found: tuple[Any, ...], wanted: Address, *, shared: bool) -> socket.socket:
    family, _, _, _, place = found
    end = socket.socket(family, socket.SOCK_STREAM)
    try:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        end.bind(place)
    except OSError as error:
        end.close()
        raise Invalid("port", f"{wanted.url} cannot be listened on: {error.strerror}") from None
    return end


async def _answers(address: Address) -> bool:
    try:
        _, writer = await asyncio.open_connection(address.host, address.port)
    except OSError:
        return False
    writer.close()
    return True
