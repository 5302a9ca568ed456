"""Channels: where messages go. Their addresses and secrets are written, and never read by people again."""

import base64
import binascii
import enum
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final
from urllib.parse import SplitResult, parse_qs, urlsplit
from uuid import UUID

import msgspec

from tidewheel.errors import Invalid
from tidewheel.model.checks import check_duration, check_key, check_name

MAX_ADDRESS: Final = 2000
SECRET_BYTES: Final = 32
KEEP_OLD: Final = timedelta(days=1)
"""How long the secret before the last is used beside it, unless someone says otherwise."""
MAX_KEEP_OLD: Final = timedelta(days=30)
SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - what secrets of webhooks begin with
TEST_KEY: Final = "test."
"""What the key of a test message begins with."""
_LEAST_SECRET, _MOST_SECRET = 24, 64
_FREE_FORM: Final = frozenset(("form", "forms", "json", "jsons", "xml", "xmls", "custom"))
"""Services that post to any address; a signed webhook does that, and looks where it goes."""
_LOCAL: Final = frozenset(
    (
        "dbus",
        "gnome",
        "kde",
        "qt",
        "glib",
        "gio",
        "macosx",
        "windows",
        "syslog",
        "blink1",
        "file",
        "fcm",
        "smpp",
        "vapid",
    )
)
"""Services that speak to the machine of the sender, or read its files."""
_FILES: Final = frozenset(("pgppub", "pgpprv", "keyfile", "subfile"))
"""Settings that name files of the sender."""
_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*").fullmatch
_NOT_IN_URL: Final = re.compile(r"[\s\x00-\x1f\x7f]").search


class ChannelType(enum.StrEnum):
    """How a channel carries its messages."""

    WEBHOOK = "webhook"
    SERVICE = "service"  # whatever apprise knows, by its URL


class ChannelSpec(msgspec.Struct, frozen=True, kw_only=True):
    """Where to send: an http(s) address, or the URL of a service as apprise writes them."""

    name: str
    address: str
    tenant: str | None = None
    """Whose it is; None for one of the operators, which hears of all tenants."""
    secret: str | None = None
    """By which a webhook signs (`whsec_…`); made if it is missing."""

    def __repr__(self) -> str:
        """Leave out what must not be seen."""
        return f"ChannelSpec(name={self.name!r}, tenant={self.tenant!r})"


class Channel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel, as people see it."""

    id: UUID
    name: str
    tenant: str | None
    type: ChannelType
    shown: str
    """The part of its address that is no secret."""
    created_at: datetime
    disabled: str | None = None
    """Why nothing is sent by it any more."""


class NewChannel(msgspec.Struct, frozen=True, kw_only=True):
    """A channel that was just made, with the secret that is shown this once."""

    channel: Channel
    secret: str | None

    def __repr__(self) -> str:
        """Leave out what must not be seen."""
        return f"NewChannel({self.channel!r})"


class Parcel(msgspec.Struct, frozen=True, kw_only=True):
    """A delivery that a sender took: what to send, and where."""

    delivery_id: UUID
    channel_id: UUID
    tries: int
    """With this one; what the sender says of it counts only while nobody has tried since, or wants it sent again."""
    begun_at: datetime
    """Since when it is tried."""
    key: str
    body: str
    text: str
    type: ChannelType
    address: str
    secret: str | None
    old_secret: str | None = None
    """By which it is signed, too, while receivers may not know the new one."""

    @property
    def once(self) -> bool:
        """Whether it is not tried again."""
        return self.key.startswith(TEST_KEY)

    def __repr__(self) -> str:
        """Leave out what must not be seen."""
        return f"Parcel({self.delivery_id}, {self.key!r})"


def prepare_channel(spec: ChannelSpec, random_bytes: Callable[[int], bytes]) -> tuple[ChannelSpec, ChannelType, str]:
    """Return the channel with its secret, its type, and what may be shown of its address."""
    check_name("name", spec.name)
    if spec.tenant is not None:
        check_name("tenant", spec.tenant)
    parts = _split(spec.address)
    if parts.scheme not in ("http", "https"):
        _check_service(parts)
        if spec.secret is not None:
            raise Invalid("secret", "is for webhooks; a service has it in its address")
        return spec, ChannelType.SERVICE, f"{parts.scheme}://…"
    _check_webhook(parts)
    secret = _new_secret(random_bytes) if spec.secret is None else check_secret(spec.secret)
    port = f":{parts.port}" if parts.port else ""
    host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
    shown = f"{parts.scheme}://{host}{port}/…"
    return msgspec.structs.replace(spec, secret=secret), ChannelType.WEBHOOK, shown


def service_of(address: str) -> str | None:
    """Return by which service an address is reached; None for a webhook. Raises Invalid for what is not offered."""
    parts = _split(address)
    if parts.scheme in ("http", "https"):
        return None
    _check_service(parts)
    return parts.scheme


def prepare_rotation(keep: timedelta, random_bytes: Callable[[int], bytes]) -> str:
    """Return a new secret, if the old one may go on for so long. Raises Invalid."""
    check_duration("keep", keep, timedelta(0), MAX_KEEP_OLD)
    return _new_secret(random_bytes)


def no_secret() -> Invalid:
    """Return what to say of a channel that does not sign."""
    return Invalid("channel", "must be a webhook; a service has its secret in its address")


def check_secret(secret: str) -> str:
    """Return a secret that a webhook can sign with."""
    check_key("secret", secret)
    try:
        size = len(base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if not secret.startswith(SECRET_PREFIX) or not _LEAST_SECRET <= size <= _MOST_SECRET:
        raise Invalid("secret", f"must be whsec_ and {_LEAST_SECRET} to {_MOST_SECRET} bytes in base64")
    return secret


def _new_secret(random_bytes: Callable[[int], bytes]) -> str:
    return SECRET_PREFIX + base64.b64encode(random_bytes(SECRET_BYTES)).decode()


def _split(address: object) -> SplitResult:
    if not isinstance(address, str) or not address:
        raise Invalid("address", "must be a URL")
    if len(address) > MAX_ADDRESS:
        raise Invalid("address", f"must have at most {MAX_ADDRESS} characters, not {len(address)}")
    if _NOT_IN_URL(address) or not address.isascii():
        raise Invalid("address", "must be a URL, without blanks, line ends or letters that are not ASCII")
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        raise Invalid("address", "is no URL") from None
    if not _SCHEME(parts.scheme) or "://" not in address:
        raise Invalid("address", "must be a URL such as https://host/path, mailtos://user:password@host or slack://…")
    return parts


def _check_service(parts: SplitResult) -> None:
    if parts.scheme in _FREE_FORM:
        raise Invalid("address", f"{parts.scheme} is not offered: use a webhook")
    if parts.scheme in _LOCAL:
        raise Invalid("address", f"{parts.scheme} is not offered: it belongs to the machine of the sender")
    for name in parse_qs(parts.query, keep_blank_values=True):
        if name.lower() in _FILES:
            raise Invalid("address", f"{name.lower()} is not offered: it names a file of the sender")


def _check_webhook(parts: SplitResult) -> None:
    if not parts.hostname:
        raise Invalid("address", "must name a host")
    if parts.username is not None or parts.password is not None:
        raise Invalid("address", "must not hold a user or password; a webhook proves itself by its signature")
    if parts.fragment:
        raise Invalid("address", "must not have a part after #, which is never sent")
