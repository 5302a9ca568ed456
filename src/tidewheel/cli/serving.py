"""What `tide server` and `tide up` have in common: where they listen, and whom they let in."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer

from tidewheel.cli.options import setting
from tidewheel.errors import Invalid
from tidewheel.model.request_rate import Rate, check_rate
from tidewheel.server.access import Auth, Keyless, check_exposure, ensure_first_key, is_loopback
from tidewheel.server.serving import Address, Certificate, Reservation, resolve
from tidewheel.wiring import open_store, replica_of
from tidewheel.worker.link import ServerSetup

_log = logging.getLogger(__name__)
BURST: Final = 2
"""Seconds of its rate that a key may use at once, unless a burst is named."""

Host = Annotated[str, setting("host")]
Port = Annotated[int, setting("port", min=0, max=65535)]
AuthMode = Annotated[Auth, setting("auth")]
KeyRate = Annotated[float | None, setting("key_rate")]
Burst = Annotated[int | None, setting("key_burst")]
TlsCert = Annotated[str | None, setting("tls_cert")]
TlsKey = Annotated[str | None, setting("tls_key")]
BehindTls = Annotated[bool, setting("behind_tls", "--behind-tls/--no-behind-tls")]
Replica = Annotated[str | None, setting("replica")]


@contextmanager
def reserved(wanted: ServerSetup) -> Iterator[ServerSetup]:
    """Keep a port for servers, once it is clear that they may listen there; refuse to be open to the world."""
    rate_of(wanted)
    certificate = certificate_of(wanted)
    host = resolve(wanted.host)
    check_exposure(host, Auth(wanted.auth))
    if certificate is not None:
        certificate.check()
    elif not is_loopback(host) and not wanted.behind_tls:
        _log.warning("keys reach %s in clear text: name a certificate by --tls-cert, or put TLS before it", host)
    place = Reservation(Address(host, wanted.port))
    try:
        yield msgspec.structs.replace(wanted, host=place.address.host, port=place.address.port)
    finally:
        place.close()


async def show_first_key(database: str, serve: ServerSetup) -> None:
    """Make and print an admin key if one is needed and there has never been any."""
    if check_exposure(serve.host, Auth(serve.auth)) is not Keyless.NEVER:
        return
    store = await open_store(database)
    try:
        text = await ensure_first_key(store)
    finally:
        await store.close()
    if text is not None:
        typer.echo(f"The first key, of an admin of all tenants. It is shown this once:\n{text}")


def rate_of(serve: ServerSetup) -> Rate | None:
    """Return the rate of keys that have none of their own."""
    check_rate(serve.rate, serve.burst)
    if serve.rate is None:
        if serve.burst is not None:
            raise Invalid("key-burst", "is for a server with a --key-rate")
        return None
    return Rate(serve.rate, serve.burst or max(1, round(BURST * serve.rate)))


def certificate_of(serve: ServerSetup) -> Certificate | None:
    """Return the files of the certificate; None for plain HTTP."""
    if serve.tls_cert is None and serve.tls_key is None:
        return None
    if serve.tls_cert is None or serve.tls_key is None:
        missing = "tls-cert" if serve.tls_cert is None else "tls-key"
        raise Invalid(missing, "must be named together with the other of the two files")
    return Certificate(Path(serve.tls_cert), Path(serve.tls_key))


def checked_replica(url: str | None) -> str | None:
    """Return the replica, or refuse what cannot be one."""
    if url is not None:
        replica_of(url)
    return url
