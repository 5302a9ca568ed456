"""Before the server opens: who can reach it, and the first key."""

import enum
import ipaddress
import secrets

from tidewheel.errors import Invalid
from tidewheel.model.access import Actor, Role
from tidewheel.model.api_key import ENTROPY, KeySpec, make_key
from tidewheel.server.access.door import Keyless
from tidewheel.store.access import KeyStore

_SERVER = Actor(role=Role.ADMIN, name="server")


class Auth(enum.StrEnum):
    """Whether keys are asked for."""

    AUTO = "auto"
    """Always, but on loopback not before there is a key."""
    REQUIRED = "required"
    OFF = "off"
    """Never; on loopback only."""


def is_loopback(host: str) -> bool:
    """Tell whether what a server is bound to can be reached from this machine alone; any other name may be anywhere."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.removeprefix("[").removesuffix("]")).is_loopback
    except ValueError:
        return False


def check_exposure(host: str, auth: Auth) -> Keyless:
    """Tell when one may come in without a key; refuse to be open to the world."""
    if is_loopback(host):
        return {Auth.AUTO: Keyless.UNTIL_A_KEY, Auth.REQUIRED: Keyless.NEVER, Auth.OFF: Keyless.ALWAYS}[auth]
    if auth is Auth.OFF:
        raise Invalid("auth", f"cannot be off while the server is bound to {host}, where others reach it")
    return Keyless.NEVER


async def ensure_first_key(store: KeyStore) -> str | None:
    """Make an admin key if there has never been any, and return its text, to be shown once; else None.

    Of servers that start at once, one makes it: the others get None.
    """
    made = make_key(secrets.token_bytes(ENTROPY))
    spec = KeySpec(name="first admin", role=Role.ADMIN)
    return made.text if await store.create_first_key(spec, made.proof, by=_SERVER) is not None else None
