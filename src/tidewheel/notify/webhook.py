"""Webhooks: a CloudEvent by POST, signed as Standard Webhooks says."""

import functools
import ssl
from typing import Final
from urllib.parse import urlsplit

import httpx
from standardwebhooks import Webhook

from tidewheel.clock import Clock
from tidewheel.model.channel import Parcel
from tidewheel.model.notification import Answer
from tidewheel.notify.address import AddressGuard

CONTENT_TYPE: Final = "application/cloudevents+json"
_GONE: Final = 410
_LIMITS: Final = httpx.Limits(max_keepalive_connections=0)
"""A connection is not kept: the next message resolves the name anew."""


class Webhooks:
    """Sends to addresses that the guard lets pass. Nothing is followed, and no proxy of the environment is used."""

    def __init__(self, guard: AddressGuard, clock: Clock) -> None:
        self._guard = guard
        self._clock = clock

    @functools.cached_property
    def _trusted(self) -> ssl.SSLContext:
        """Whose certificates are believed: those that all believe, and those of this machine, as a company's own."""
        context = httpx.create_ssl_context(trust_env=False)
        context.load_default_certs()
        return context

    async def send(self, parcel: Parcel) -> Answer:
        """Try once. Raises Refused, and whatever the network does."""
        parts = urlsplit(parcel.address)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        address = await self._guard.address_of(host, port)
        place = f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        url = parts._replace(netloc=place).geturl()
        headers = self._signed(parcel) | {"host": parts.netloc, "content-type": CONTENT_TYPE}
        async with httpx.AsyncClient(trust_env=False, verify=self._trusted, limits=_LIMITS, timeout=None) as client:  # noqa: S113 - the caller's clock runs
            request = client.build_request(
                "POST", url, content=parcel.body.encode(), headers=headers, extensions={"sni_hostname": host}
            )
            try:
                answer = await client.send(request, stream=True)  # what it says beyond its status is not read
            except httpx.TransportError as error:
                return Answer(accepted=False, told=f"no connection, or it was lost: {type(error).__name__}")
            await answer.aclose()
        return _judge(answer)

    def _signed(self, parcel: Parcel) -> dict[str, str]:
        now = self._clock.now()
        return {
            "webhook-id": parcel.key,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": " ".join(
                Webhook(secret).sign(parcel.key, now, parcel.body)
                for secret in (parcel.secret, parcel.old_secret)
                if secret is not None
            ),
            "user-agent": "tidewheel",
        }


def _judge(answer: httpx.Response) -> Answer:
    status = answer.status_code
    if answer.is_success:
        return Answer(accepted=True, told=str(status))
    if answer.is_redirect:
        return Answer(accepted=False, told=f"{status}: redirects are not followed; name the final address")
    return Answer(accepted=False, told=str(status), gone=status == _GONE)
